"""overcommit: lets no more PodGroups in than the cluster, taken a little larger than it is, has room for.

With the feature gate QueueScopedOvercommit a queue may have a factor of its own, for what it deserves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stromboli.fairness.quota import OURS, Quota, flat, tree
from stromboli.framework.config.gates import QUEUE_OVERCOMMIT
from stromboli.framework.extension.weighing import MIN_RESOURCES, Term, Weighed, by_column
from stromboli.model import names
from stromboli.model.job import Job
from stromboli.model.jobs.min_resources import without_gated
from stromboli.model.resources.amounts import totals
from stromboli.model.resources.axes import PODS, add_to, amount_at
from stromboli.plugin import Plugin, arg, job_enqueueable, job_enqueued

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.jobs import QueueInfo

PERMIT, REJECT = 1, -1

DEFAULT_FACTOR = 1.2


def at_least_one(factor: float) -> str:
    """Refuse a factor that would make the cluster smaller than it is."""
    if factor >= 1.0:
        return ""
    return (
        f"Invalid input {factor:f} for overcommit-factor, reason: overcommit-factor cannot be less than 1,"
        f" using default value: {DEFAULT_FACTOR:f}."
    )


_DECIMAL = re.compile(r"[+]?(\d++\.?\d*+|\.\d++)", re.ASCII)


def finite_at_least_one(factor: float) -> str:
    """Refuse a largest factor of queues that is none."""
    return "" if 1.0 <= factor < math.inf else f"{factor} is no finite number of at least 1; overcommit-factor counts"


class Overcommit(Plugin, trusted=True):
    """Admits a PodGroup while its minResources, with those admitted before, fit into the idle amount.

    idle = total x ``overcommit-factor`` - used.  Only what a PodGroup asks for is compared.  What was admitted counts
    in full until the job runs, then with the part of its minResources that it still lacks.

    Where queues may have factors of their own (annotation ``volcano.sh/overcommit-factor``), what such a queue and
    those below it hold and have admitted must also stay within what it deserves times that factor; no factor counts
    for more than ``max-queue-overcommit-factor``.
    """

    name = "overcommit"
    factor = arg("overcommit-factor", float, DEFAULT_FACTOR, at_least_one)
    max_queue_factor = arg("max-queue-overcommit-factor", float, 0.0, finite_at_least_one)

    def on_session_open(self, session: ClusterView) -> None:
        """Work out what is idle and what admitted jobs will need."""
        self.session, self.axes = session, session.axes
        self.say_best_effort = session.tells("overcommit_best_effort")
        self.say_permitted = session.tells("overcommit_permitted")
        self.say_refused = session.tells("overcommit_refused")
        used = session.axes.full(totals(session.table.used))  # a queue may name what no node has
        total = session.axes.full(session.ledger.total)
        self.idle = [amount * self.factor - taken for amount, taken in zip(total, used, strict=True)]
        self.admitted = session.axes.full(())
        for queue in session.queues.values():
            add_to(self.admitted, queue.sums.admitted)
        scoped = QUEUE_OVERCOMMIT in session.config.features
        self.budgets = Budgets(session, self.name, self.max_queue_factor or self.factor) if scoped else None
        session.tell("overcommit_entered")

    def on_session_close(self, session: ClusterView) -> None:
        """Nothing is kept."""
        session.tell("overcommit_left")

    @job_enqueueable
    def has_room(self, job: Job) -> int:
        """Permit or reject; a job without minResources is always let in."""
        if job.facts.min_resources is None:
            if self.say_best_effort:
                self.say_best_effort(job=job.uid)
            return PERMIT
        short = self._short_of(job)
        say = self.say_refused if short else self.say_permitted
        if say:
            say(job=job.uid)
        message = overused("resource in cluster is overused", short) if short else self._beyond_budget(job)
        if not message:
            return PERMIT
        self.session.pod_groups.record_event(job, names.EVENT_NORMAL, names.EVENT_UNSCHEDULABLE, message)
        return REJECT

    def _beyond_budget(self, job: Job) -> str:
        return self.budgets.refusal(job) if self.budgets is not None else ""

    def weighed(self, job: Job) -> Weighed:
        """What was admitted before, with minResources, against what is idle."""
        numbers = by_column(self.session, job, {"admitted": self.admitted, "idle": self.idle})
        terms = (Term("admitted", "admitted jobs"), MIN_RESOURCES)
        return Weighed(numbers, terms, "idle", "idle {} (overcommit-factor included)")

    @job_enqueued
    def admit(self, job: Job) -> None:
        """Count the job's minResources, less pods that gates keep back, against later ones."""
        if job.facts.min_resources is not None:
            least = without_gated(job, job.facts.min_vector)
            add_to(self.admitted, least)
            if self.budgets is not None:
                self.budgets.admit(job, least)

    def _short_of(self, job: Job) -> list[str]:
        """Names of what the job asks for and the cluster lacks, in the order of shortages."""
        amounts = enumerate(zip(job.facts.min_vector, self.admitted, self.idle, strict=False))
        over = {column for column, (wanted, taken, idle) in amounts if wanted and taken + wanted > idle}
        return self.axes.names_of(over - {PODS}, job.facts.min_resources) if over else []


