"""What evicting actions did for one job, heard while a cycle runs: nodes tried, votes, victims, and what failed.

The cycle is run for this alone, on the cluster as it stood before; no other cycle pays for such listening.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stromboli.actions import preempt, reclaim
from stromboli.actions.gangpreempt import GangPreempt
from stromboli.actions.gangreclaim import GangReclaim
from stromboli.framework.books.hyper_nodes import TOP
from stromboli.framework.extension.answers import Answer
from stromboli.framework.extension.guards import common
from stromboli.framework.session.session import Session
from stromboli.framework.session.victim_order import VictimOrder
from stromboli.model.job import BOUND, PIPELINED, RUNNING, Job
from stromboli.model.task import Task
from stromboli.preemption.gang_eviction import offers_itself
from stromboli.sim.explanation.notes import Hearing, Refused

POINTS: Final[Mapping[str, str]] = {
    "preempt": "preemptable", "reclaim": "reclaimable",
    "gangpreempt": "unified_evictable", "gangreclaim": "unified_evictable",
}  # fmt: skip
"""Actions that are explained, and the point at which they ask for victims."""

REFUSALS: Final[Mapping[str, str]] = {
    "gang_refused": "{name}: ready {ready} <= minAvailable {min_available}",
    "priority_refused_job": "a job of priority {preemptee} is not below {preemptor}",
    "priority_refused_task": "a pod of priority {preemptee} is not below {preemptor}",
    "drf_refused": "share with this task {preemptor_share:.4f} > victim's share without its task {preemptee_share:.4f}",
    "capacity_spared_guarantee": "queue {queue} would be left with less than its guarantee <{guarantee}>",
    "capacity_spared_deserved": "queue {queue}: allocated <{allocated}> within deserved <{deserved}> of what they ask",
    "capacity_spared_family": "queue {queue} is a relative, and neither queue deserves what is asked for",
    "spared": "{why}",
}
"""Why one candidate is spared, by the key under which the plugin says it."""

QUOTA: Final[Mapping[str, str]] = {"proportion_refused": "proportion", "capacity_refused": "capacity"}


@dataclass
class Ballot:
    """What one plugin said about the candidates of a node: so many named, and why others are spared."""

    plugin: str
    tier: int
    named: int
    candidates: int
    why: dict[str, int] = field(default_factory=dict)


@dataclass
class Look:
    """One node tried for one task: the ballots, what is lacking, the victims, the queue's answer, the outcome.

    Of a gang action: one domain for a whole job; ``places`` is how many of its tasks wait there then.
    """

    task: str
    node: str
    candidates: int
    ballots: list[Ballot]
    agreed: int
    lack: str = ""
    tried: list[str] = field(default_factory=list)
    quota: Refused | None = None
    reserved: bool = False
    places: int = 1


@dataclass
class Start:
    """The job and its candidates when the action came to it; ``dropped`` counts pods on nodes by why they are out."""

    action: str
    ready: int
    waiting: int
    minimum: int
    pending: int
    pods: int
    nodes: int
    left: int
    dropped: dict[str, int]


class EvictionTrace(Hearing):
    """An observer of one job's way through the evicting actions; give it the ``session`` before they run."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.session: Session | None = None
        self.starts: list[Start] = []
        self.looks: list[Look] = []
        self.failures: dict[str, str] = {}
        self.content: tuple[int, int, int] | None = None
        self.excluded = ""
        self.postponed = ""
        self._action = ""
        self._within = False
        self._ballot: Ballot | None = None
        self._open: Look | None = None
        hears: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "considering_node": self._consider, "no_victims": self._lack, "preempt_victim": self._tried,
            "reclaim_victim": self._tried, "after_pipelined": self._reserved, "preempt_failed": self._failed,
            "reclaim_refused": self._refused_by_name, "reclaim_never": self._never, "no_preemptors": self._phase_over,
            "preempt_not_starving": self._content, "reclaim_not_starving": self._content,
            "preempt_job_topology": self._topology, "queue_overused": self._overused,
            "queue_closed_allocate": self._closed, "preemptees": self._consider, "preempt_no_candidate": self._lack,
            "gang_domain": self._consider_domain, "gang_evicts": self._gang_evicts,
            "gang_reclaim_refused": self._gang_refused, "eviction_postponed": self._postponed,
            "eviction_not_sought": self._not_sought,
        }  # fmt: skip
        spared = {key: self._spares(text) for key, text in REFUSALS.items()}
        quota = {key: self._quota(plugin) for key, plugin in QUOTA.items()}
        self.hears = {**hears, **spared, **quota}

    # ------------------------------------------------------------------ an observer

    def started(self, kind: str, name: str) -> None:
        """As an evicting action starts, count the tasks that the job might evict."""
        if kind == "action":
            self._action, self._within, self._open = name, False, None
            if name in POINTS and self.session is not None and (job := self.session.jobs.peek_at(self.uid)):
                self.starts.append(start_of(self.session, job, name))

    def ended(self, kind: str, name: str) -> None:
        """Nothing is left open."""
        if kind == "action":
            self._open = None

    # ------------------------------------------------------------------ what is heard

    def _consider(self, fields: Mapping[str, Any]) -> None:
        task, session = fields["task"], self.session
        self._open = None
        if session is None or self._within or task.job != self.uid:
            return
        row = session.table.row(str(fields["node"]))
        job = session.jobs[self.uid]
        within = session.candidates.reach(scope_of(session, job, self._action), bound=self._action == "preempt")
        order = VictimOrder(session, session.queues.get(job.queue))
        candidates = order.sorted(within.tasks(row))
        agreed = getattr(session.ask, POINTS[self._action])(task, candidates)
        ballots = self._vote(session, task, candidates, agreed)
        self._open = Look(task.key, str(fields["node"]), len(candidates), ballots, len(agreed))
        self.looks.append(self._open)

    def _consider_domain(self, fields: Mapping[str, Any]) -> None:
        """A gang action looks at a domain; that it fails is known unless its evictions are told."""
        session, candidates, allowed = self.session, fields["candidates"], fields["allowed"]
        if session is None or fields["job"].uid != self.uid:
            return
        ballots = self._vote(session, fields["context"], candidates, allowed)
        where = "all nodes" if fields["domain"] == TOP else f"hypernode {fields['domain']}"
        look = Look(self.uid, where, len(candidates), ballots, len(allowed))
        look.lack = f"need <{fields['need']}>, idle <{fields['idle']}>, bundles that may go <{fields['gain']}>"
        self.looks.append(look)

    def _gang_evicts(self, fields: Mapping[str, Any]) -> None:
        if fields["job"].uid == self.uid:
            look = self.looks[-1]
            look.reserved, look.lack = True, ""
            look.tried = [victim.key for victim in fields["victims"]]
            look.places = fields["job"].number(PIPELINED)

    def _gang_refused(self, fields: Mapping[str, Any]) -> None:
        if fields["job"].uid == self.uid:
            self.excluded = f"queue {fields['queue']} may not take back so much"

    def _vote(
        self, session: Session, actor: object, candidates: Sequence[Task], agreed: Sequence[Task]
    ) -> list[Ballot]:
        """Every plugin asked on its own, so that its refusals are known as its own; guards first, by each candidate.

        A guard that lets each candidate go, but not all together, is asked about those not in ``agreed``.
        """
        answers = session.hooks.answers.of(POINTS[self._action])
        absolute = not session.compat.asks("protections-absolute")
        guards = [answer for answer in answers if answer.hook.protects and absolute]
        found = {id(a): Ballot(a.plugin.name, a.tier + 1, 0, len(candidates)) for a in answers}
        voted = standing = self._ask_guards(actor, candidates, guards, found)
        for answer in answers:
            if answer not in guards:
                self._ballot = ballot = found[id(answer)]
                named = answer.function(actor, standing)
                ballot.candidates, ballot.named = len(standing), len(standing if named is None else named)
                voted = voted if named is None else common(voted, named)
        self._ask_together(actor, agreed, [task for task in voted if task not in agreed], guards, found)
        self._ballot = None
        return list(found.values())

    def _ask_guards(
        self, actor: object, candidates: Sequence[Task], guards: Sequence[Answer], found: Mapping[int, Ballot]
    ) -> Sequence[Task]:
        """The candidates that no guard refuses, each asked on its own."""
        for guard in guards:
            self._ballot = ballot = found[id(guard)]
            ballot.candidates = len(candidates)
            candidates = [task for task in candidates if guard.function(actor, [task]) != []]
            ballot.named = len(candidates)
        return candidates

    def _ask_together(
        self, actor: object, agreed: Sequence[Task], others: Sequence[Task], guards: Sequence[Answer],
        found: Mapping[int, Ballot],
    ) -> None:  # fmt: skip
        """Ask the guards about each of ``others`` together with those that were ``agreed``, to hear why not."""
        for guard in guards:
            self._ballot = found[id(guard)]
            for task in others:
                guard.function(actor, [*agreed, task])

    def _spares(self, text: str) -> Callable[[Mapping[str, Any]], None]:
        def hear(fields: Mapping[str, Any]) -> None:
            if self._ballot is not None:
                why = text.format(**fields)
                self._ballot.why[why] = self._ballot.why.get(why, 0) + 1

        return hear

    def _quota(self, plugin: str) -> Callable[[Mapping[str, Any]], None]:
        def hear(fields: Mapping[str, Any]) -> None:
            if self._open is not None and not self._open.reserved:
                self._open.quota = Refused(str(fields["queue"]), plugin, fields)

        return hear

    def _closed(self, fields: Mapping[str, Any]) -> None:
        if self._open is not None and not self._open.reserved:
            self._open.quota = Refused(str(fields["queue"]), "", {}, str(fields["state"]))

    def _lack(self, fields: Mapping[str, Any]) -> None:
        if self._open is not None:
            self._open.lack = str(fields["error"])

    def _tried(self, fields: Mapping[str, Any]) -> None:
        if (look := self._look_at(fields["task"], fields["victim"].node_name)) is not None:
            look.tried.append(fields["victim"].key)

    def _reserved(self, fields: Mapping[str, Any]) -> None:
        if (look := self._look_at(fields["task"], str(fields["node"]))) is not None:
            look.reserved = True
            self._open = None

    def _look_at(self, task: Task, node: str) -> Look | None:
        """The last look at ``node`` for ``task``, while its search goes on: dry runs look at several and choose."""
        if self._open is None:
            return None
        return next((look for look in reversed(self.looks) if (look.task, look.node) == (task.key, node)), None)

    def _failed(self, fields: Mapping[str, Any]) -> None:
        if fields["task"].job == self.uid and not self._within:
            self.failures.setdefault(fields["task"].key, str(fields["error"]))
        self._open = None

    def _never(self, fields: Mapping[str, Any]) -> None:
        if fields["task"].job == self.uid:
            self.failures.setdefault(fields["task"].key, "preemptionPolicy Never")

    def _refused_by_name(self, fields: Mapping[str, Any]) -> None:
        self.failures.setdefault(str(fields["name"]), f"queue {fields['queue']} may take no more back")

    def _overused(self, fields: Mapping[str, Any]) -> None:
        job = self.session.jobs.peek_at(self.uid) if self.session else None
        if job is not None and job.queue == fields["queue"] and self._action in POINTS:
            self.excluded = f"queue {job.queue} holds all that it deserves"

    def _phase_over(self, fields: Mapping[str, Any]) -> None:
        job = self.session.jobs.peek_at(self.uid) if self.session else None
        self._within = self._within or (job is not None and job.queue == fields["queue"])

    def _content(self, fields: Mapping[str, Any]) -> None:
        if fields["job"].uid == self.uid and not self.looks:  # else an action before has found it what it needs
            self.content = (fields["ready"], fields["waiting"], fields["min_available"])

    def _topology(self, fields: Mapping[str, Any]) -> None:
        if fields["job"].uid == self.uid:
            self.excluded = "jobs containing networkTopology do not support preemption"

    def _postponed(self, fields: Mapping[str, Any]) -> None:
        if fields["job"].uid == self.uid:
            text = "waits until {until} at the latest: the slowest of {victims} victims takes {grace} s to end"
            self.postponed = text.format_map(fields)

    def _not_sought(self, fields: Mapping[str, Any]) -> None:
        if fields["job"].uid == self.uid:
            text = "waits until {until} at the latest: the victims that it found earlier are slow to end"
            self.postponed = text.format_map(fields)


