"""A cluster in memory for the controllers: it stores what they write, tells them, and lets tests play the others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from stromboli.api.batch import CronJob, Job
from stromboli.api.bus import Command
from stromboli.api.flow import JobFlow, JobTemplate
from stromboli.api.kinds import COMMANDS, CRON_JOBS, HYPER_NODES, JOB_FLOWS, JOB_TEMPLATES, JOBS, POD_GROUPS, QUEUES
from stromboli.api.read import read
from stromboli.api.scheduling import PodGroup, Queue
from stromboli.api.topology import HyperNode
from stromboli.controllers.changes import (
    Ask,
    Change,
    Create,
    Delete,
    Drop,
    Emit,
    Keep,
    KillPod,
    Outcome,
    Patch,
    Query,
    Read,
    Target,
)
from stromboli.controllers.jobs.kept import Kept, is_of, repair
from stromboli.controllers.manager import Manager, Settings
from stromboli.controllers.pods import pod_view
from stromboli.controllers.work import About, Work
from stromboli.controllers.world import Key
from stromboli.crds import admission
from stromboli.errors import ObjectInTheWay
from stromboli.model.values.times import stamp

Manifest = dict[str, Any]
START = 1_700_000_000.0
MOST_LOOKS = 2_000


class Broken(Exception):
    """A write that the test wanted to fail."""


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


class Cluster:
    """The API server, the garbage collector, and a runner that does what reconcilers ask for."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.manager = Manager(settings or Settings())
        self.now = START
        self.objects: dict[str, dict[Key, Manifest]] = {}
        self.events: list[Emit] = []
        self.errors: list[str] = []
        self.writes: list[Change] = []
        self.breaking: dict[type[Change], int] = {}
        """How many more writes of a type are to fail."""
        self.denial = "not found"
        """What is said of owners that cannot be read."""
        self.answering: set[Target] = set()
        """What answers well when it is asked."""
        self.later: dict[Work, float] = {}
        """When objects are to be looked at again."""
        self._version = 0

    # -- The API server ----------------------------------------------------------------------------------------------

    def store(self, resource: str, value: Manifest) -> Manifest:
        """Store an object as it is and tell the controllers."""
        self._version += 1
        value = msgspec.json.decode(msgspec.json.encode(value))
        meta = value.setdefault("metadata", {})
        meta["resourceVersion"] = str(self._version)
        meta.setdefault("uid", f"uid-{self._version}")
        meta.setdefault("creationTimestamp", stamp(self.now))
        key = (meta.get("namespace", ""), meta["name"])
        self.objects.setdefault(resource, {})[key] = value
        self._tell(resource, value)
        return value

    def create(self, resource: str, value: Manifest) -> Manifest:
        """Store an object as a user would, admission included."""
        return self.store(resource, dict(admission.default(resource, value, admission.Objects({}))))

    def change(self, resource: str, name: str, patch: Manifest, namespace: str = "ns") -> Manifest:
        """Patch an object."""
        return self.store(resource, merged(self.objects[resource][namespace, name], patch))

    def remove(self, resource: str, name: str, namespace: str = "ns") -> None:
        """An object is gone, and with it what belongs to it."""
        gone = self.objects[resource].pop((namespace, name))
        self._untell(resource, (namespace, name))
        for other, found in [(r, o) for r, objects in self.objects.items() for o in objects.values()]:
            meta = found["metadata"]
            if any(owner["uid"] == gone["metadata"]["uid"] for owner in meta.get("ownerReferences", ())):
                self.remove(other, meta["name"], meta.get("namespace", ""))

    def _tell(self, resource: str, value: Manifest) -> None:
        manager, world = self.manager, self.manager.world
        key = (value["metadata"].get("namespace", ""), value["metadata"]["name"])
        seen: dict[str, Callable[[], object]] = {
            "pods": lambda: manager.seen_pod(pod_view(msgspec.json.encode(value))),
            "persistentvolumeclaims": lambda: world.claims.add(key),
            JOBS: lambda: manager.seen_job(read(Job, value)),
            POD_GROUPS: lambda: manager.seen_pod_group(read(PodGroup, value)),
            QUEUES: lambda: manager.seen_queue(read(Queue, value)),
            COMMANDS: lambda: manager.seen_command(read(Command, value)),
            HYPER_NODES: lambda: manager.topology.seen(read(HyperNode, value)),
            JOB_FLOWS: lambda: manager.seen(About.job_flow, world.job_flows, read(JobFlow, value)),
            JOB_TEMPLATES: lambda: manager.seen_job_template(read(JobTemplate, value)),
            CRON_JOBS: lambda: manager.seen(About.cron_job, world.cron_jobs, read(CronJob, value)),
        }
        if resource in seen:
            seen[resource]()

    def _untell(self, resource: str, key: Key) -> None:
        gone: dict[str, Callable[[Key], object]] = {
            "pods": self.manager.gone_pod,
            "persistentvolumeclaims": self.manager.world.claims.discard,
            JOBS: self.manager.gone_job,
            POD_GROUPS: self.manager.gone_pod_group,
            QUEUES: self.manager.gone_queue,
            COMMANDS: self.manager.commands.drop,
            CRON_JOBS: self.manager.world.cron_jobs.drop,
            HYPER_NODES: self.manager.topology.gone,
            JOB_FLOWS: self.manager.world.job_flows.drop,
            JOB_TEMPLATES: self.manager.world.job_templates.drop,
        }
        if resource in gone:
            gone[resource](key)

    # -- The runner --------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Look at everything that waits until nothing does; what fails is looked at again."""
        for _ in range(MOST_LOOKS):
            self.manager.wake(self.now)
            work = next(iter(self.manager.ready), None)
            if work is None:
                return
            self.run(work)
        raise AssertionError(f"the controllers come to no end: {list(self.manager.ready)}")

    def wait(self, until: float) -> None:
        """Let time go by, and look at whatever is to be looked at meanwhile."""
        self.settle()
        while (due := min(self.later.values(), default=until + 1)) <= until:
            self.now = max(self.now, due)
            for work in [work for work, when in self.later.items() if when <= self.now]:
                del self.later[work]
                self.manager.ready[work] = None
            self.settle()
        self.now = until

    def run(self, work: Work) -> Outcome:
        """One look."""
        outcome = self.manager.look(work, self.now)
        if outcome.after is not None:
            self.later[work] = self.now + outcome.after
        try:
            for change in outcome.changes():
                self.apply(change)
        except Broken:
            self.manager.repeat(work)
            return outcome
        except ObjectInTheWay as error:
            for change in self.manager.jobs.hindered(work.key, "PluginError", str(error), self.now).changes():
                self.apply(change)
            self.manager.repeat(work)
            self.later[work] = self.now + 1
            self.manager.ready.pop(work)
            return outcome
        if outcome.error:
            self.errors.append(outcome.error)
        self.manager.settled(work)
        if outcome.after == 0.0:
            self.manager.ready[work] = None
        if work.about is About.command:
            for change in self.manager.carry_out(work.key).changes():
                self.apply(change)
        return outcome

    def apply(self, change: Change) -> None:
        if self.breaking.get(type(change), 0) > 0:
            self.breaking[type(change)] -= 1
            raise Broken
        if not isinstance(change, Emit | Ask):
            self.writes.append(change)
        doing: dict[type[Change], Callable[[Any], object]] = {
            Emit: self.events.append,
            Ask: lambda ask: self.manager.ask_queue(ask.queue, ask.action),
            Create: self._create,
            Patch: self._patch,
            Delete: self._delete,
            Read: self._read,
            Keep: self._keep,
            Drop: self._drop,
            Query: self._query,
            KillPod: lambda pod: self.kill(pod.name, pod.namespace, out_of_sync=True),
        }
        doing[type(change)](change)

    def _create(self, change: Create) -> None:
        meta: Any = change.body["metadata"]
        if (change.namespace, meta["name"]) not in self.objects.get(change.resource, {}):
            self.store(change.resource, change.body)

    def _read(self, change: Read) -> None:
        group = change.api_version.rpartition("/")[0]
        found = self.objects.get(f"{change.plural}.{group}".rstrip("."), {}).get((change.namespace, change.name))
        self.manager.world.readings.note(change, found, "" if found else self.denial, self.now)

    def _query(self, change: Query) -> None:
        for target in change.targets:
            self.manager.job_flows.answers.note(target, target in self.answering, self.now)

    def _delete(self, change: Delete) -> None:
        if change.resource == COMMANDS:
            self.objects[COMMANDS].pop((change.namespace, change.name))
        elif (change.namespace, change.name) in self.objects.get(change.resource, {}):
            self.remove(change.resource, change.name, change.namespace)
            self.manager.deleted(change.resource, (change.namespace, change.name), change.uid)

    def _patch(self, change: Patch) -> None:
        body = copy.deepcopy(change.body)
        known = self.objects[change.resource][change.namespace, change.name]
        meta: Any = body.get("metadata", {})
        wanted = meta.pop("resourceVersion", None)
        if wanted is not None and wanted != known["metadata"]["resourceVersion"]:
            raise Broken
        left_alone = body.keys() - {"status"} if change.status else body.keys() & {"status"}
        for part in left_alone:  # as a server does: a status is a resource of its own
            del body[part]
        self.store(change.resource, merged(known, body))

    def _keep(self, change: Keep) -> None:
        key, wanted, kept = (change.namespace, change.wanted.name), change.wanted, self.manager.world.kept
        made = {"id_rsa": "cHJpdmF0ZQ=="} if wanted.maker else {}
        found = self.objects.get(change.resource, {}).get(key)
        if found is None:
            found = self.store(change.resource, wanted.manifest(change.namespace, change.owner, made))
        else:
            known = kept.of(change.owner_uid).get((change.resource, wanted.name))
            patch = repair(change, found, made, known)
            found = self.store(change.resource, merged(found, patch)) if patch else found
        uid = found["metadata"]["uid"] if is_of(found, change.owner_uid) else ""
        kept.note(change.owner_uid, Kept(wanted, uid, found["metadata"]["resourceVersion"], self.now))

    def _drop(self, change: Drop) -> None:
        found = self.objects.get(change.resource, {}).get((change.namespace, change.name))
        if found is not None and is_of(found, change.owner_uid):
            self.remove(change.resource, change.name, change.namespace)
        self.manager.world.kept.drop(change.owner_uid, (change.resource, change.name))

    # -- The others --------------------------------------------------------------------------------------------------

    def kill(self, name: str, namespace: str = "ns", *, out_of_sync: bool = False) -> None:
        """A pod is asked to end."""
        marks = {"volcano.sh/controller-out-of-sync": "true"} if out_of_sync else {}
        metadata = {"annotations": marks, "deletionTimestamp": "2023-11-14T22:13:21Z"}
        self.change("pods", name, {"metadata": metadata}, namespace)

    def reap(self) -> None:
        """Pods that were asked to end are gone."""
        for name in [name for name, pod in self.pods().items() if "deletionTimestamp" in pod["metadata"]]:
            self.remove("pods", name)

    def admit(self, phase: str = "Inqueue") -> None:
        """The scheduler lets all PodGroups in."""
        for namespace, name in list(self.objects.get(POD_GROUPS, {})):
            group = self.objects[POD_GROUPS][namespace, name]
            if group.get("status", {}).get("phase") in (None, "Pending"):
                self.change(POD_GROUPS, name, {"status": {"phase": phase}}, namespace)

    def pod_phase(self, name: str, phase: str, code: int = 0, restarts: int = 0) -> None:
        """The kubelet says how a pod is."""
        ended = {"terminated": {"exitCode": code}} if phase in ("Failed", "Succeeded") else {}
        state = {"name": "main", "ready": phase == "Running", "restartCount": restarts, "state": ended}
        self.change("pods", name, {"status": {"phase": phase, "containerStatuses": [state]}})

    def all_pods(self, phase: str, code: int = 0) -> None:
        """Every pod that has not ended is in this phase now."""
        for name, pod in self.pods().items():
            if pod.get("status", {}).get("phase", "Pending") not in ("Failed", "Succeeded"):
                self.pod_phase(name, phase, code)

    def command(self, action: str, kind: str, name: str) -> None:
        """Issue a command, as a user does."""
        self._version += 1
        value = {"metadata": {"name": f"command-{self._version}", "namespace": "ns"}, "action": action,
                 "target": {"kind": kind, "name": name, "apiVersion": "", "uid": ""}}  # fmt: skip
        self.store(COMMANDS, value)

    def pods(self) -> dict[str, Manifest]:
        """All pods of the namespace by name."""
        return {name: pod for (_, name), pod in self.objects.get("pods", {}).items()}

    def names(self) -> list[str]:
        """Names of the pods that are not terminating."""
        return sorted(name for name, pod in self.pods().items() if "deletionTimestamp" not in pod["metadata"])

    def job(self, name: str = "j") -> Any:
        """A job as it is stored."""
        return self.objects[JOBS]["ns", name]

    def phase(self, name: str = "j") -> str:
        """The phase of a job."""
        return str(self.job(name).get("status", {}).get("state", {}).get("phase", ""))

    def groups(self) -> list[Manifest]:
        """All PodGroups."""
        return list(self.objects.get(POD_GROUPS, {}).values())

    def told(self, reason: str) -> Iterator[str]:
        """Texts of the events of a reason."""
        return (event.message for event in self.events if event.reason == reason)


def queue(name: str, state: str = "Open", parent: str = "root", **annotations: str) -> Manifest:
    """A queue as it is stored."""
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"parent": parent, "weight": 1},
            "status": {"state": state}}  # fmt: skip


def task(name: str = "t", replicas: int = 2, **fields: Any) -> Manifest:
    """A task of a job."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"own": "label"}}, "spec": {"containers": [container], **fields.pop("pod", {})}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def job(*tasks: Manifest, name: str = "j", **spec: Any) -> Manifest:
    """A job."""
    metadata = {"name": name, "namespace": "ns", **spec.pop("metadata", {})}
    return {"metadata": metadata, "spec": {"tasks": list(tasks or (task(),)), **spec}}


def started(*tasks: Manifest, running: bool = True, **spec: Any) -> Cluster:
    """A cluster in which a job has got its pods, and these run."""
    cluster = Cluster()
    cluster.store(QUEUES, queue("default"))
    cluster.create(JOBS, job(*tasks, **spec))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    if running:
        cluster.all_pods("Running")
        cluster.settle()
    return cluster
