"""What the controllers have seen, kept so that each question costs what its answer is long.

One world belongs to one thread.  The follower of the API server puts objects in and takes them out; the answers to the
controllers' own writes are put in too, so that nothing is done twice because a watch lags behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeVar

from msgspec.structs import replace

from stromboli.api.batch import CronJob, Job
from stromboli.api.fields import Metadata, Resource
from stromboli.api.flow import JobFlow, JobTemplate
from stromboli.api.scheduling import PodGroup, Queue
from stromboli.cluster.body import newer
from stromboli.cluster.owners.gangs import Owner
from stromboli.controllers.jobs.kept import KeptObjects
from stromboli.controllers.pods import PodView
from stromboli.controllers.readings import Readings
from stromboli.model.names import CREATED_BY_JOB_TEMPLATE

Key = tuple[str, str]
"""Namespace, empty for kinds of the whole cluster, and name."""

REMEMBERED: Final = 4096
"""Objects that are known to be gone; the oldest are forgotten, as no watch lags that far."""

R = TypeVar("R", bound=Resource)


def key_of(found: Resource) -> Key:
    """Namespace and name of an object."""
    return found.metadata.namespace, found.metadata.name


class Shelf(Generic[R]):
    """The objects of one kind."""

    def __init__(self) -> None:
        self.objects: dict[Key, R] = {}
        self._buried: dict[str, None] = {}

    def put(self, found: R) -> R | None:
        """Take ``found`` in unless something newer is known of it; returns what was known before.

        What is not newer, or is gone for good, comes back itself, as if it had been known already.
        """
        key = key_of(found)
        known = self.objects.get(key)
        if found.metadata.uid in self._buried or (known and not self._later(found.metadata, known.metadata)):
            return found
        self.objects[key] = found
        return known

    def _later(self, found: Metadata, known: Metadata) -> bool:
        return found.uid != known.uid or newer(found.resource_version, known.resource_version)

    def drop(self, key: Key) -> R | None:
        """Take an object out; returns it."""
        return self.objects.pop(key, None)

    def bury(self, uid: str) -> None:
        """The object of ``uid`` is gone, whatever a watch that lags behind still says of it."""
        self._buried[uid] = None
        if len(self._buried) > REMEMBERED:
            del self._buried[next(iter(self._buried))]

    def get(self, namespace: str, name: str) -> R | None:
        """The object of that name."""
        return self.objects.get((namespace, name))

    def values(self) -> Iterable[R]:
        """All objects."""
        return self.objects.values()


class Queues(Shelf[Queue]):
    """All queues."""

    def named(self, name: str) -> Queue | None:
        """The queue of that name."""
        return self.get("", name)

    def children(self, name: str) -> list[Queue]:
        """The queues right below the one of that name."""
        return [queue for queue in self.values() if queue.spec.parent == name]


class Listed(Shelf[R]):
    """The objects of one kind, found by some of what they name too: ``names`` says what one is listed under."""

    def __init__(self, names: Callable[[R], Iterable[str]]) -> None:
        super().__init__()
        self._names = names
        self._lists: dict[str, dict[Key, R]] = {}

    def put(self, found: R) -> R | None:
        """See :meth:`Shelf.put`."""
        known = super().put(found)
        if known is not found:
            if known is not None:
                self._unlist(known)
            for name in self._names(found):
                self._lists.setdefault(name, {})[key_of(found)] = found
        return known

    def drop(self, key: Key) -> R | None:
        """See :meth:`Shelf.drop`."""
        known = super().drop(key)
        if known is not None:
            self._unlist(known)
        return known

    def _unlist(self, known: R) -> None:
        for name in self._names(known):
            listed = self._lists.get(name, {})
            listed.pop(key_of(known), None)
            if not listed:
                self._lists.pop(name, None)

    def under(self, name: str) -> Iterable[R]:
        """The objects that are listed under a name."""
        return self._lists.get(name, {}).values()


class PodGroups(Listed[PodGroup]):
    """All PodGroups, found by queue too."""

    def __init__(self) -> None:
        super().__init__(lambda group: (group.spec.queue,))

    def of_queue(self, name: str) -> Iterable[PodGroup]:
        """The PodGroups in a queue."""
        return self.under(name)


class Jobs(Listed[Job]):
    """All jobs, found by the object that controls them, and by the JobTemplate that they were made of, too."""

    def __init__(self) -> None:
        super().__init__(_makers)

    def of_owner(self, owner: Resource) -> list[Job]:
        """The jobs that ``owner`` controls, by name."""
        meta = owner.metadata
        found = [job for job in self.under(meta.uid) if job.metadata.namespace == meta.namespace]
        return sorted(found, key=lambda job: job.metadata.name)


def _makers(job: Job) -> list[str]:
    template = template_of(job)
    return [*(owner.uid for owner in job.metadata.owner_references if owner.controller), *filter(None, [template])]


def template_of(job: Job) -> str:
    """``<namespace>.<name>`` of the JobTemplate that a job was made of, as labels say it; empty for none."""
    meta = job.metadata
    return meta.labels.get(CREATED_BY_JOB_TEMPLATE) or meta.annotations.get(CREATED_BY_JOB_TEMPLATE, "")


class JobFlows(Listed[JobFlow]):
    """All JobFlows, found by the JobTemplates that they name too."""

    def __init__(self) -> None:
        super().__init__(lambda flow: {f"{flow.metadata.namespace}.{step.name}" for step in flow.spec.flows})


class Pods:
    """All pods, found by job too."""

    def __init__(self) -> None:
        self.objects: dict[Key, PodView] = {}
        self._by_job: dict[Key, dict[str, PodView]] = {}

    def put(self, pod: PodView) -> PodView | None:
        """Take a pod in unless something newer is known of it; see :meth:`Shelf.put`."""
        known = self.objects.get(pod.key)
        if known is not None and known.uid == pod.uid and not newer(pod.resource_version, known.resource_version):
            return pod
        if known is not None and known.job != pod.job:
            self.drop(pod.key)
        self.objects[pod.key] = pod
        if pod.job:
            self._by_job.setdefault((pod.namespace, pod.job), {})[pod.name] = pod
        return known

    def drop(self, key: Key) -> PodView | None:
        """Take a pod out; returns it."""
        known = self.objects.pop(key, None)
        if known is not None and known.job:
            of_job = self._by_job.get((known.namespace, known.job), {})
            of_job.pop(known.name, None)
            if not of_job:
                self._by_job.pop((known.namespace, known.job), None)
        return known

    def ending(self, key: Key) -> None:
        """A pod has been asked to end; the watch will tell."""
        pod = self.objects.get(key)
        if pod is not None and not pod.terminating:
            changed = replace(pod, terminating=True, out_of_sync=True)
            self.objects[key] = changed
            if pod.job:
                self._by_job[pod.namespace, pod.job][pod.name] = changed

    def stand_in(self, group: Key) -> bool:
        """Whether a pod that is not ending names the PodGroup."""
        namespace, name = group
        return any(
            pod.group == name and pod.namespace == namespace and not pod.terminating for pod in self.objects.values()
        )

    def of_job(self, key: Key) -> Mapping[str, PodView]:
        """The pods of a job by name, those of an earlier job of that name included."""
        return self._by_job.get(key, _NONE)


_NONE: Final[Mapping[str, PodView]] = {}


class World:
    """Everything that the controllers look at."""

    def __init__(self) -> None:
        self.jobs = Jobs()
        self.cron_jobs: Shelf[CronJob] = Shelf()
        self.job_flows = JobFlows()
        self.job_templates: Shelf[JobTemplate] = Shelf()
        self.queues = Queues()
        self.pod_groups = PodGroups()
        self.pods = Pods()
        self.priorities: dict[str, int] = {}
        self.claims: set[Key] = set()
        self.kept = KeptObjects()
        """Objects that job plugins want."""
        self.owners: dict[tuple[str, str, str], Owner] = {}
        """ReplicaSets, StatefulSets, DaemonSets and batch Jobs, by kind, namespace and name; without their parts."""
        self.readings = Readings()
        """Owners of other kinds, and those that were not followed yet when a pod of theirs came, as last read."""
        self.idle: set[Key] = set()
        """PodGroups whose owners were last seen scaled to nothing."""
        self.nodes: dict[str, Mapping[str, str]] = {}
        """Labels of the nodes by name."""

    def set_priority(self, name: str, value: int | None) -> None:
        """The value of a priority class; None when it is gone."""
        if value is None:
            self.priorities.pop(name, None)
        else:
            self.priorities[name] = value