def scope_of(session: Session, job: Job, action: str) -> Callable[[Job], bool]:
    """Which jobs ``job`` may take from in ``action``."""
    if gang := GANGS.get(action):
        return lambda other: offers_itself(other) and gang.may_lose(session, job, other)
    return preempt.scope(job) if action == "preempt" else reclaim.scope(session, job)


GANGS: Final = {"gangpreempt": GangPreempt(), "gangreclaim": GangReclaim()}


def start_of(session: Session, job: Job, action: str) -> Start:
    """Count the pods on nodes, and why they are out of the question for ``job``."""
    within, dropped = scope_of(session, job, action), dict[str, int]()
    pods = left = 0
    rows = set()
    allowed = (BOUND, RUNNING) if action in ("preempt", "gangpreempt") else (RUNNING,)
    for task, row in session.snapshot.pods_on_nodes():
        pods += 1
        rows.add(row)
        why = _out(session, job, task, allowed, within, action)
        if why:
            dropped[why] = dropped.get(why, 0) + 1
        else:
            left += 1
    figures = job.ready_task_num(), job.waiting_task_num(), job.min_available
    return Start(action, *figures, len(job.tasks), pods, len(rows), left, dropped)


def _out(
    session: Session, job: Job, task: Task, allowed: Sequence[object], within: Callable[[Job], bool], action: str
) -> str:
    """Why a pod is no candidate; empty if it is one."""
    other = session.job_of(task)
    if other is None:
        return "without a job"
    if other.tasks[task.uid].status not in allowed:
        return "not running"
    if not within(other):
        if other.uid == job.uid:
            return "of the job itself"
        return _out_of_scope(job, other, action)
    return "" if task.preemptable else "marked not preemptable"


def _out_of_scope(job: Job, other: Job, action: str) -> str:
    if action in GANGS and not offers_itself(other):
        return "of gangs marked not preemptable"
    if action == "gangpreempt" and other.queue == job.queue:
        return "of jobs that are not less important"
    return "in other queues" if other.queue != job.queue else "in the same queue"
