"""Which steps a search for victims takes: every one where an observer hears of nodes, else those that may matter.

A large cluster has many nodes that cannot help, and many tasks that are alike.  A search leaves out what its outcome
cannot depend on (:class:`Shortcuts`); what it decides is the same either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.model.task import Task
from stromboli.preemption.kept_victims import KeptVictims, placed_alike
from stromboli.preemption.node_order import EveryNode, NodeOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.framework.extension.prefilters import JobPrefilter
    from stromboli.framework.statement.statement import Statement
    from stromboli.preemption.victim_search import Search


class EveryStep:
    """Every node is looked at, and plugins are asked about every candidate.

    ``nodes`` is the order of nodes.  ``kept`` are the victims that plugins have named before, ``prefilter`` rules jobs
    out beforehand; both are None where plugins are asked each time.
    """

    __slots__ = ("kept", "nodes", "prefilter")

    def __init__(self, search: Search) -> None:
        self.nodes = self._order()
        self.kept = self._votes(search)
        self.prefilter = self._ruling_out(search)

    def _order(self) -> NodeOrder:
        return EveryNode()

    def _votes(self, _search: Search) -> KeptVictims | None:
        return None

    def _ruling_out(self, _search: Search) -> JobPrefilter | None:
        return None

    def is_in_vain(self, search: Search, statement: Statement, task: Task) -> bool:
        """Whether it is known without a look that no node will be found for ``task``."""
        return False

    def is_empty(self, search: Search, task: Task, row: int) -> bool:
        """Whether ``row`` is impossible because no task there could be evicted."""
        if search.policy.without_victims or search.reach(task).count[row]:
            return False
        search.events.no_candidates(row)
        return True

    def fits_already(self, search: Search, task: Task, row: int, chosen: Sequence[Task]) -> bool:
        """Whether ``task`` needs no eviction on ``row``; if victims are ``chosen``, it is known to need them."""
        return search.fits(task, row)


class Shortcuts(EveryStep):
    """Nodes without enough victims, jobs without any and questions with known answers are left out."""

    __slots__ = ()

    def _order(self) -> NodeOrder:
        return NodeOrder()

    def _votes(self, search: Search) -> KeptVictims | None:
        vote = search.session.hooks.own_votes.get(search.policy.point)
        return None if vote is None else KeptVictims(search.session, search.order, vote)

    def _ruling_out(self, search: Search) -> JobPrefilter | None:
        return search.session.hooks.job_prefilters.get(search.policy.point)

    def is_in_vain(self, search: Search, statement: Statement, task: Task) -> bool:
        """Whether an equal task has just failed and nothing has changed since, or no node could ever take it.

        Where nodes are sampled the next look sees others.
        """
        failed, placer = search.failed, search.session.placer
        if failed is None or failed[0] != len(statement.operations) or placer.samples:
            return placer.hopeless(task)
        return placed_alike(search.session, task, failed[1]) or placer.hopeless(task)

    def is_empty(self, search: Search, task: Task, row: int) -> bool:
        """Never: the order of nodes leaves such nodes out."""
        return False

    def fits_already(self, search: Search, task: Task, row: int, chosen: Sequence[Task]) -> bool:
        """Whether ``task`` needs no eviction on ``row``; not asked if victims are ``chosen``."""
        return not chosen and search.fits(task, row)


def steps_of(search: Search) -> EveryStep:
    """The steps of ``search``."""
    return EveryStep(search) if search.events.hears_nodes else Shortcuts(search)
