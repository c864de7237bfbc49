"""Why another scheduler has decided otherwise: which rows of the compatibility table make the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.compat import DIFFERENCES
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.capabilities import NOTHING
from stromboli.live.shadow.differences import Difference, What
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT, Observer

DRAWS: Final = 4
"""Seeds with which the choice among equal nodes is repeated."""

EQUAL: Final = "several nodes are equally good for it, and of those the other draws one"
UNKNOWN: Final = (
    "no row of docs/compatibility.md makes this difference; the cluster may have been another one in the moment of the"
    " other's decision, or its configuration is another one"
)
BEYOND: Final = "not found out: so many differences came at once, or plans take so long"

RESTORABLE: Final = tuple(name for name, row in DIFFERENCES.items() if row.restored)


class TookTooLong(Exception):
    """No further plan is made, as the search has taken long enough.  It never leaves the search."""


def never() -> bool:
    """A search that may take as long as it takes."""
    return False


class Moment(NamedTuple):
    """What a plan of ours was made from.

    ``offered`` is what plugins may ask for beyond the snapshot: without it they would decide otherwise than they did,
    and the difference would look like one of the rows.  The same gives the same plan unless they ask the cluster,
    which goes on; each of their calls may take a while, so ``late`` is asked before each plan.
    """

    snapshot: Snapshot
    config: Config
    registry: Registry
    now: float
    seed: int
    offered: Mapping[str, object] = NOTHING
    late: Callable[[], bool] = never

    def plan(self, rows: Iterable[str] = (), seed: int | None = None, observer: Observer = SILENT) -> Plan:
        """The plan that is made with ``rows`` as in the reference, and with a ``seed``, equals drawn.

        Raises TookTooLong.
        """
        if self.late():
            raise TookTooLong
        config = replace(self.config, rows=frozenset(rows))
        if seed is not None:
            config = replace(config, tie_break="seeded")
        drawn = self.seed if seed is None else seed
        return run_cycle(self.snapshot, config, self.registry, self.now, drawn, observer, self.offered)


def has(plan: Plan, found: Difference) -> bool:
    """Whether a plan decides as the other has."""
    bound = next((one.node for one in plan.binds if one.uid == found.uid), "")
    if found.what in (What.elsewhere, What.bound_there):
        return bound == found.there
    if found.what is What.bound_here:
        return not bound
    return any(one.uid == found.uid for one in plan.evictions) is (found.what is What.evicted_there)


def rows_of(moment: Moment, decides: Callable[[Plan], bool], first: Sequence[str] = ()) -> tuple[str, ...]:
    """The fewest rows found with which a plan ``decides`` so; none where all of them together do not.

    ``first`` are tried before the others: what made the last differences often makes the next.
    """
    if not decides(moment.plan(RESTORABLE)):
        return ()
    for row in (*first, *(row for row in RESTORABLE if row not in first)):
        if decides(moment.plan([row])):
            return (row,)
    needed = list(RESTORABLE)
    for row in RESTORABLE:
        fewer = [one for one in needed if one != row]
        if decides(moment.plan(fewer)):
            needed = fewer
    return tuple(needed)


def is_drawn(moment: Moment, found: Difference) -> bool:
    """Whether the pod's node is one of several that are equally good: another draw gives another one."""
    nodes = {one.node for draw in range(DRAWS) for one in moment.plan(seed=draw).binds if one.uid == found.uid}
    return len(nodes) > 1


def why(moment: Moment, found: Difference, first: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """The reason of a difference in words, and the rows that it names; :data:`BEYOND` once the moment is late."""
    try:
        return _why(moment, found, first)
    except TookTooLong:
        return BEYOND, ()


def _why(moment: Moment, found: Difference, first: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if found.what is What.elsewhere and is_drawn(moment, found):
        return EQUAL, ()
    rows = rows_of(moment, lambda plan: has(plan, found), first)
    if not rows:
        return UNKNOWN, ()
    return "; ".join(f"{row}: {DIFFERENCES[row].ours}" for row in rows), rows
