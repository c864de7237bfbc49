"""Which objects have to be looked at, and the look itself: everything of the controllers but the API server.

The follower of an API server reports what has been seen and what is gone; :attr:`Manager.ready` is what must be looked
at, each object once however often it changed.  :meth:`Manager.look` answers what is to be done; the runner does it and
says :meth:`Manager.repeat` when that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from stromboli.api.batch import COMMAND_ISSUED, ON_PENDING, ON_UNKNOWN, OUT_OF_SYNC, Job
from stromboli.api.bus import SYNC_QUEUE, Command
from stromboli.api.fields import Metadata, Resource
from stromboli.api.flow import JobTemplate
from stromboli.api.kinds import JOBS, POD_GROUPS
from stromboli.api.scheduling import POD_GROUP_UNKNOWN, PodGroup, Queue
from stromboli.cluster.kinds import OwnerReference
from stromboli.cluster.owners.gangs import Owner
from stromboli.controllers import garbage, pod_groups, queues
from stromboli.controllers.changes import Delete, Outcome, normal
from stromboli.controllers.commands import Commands, Order, order_of
from stromboli.controllers.cron_jobs.history import KIND as CRON_JOB_KIND
from stromboli.controllers.cron_jobs.look import GIVEN_UP, CronJobController
from stromboli.controllers.job_flows import job_templates
from stromboli.controllers.job_flows.look import JobFlowController
from stromboli.controllers.job_flows.steps import KIND as JOB_FLOW_KIND
from stromboli.controllers.jobs.look import about
from stromboli.controllers.jobs.reconcile import JobController
from stromboli.controllers.jobs.requests import Request, of_gone_pod, of_seen_pod
from stromboli.controllers.jobs.states import FINISHED
from stromboli.controllers.pods import JOB_KIND, PodView
from stromboli.controllers.regarding import regarding
from stromboli.controllers.sharding.configuration import Sharding
from stromboli.controllers.sharding.controller import ShardingController
from stromboli.controllers.topology import TopologyController
from stromboli.controllers.work import BY_DEFAULT, About, Work
from stromboli.controllers.world import Key, Shelf, World, key_of, template_of
from stromboli.crds.admission.defaults import completed
from stromboli.job_plugins.registry import JobPlugins
from stromboli.model.names import POD_PENDING

MAKERS: Final = {CRON_JOB_KIND: About.cron_job, JOB_FLOW_KIND: About.job_flow}
"""Kinds that make jobs, and the look that is theirs."""

IDLE_AGAIN: Final = 1.0
"""Seconds until the PodGroup of an owner that is scaled to nothing is looked at again while it has pods."""


R = TypeVar("R", bound=Resource)


@dataclass(frozen=True, slots=True)
class Settings:
    """How the controllers are set up: the flags of Volcano's controller manager.

    ``looks`` are the sorts of looks that are ours; all others are not ours.  ``group_by`` are kinds of owners
    each of which gets one PodGroup for all pods below it.  ``job_plugins`` are what jobs may name.
    ``sharding`` is how nodes are divided where no ConfigMap says it; None for the defaults.
    """

    inherit_owner_annotations: bool = True
    looks: frozenset[About] = BY_DEFAULT
    group_by: frozenset[str] = frozenset()
    job_plugins: JobPlugins = field(default_factory=JobPlugins)
    sharding: Sharding | None = None


DEFAULTS: Final = Settings()


class Manager:
    """All controllers over one world."""

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        self.world = World()
        self.jobs = JobController(self.world, settings.job_plugins)
        self.cron_jobs = CronJobController(self.world)
        self.job_flows = JobFlowController(self.world)
        self.commands = Commands()
        self.topology = TopologyController(self.world, self._ask)
        self.ready: dict[Work, None] = {}
        """What has to be looked at, the longest waiting first."""
        self._settings = settings
        self.sharding = ShardingController(self._ask, settings.sharding)
        self._requests: dict[Key, dict[Request, None]] = {}
        self._in_hand: dict[Key, dict[Request, None]] = {}
        self._actions: dict[str, dict[str, None]] = {}
        self._acting: dict[str, dict[str, None]] = {}
        self._looks: Mapping[About, Callable[[Key, float], Outcome]] = {
            About.job: self._look_at_job,
            About.queue: self._look_at_queue,
            About.pod: self._look_at_pod,
            About.garbage: self._look_at_garbage,
            About.command: self.commands.take,
            About.hyper_node: self.topology.look,
            About.idle_group: self._look_at_idle_group,
            About.cron_job: self.cron_jobs.look,
            About.discovery: self.topology.discover,
            About.job_flow: self.job_flows.look,
            About.sharding: self.sharding.look,
            About.job_template: lambda key, now: job_templates.look(key, self.world),
        }

    # -- What has happened -------------------------------------------------------------------------------------------

    def _ask(self, about: About, keys: Iterable[Key]) -> None:
        """Have objects looked at, if that is ours."""
        if about in self._settings.looks:
            self.ready.update(dict.fromkeys(Work(about, key) for key in keys))

    def ask_job(self, key: Key, request: Request) -> None:
        """Have a job looked at."""
        if About.job not in self._settings.looks:
            return
        self._requests.setdefault(key, {})[request] = None
        self.ready[Work(About.job, key)] = None

    def ask_queue(self, name: str, action: str = SYNC_QUEUE) -> None:
        """Have a queue looked at, synced or opened or closed."""
        if About.queue not in self._settings.looks:
            return
        self._actions.setdefault(name, {})[action] = None
        self.ready[Work(About.queue, ("", name))] = None

    def seen_job(self, job: Job) -> None:
        """A job has come or changed."""
        job = completed(job)
        old = self.world.jobs.put(job)
        if old is job:
            return
        self._ask_owner(job)
        self.jobs.seen(job)
        key = key_of(job)
        phase = job.status.state.phase
        if old is None or old.spec != job.spec or old.status.state.phase != phase:
            self.ask_job(key, Request(OUT_OF_SYNC, job_uid=job.metadata.uid, version=job.status.version))
        if phase in FINISHED and job.spec.ttl_seconds_after_finished is not None:
            self.ready[Work(About.garbage, key)] = None

    def gone_job(self, key: Key) -> None:
        """A job is gone."""
        job = self.world.jobs.drop(key)
        if job is not None:
            self._ask_owner(job)
            self.jobs.forget(job)
            self._requests.pop(key, None)
            self._in_hand.pop(key, None)

    def seen_pod(self, pod: PodView) -> None:
        """A pod has come or changed."""
        old = self.world.pods.put(pod)
        if old is pod:
            return
        if pod.whole is not None and not pod.terminating:
            self.ready[Work(About.pod, pod.key)] = None
        if pod.job:
            key = (pod.namespace, pod.job)
            pods = self.world.pods.of_job(key)
            self.ask_job(key, of_seen_pod(pod, old, self.world.jobs.get(*key), pods))

    def gone_pod(self, key: Key) -> None:
        """A pod is gone."""
        pod = self.world.pods.drop(key)
        if pod is not None and pod.job:
            self.ask_job((pod.namespace, pod.job), of_gone_pod(pod))

    def seen_pod_group(self, group: PodGroup) -> None:
        """A PodGroup has come or changed."""
        old = self.world.pod_groups.put(group)
        if old is group or (old is not None and old.status.phase == group.status.phase):
            return
        self.ask_queue(group.spec.queue)
        self._ask_job_of(group, ON_UNKNOWN if group.status.phase == POD_GROUP_UNKNOWN else OUT_OF_SYNC)

    def gone_pod_group(self, key: Key) -> None:
        """A PodGroup is gone."""
        group = self.world.pod_groups.drop(key)
        if group is not None:
            self.ask_queue(group.spec.queue)
            self._ask_job_of(group, OUT_OF_SYNC)

    def deleted(self, resource: str, key: Key, uid: str) -> None:
        """A PodGroup or a job was deleted by us: nothing that is still told of it counts."""
        shelves: dict[str, Shelf[Any]] = {POD_GROUPS: self.world.pod_groups, JOBS: self.world.jobs}
        if (shelf := shelves.get(resource)) is None:
            return
        shelf.bury(uid)
        known = shelf.get(*key)
        if known is not None and known.metadata.uid == uid:
            (self.gone_job if resource == JOBS else self.gone_pod_group)(key)

    def _ask_job_of(self, group: PodGroup, event: str) -> None:
        for owner in group.metadata.owner_references:
            if owner.kind == JOB_KIND and owner.controller:
                key = (group.metadata.namespace, owner.name)
                job = self.world.jobs.get(*key)
                version = job.status.version if job else 0
                self.ask_job(key, Request(event, job_uid=owner.uid, version=version))

    def seen_queue(self, queue: Queue) -> None:
        """A queue has come or changed."""
        old = self.world.queues.put(queue)
        if old is queue:
            return
        name = queue.metadata.name
        if old is None or old.spec.parent != queue.spec.parent or old.status.state != queue.status.state:
            self.ask_queue(name)
            for child in self.world.queues.children(name):
                self.ask_queue(child.metadata.name)

    def gone_queue(self, key: Key) -> None:
        """A queue is gone."""
        self.world.queues.drop(key)
        self._actions.pop(key[1], None)

    def seen_command(self, command: Command) -> None:
        """A command has been issued."""
        if self.commands.put(command) is not command and self._is_ours(command):
            self.ready[Work(About.command, key_of(command))] = None

    def _is_ours(self, command: Command) -> bool:
        """Whether we look at what the command is about."""
        looks = {JOB_KIND: About.job, "Queue": About.queue}
        order = order_of(command)
        return order is None or looks.get(order.kind, About.command) in {About.command, *self._settings.looks}

    def seen(self, about: About, shelf: Shelf[R], found: R) -> None:
        """An object of a kind that is looked at whatever has changed has come or changed."""
        if shelf.put(found) is not found:
            self.ready[Work(about, key_of(found))] = None

    def seen_job_template(self, found: JobTemplate) -> None:
        """A JobTemplate has come or changed: flows may wait for it."""
        self.seen(About.job_template, self.world.job_templates, found)
        namespace, name = key_of(found)
        flows = self.world.job_flows.under(f"{namespace}.{name}")
        self.ready.update(dict.fromkeys(Work(About.job_flow, key_of(flow)) for flow in flows))

    def _ask_owner(self, job: Job) -> None:
        """Have the object looked at that made a job, and the template that it was made of."""
        namespace, _, template = template_of(job).partition(".")
        if template and namespace == job.metadata.namespace:
            self.ready[Work(About.job_template, (namespace, template))] = None
        for owner in job.metadata.owner_references:
            if owner.controller and owner.kind in MAKERS:
                self.ready[Work(MAKERS[owner.kind], (job.metadata.namespace, owner.name))] = None

    def seen_owner(self, kind: str, metadata: Metadata, replicas: int | None) -> None:
        """An owner of plain pods has come or changed; without replicas its PodGroup is not needed."""
        key = (kind, metadata.namespace, metadata.name)
        above = (
            OwnerReference(owner.api_version, owner.kind, owner.name, owner.uid, controller=True)
            for owner in metadata.owner_references
            if owner.controller
        )
        self.world.owners[key] = Owner(metadata.uid, metadata.annotations, next(above, None))
        group = (metadata.namespace, f"podgroup-{metadata.uid}")
        if replicas == 0 and kind in pod_groups.SCALED:
            self.world.idle.add(group)
            self.ready[Work(About.idle_group, group)] = None
        else:
            self.world.idle.discard(group)

    # -- Looking -----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Take up the actions that policies have put off until now."""
        for key, request in self.jobs.timers.due(now):
            if request.event != ON_PENDING or self._is_pending(key, request):
                self.ask_job(key, request)

    def _is_pending(self, job: Key, request: Request) -> bool:
        """Whether the pod that an action was put off for still waits: one that we deleted tells no event of its own."""
        pod = self.world.pods.of_job(job).get(request.pod)
        return pod is not None and pod.uid == request.pod_uid and pod.phase == POD_PENDING and not pod.terminating

    def look(self, work: Work, now: float) -> Outcome:
        """What is to be done about one object; it leaves :attr:`ready`."""
        self.ready.pop(work, None)
        if work.about not in self._settings.looks and work.about is not About.command:
            return Outcome()
        return self._looks[work.about](work.key, now)

    def settled(self, work: Work) -> None:
        """What the last look at an object asked for has been done."""
        if work.about is About.job:
            self._in_hand.pop(work.key, None)
        elif work.about is About.queue:
            self._acting.pop(work.key[1], None)

    def repeat(self, work: Work) -> None:
        """What the last look at an object asked for has failed: have it looked at again, for the same reasons."""
        if work.about is About.job:
            for request in self._in_hand.pop(work.key, {}):
                self.ask_job(work.key, request)
        elif work.about is About.queue:
            for action in self._acting.pop(work.key[1], {}):
                self.ask_queue(work.key[1], action)
        self.ready[work] = None

    def give_up(self, work: Work) -> Outcome:
        """What is done about an object that has failed too often."""
        if work.about is About.command:
            self.commands.taking.pop(work.key, None)
        elif work.about is About.queue:
            self._acting.pop(work.key[1], None)
        if work.about in MAKERS.values() and regarding(work, self.world):
            return Outcome(after=GIVEN_UP)
        if work.about is not About.job:
            return Outcome()
        job = self.world.jobs.get(*work.key)
        actions = [request.action for request in self._in_hand.pop(work.key, {}) if request.action]
        if job is None:
            return Outcome()
        outcome, request = self.jobs.given_up(job, actions[0] if actions else "SyncJob")
        self.ask_job(work.key, request)
        return outcome

    def _look_at_job(self, key: Key, now: float) -> Outcome:
        requests = self._in_hand[key] = self._requests.pop(key, {})  # they come again, too, if the look itself fails
        outcome, left = self.jobs.look(key, list(requests), now)
        self._in_hand[key] = {request: None for request in requests if request not in left}
        for request in left:
            self.ask_job(key, request)
        return outcome

    def _look_at_queue(self, key: Key, now: float) -> Outcome:
        outcome = Outcome()
        self._acting[key[1]] = self._actions.pop(key[1], {SYNC_QUEUE: None})
        for action in self._acting[key[1]]:
            outcome.batches += queues.look(key[1], action, self.world).batches
        return outcome

    def _look_at_pod(self, key: Key, now: float) -> Outcome:
        pod = self.world.pods.objects.get(key)
        if pod is None or pod.whole is None:
            return Outcome()
        how = pod_groups.Grouping(self._settings.inherit_owner_annotations, self._settings.group_by)
        return pod_groups.look(pod.whole, self.world, how, now)

    def _look_at_garbage(self, key: Key, now: float) -> Outcome:
        job = self.world.jobs.get(*key)
        return Outcome() if job is None else garbage.collect(job, now)

    def _look_at_idle_group(self, key: Key, now: float) -> Outcome:
        """The PodGroup goes once no pod is left: one that came before the news of its owner would wait for ever."""
        group = self.world.pod_groups.get(*key)
        if group is None or key not in self.world.idle:
            self.world.idle.discard(key)
            return Outcome()
        if self.world.pods.stand_in(key):
            return Outcome(after=IDLE_AGAIN)
        self.world.idle.discard(key)
        return Outcome().then(Delete(POD_GROUPS, *key, group.metadata.uid))

    def carry_out(self, key: Key) -> Outcome:
        """A command has been deleted by us, so that no other controller carries it out."""
        order = self.commands.taken(key)
        if order is None:
            return Outcome()
        if order.kind == JOB_KIND:
            return self._order_job(order)
        if order.kind == "Queue":
            self.ask_queue(order.key[1], order.action)
        return Outcome()

    def _order_job(self, order: Order) -> Outcome:
        job = self.world.jobs.get(*order.key)
        if job is None or (order.uid and order.uid != job.metadata.uid):
            return Outcome()
        self.ask_job(order.key, order.request)
        return Outcome().then(normal(about(job), COMMAND_ISSUED, order.message, happened=True))
