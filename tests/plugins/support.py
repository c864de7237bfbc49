"""A session small enough to ask single hooks of the policy plugins: jobs, queues, sums, and what observers heard."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from stromboli.api.scheduling import Guarantee, PodGroupSpec, PodGroupStatus
from stromboli.cluster.sums import JobSums
from stromboli.framework.books.jobs import Jobs
from stromboli.framework.books.plan import Plan
from stromboli.framework.books.pod_groups import PodGroups
from stromboli.framework.books.queues import Queues
from stromboli.framework.config.compat import Compat
from stromboli.model.job import ALLOCATED, PENDING, PIPELINED, Job, JobFacts
from stromboli.model.podgroup import PodGroup
from stromboli.model.queue import Queue, QueueSpec, QueueStatus
from stromboli.model.resources.axes import Axes, add_to
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import PodSpec
from stromboli.model.status import TaskStatus
from stromboli.model.subjobs import assign
from stromboli.model.task import Placement, PodTemplate, Task
from stromboli.narration.observe import Counting, teller

GPU = "nvidia.com/gpu"


def make_axes():
    return Axes([GPU, "example.com/fpga"])


AXES = make_axes()


def vector(amounts):
    return AXES.vector(Resource.from_list(amounts))


def template(amounts, priority_class=""):
    request = Resource.from_list({**amounts, "pods": 1})
    return PodTemplate(0, PodSpec(priority_class_name=priority_class), request, AXES.vector(request), (100, 200))


def make_task(name="t0", job="ns/j", status=PENDING, priority_class="", last=None, **fields):
    """A task; ``asks`` is its request, cpu 1 unless given; ``last`` a status it had in a discarded statement."""
    asks = fields.pop("asks", {"cpu": 1})
    namespace = fields.pop("namespace", job.partition("/")[0])
    placed = Placement(last, "n0", False) if last else None
    status, key = TaskStatus(status), f"{namespace}/{name}"
    return Task(
        uid=f"{job}/{name}", namespace=namespace, name=name, key=key, job=job, status=status,
        template=template(asks, priority_class), last=placed, **fields,
    )  # fmt: skip


def make_job(uid="ns/j", tasks=(), queue="default", phase="Inqueue", priority=0, created=0, waiting=None, **spec):
    """A job with ``tasks``: Task objects, or a mapping of state names to numbers of tasks that ask for ``asks``."""
    asks = spec.pop("asks", {"cpu": 1})
    namespace, _, name = uid.partition("/")
    group = PodGroup(
        uid=uid, namespace=namespace, name=name, created=created, spec=PodGroupSpec(queue=queue, **spec),
        status=PodGroupStatus(phase=phase),
    )  # fmt: skip
    facts = JobFacts(group, queue)
    facts.priority, facts.waiting_time = priority, waiting
    if (least := group.spec.min_resources) is not None:
        facts.min_resources = Resource.from_list(least)
        facts.min_vector = AXES.vector(facts.min_resources)
    job = Job(uid, facts)
    for task in several(uid, tasks, asks) if isinstance(tasks, dict) else tasks:
        job.add(task)
    return job


def several(uid, counts, asks):
    """So many tasks in each state, placed ones with a node."""
    for state, count in counts.items():
        for number in range(count):
            node = "" if state == "Pending" else "n0"
            yield make_task(f"{state.lower()}-{number}", uid, TaskStatus[state], asks=asks, node_name=node)


def make_queue(name="default", guarantee=None, state="Open", annotations=None, created=0, **spec):
    spec.setdefault("weight", 1)
    if guarantee is not None:
        spec["guarantee"] = Guarantee(resource=guarantee)
    return Queue(
        name=name,
        created=created,
        annotations=annotations or {},
        spec=QueueSpec(**spec),
        status=QueueStatus(state=state),
    )


class FakeSession:
    """What plugins may ask of a session; ``told`` holds what they told, ``events`` and ``conditions`` what they set."""

    def __init__(self, total=None, used=None, queues=(), jobs=(), **settings):
        self.plan = Plan(session="session-1")
        self.uid, self.now, self.axes = "session-1", settings.get("now", 0.0), AXES
        self.table = SimpleNamespace(used=np.array(self.axes.full(vector(used or {}))).reshape(-1, 1))
        self.compat = Compat(settings.get("compat", False))
        self.config = SimpleNamespace(
            features=frozenset(settings.get("features", ())),
            hierarchy_enabled=lambda _plugin: settings.get("hierarchy", False),
        )
        self.observer = Counting(settings.get("keys"))
        self.told = self.observer.of
        self.pod_groups = PodGroups(self.plan, self.now)
        self.jobs = Jobs({job.uid: job for job in jobs})
        queues = {queue.name: queue for queue in queues or [make_queue()]}
        self.snapshot = SimpleNamespace(quotas=settings.get("quotas", {}), queues=queues, axes=AXES, memory={})
        sums, total = self._sums(queues, jobs), self.axes.full(vector(total or {}))
        self.ledger = SimpleNamespace(
            followers=[], total=total, used=self.axes.full(vector(used or {})), queues=sums, above={}
        )
        parts: tuple[Any, Any] = self.snapshot, self.ledger
        self.queues = Queues(*parts, self.plan, lambda _plugin: {}, self.tells)

    def _sums(self, queues, jobs):
        sums = JobSums()
        for job in jobs:
            sums.touch(job)
        sums.renew({job.uid: job for job in jobs}, list(sums.dirty))
        return {name: sums.of(name).copy(self.axes) for name in queues}

    @property
    def events(self):
        return [(e.key, e.type, e.reason, e.message) for e in self.plan.events if e.kind == "PodGroup"]

    @property
    def conditions(self):
        return {uid: conditions[-1] for uid, conditions in self.pod_groups.conditions.items()}

    @property
    def figures(self):
        return {name: queue.figures for name, queue in self.queues.items() if queue.figures}

    def active_jobs(self):
        return self.jobs.peek_unsettled()

    def job_of(self, task):
        return self.jobs.peek_at(task.job)

    def sub_jobs(self, job):
        return assign(job)

    def tells(self, key):
        return teller(self.observer, key)

    def tell(self, key, **fields):
        if say := self.tells(key):
            say(**fields)

    def place(self, task, status=ALLOCATED):
        """Put a pending task into ``status``, or a placed one back to Pending, as a statement would."""
        job, back = self.jobs[task.job], status is PENDING
        task = job.tasks[task.uid]
        held = self.queues[job.queue].sums.held
        assert back or status in (ALLOCATED, PIPELINED)
        add_to(held, task.template.vector, -1 if back else 1)
        job.move([task], status)


def opened(plugin, session):
    """``plugin`` after it has opened ``session``."""
    plugin.on_session_open(session)
    return plugin


def asked(plugin, point, form="scalar"):
    """The one hook of a plugin at a point."""
    (found,) = [function for hook, function in plugin.hooks() if hook.point.name == point and hook.form == form]
    return found