def overused(what: str, dimensions: list[str]) -> str:
    """The refusal that names what is overused."""
    return f"{what}: " + ", ".join(f"overused {name}" for name in dimensions)


def read_factor(text: str) -> float:
    """The factor that a Queue's annotation states: a plain decimal of at least 1; 0 for anything else."""
    factor = float(text) if _DECIMAL.fullmatch(text) else 0.0
    return factor if 1.0 <= factor < math.inf else 0.0


class Budgets:
    """What queues with a factor of their own, and all below them, may hold and have admitted together.

    Of every dimension that ``spec.deserved`` names: min(real capability, max(deserved, guarantee) x factor), whatever
    plugin shares the cluster out.  Root has no budget: it stands for the cluster.
    """

    def __init__(self, session: ClusterView, plugin: str, most: float) -> None:
        self._session, self._most = session, most
        queues = [info.queue for info in session.queues.values()]
        is_tree = session.config.hierarchy_enabled(plugin) or session.config.hierarchy_enabled("capacity")
        total = session.axes.resource(session.ledger.total)
        self._quotas = (tree if is_tree else flat)(queues, total, most=session.queues.most_of(total))
        if is_tree:
            session.queues.sum_branches({name: quota.ancestors for name, quota in self._quotas.items()})
        self._inqueue = {name: session.axes.full(()) for name in self._quotas}
        for name, quota in self._quotas.items():
            for each in (name, *quota.ancestors):
                add_to(self._inqueue[each], session.queues[name].sums.inqueue)
        budgets = {name: self._budget(session.queues[name], quota) for name, quota in self._quotas.items()}
        self._budgets = {name: budget for name, budget in budgets.items() if budget is not None}

    def _budget(self, queue: QueueInfo, quota: Quota) -> Mapping[int, float] | None:
        """Limits by column; empty where the annotation cannot be used, None where there is none."""
        text = queue.annotations.get(names.OVERCOMMIT_FACTOR)
        if text is None or queue.name == names.ROOT_QUEUE:
            return None
        factor = read_factor(text)
        if not factor:
            return {}
        deserved, factor = OURS.resource(queue.spec.deserved), min(factor, self._most)
        named = [name for name in deserved.names() if name != names.PODS]
        wished = {name: max(deserved.get(name), quota.guarantee.get(name)) * factor for name in named}
        column, limit = self._session.axes.column, quota.real_capability
        return {column(name): min(limit.get(name), amount) for name, amount in wished.items()}

    def refusal(self, job: Job) -> str:
        """Why the job must wait: the first queue on the way to the root whose budget it exceeds; empty if none."""
        quota = self._quotas.get(job.queue)
        for name in (job.queue, *reversed(quota.ancestors)) if quota else ():
            budget = self._budgets.get(name)
            if budget is not None and not budget:
                return f"queue {name} has no usable {names.OVERCOMMIT_FACTOR}"
            if budget and (short := self._short_of(name, budget, job)):
                return overused(f"resource in queue {name} is overused", short)
        return ""

    def _short_of(self, name: str, budget: Mapping[int, float], job: Job) -> list[str]:
        held, coming, least = self._session.queues[name].branch, self._inqueue[name], job.facts.min_vector
        asked = {column: least[column] for column in budget if column < len(least) and least[column]}
        over = {c for c, more in asked.items() if amount_at(held, c) + amount_at(coming, c) + more > budget[c]}
        return self._session.axes.names_of(over, job.facts.min_resources)

    def admit(self, job: Job, least: list[int]) -> None:
        """Count the job's minResources in its queue and all above it."""
        quota = self._quotas.get(job.queue)
        for name in (job.queue, *quota.ancestors) if quota else ():
            add_to(self._inqueue[name], least)
