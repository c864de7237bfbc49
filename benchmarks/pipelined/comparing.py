"""What keeping reservations has changed: figures side by side, and whether they are what was promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.pipelined.chart import Panel, drawn
from benchmarks.pipelined.measuring import Outcome
from benchmarks.pipelined.workloads import Workload

COLUMNS: Final = (
    "workload", "evictions", "fewer", "more in", "of slow victims", "fewer", "for a pod that held room",
    "reservations taken", "gangs", "median s until a gang runs", "use of the cluster",
)  # fmt: skip

SERVED_COLUMNS: Final = ("server", *COLUMNS[:4], *COLUMNS[6:])
"""What can be counted from the watches of a server: where nothing is kept no pod states that it holds room."""

FEWER: Final = 1 / 3
"""The part of the evictions of slow victims that must be saved."""
SAME_USE: Final = 0.01
"""By how much of the cluster its use may differ."""


@dataclass(frozen=True)
class Pair:
    """One history: what it came to with nothing kept, and with reservations kept."""

    seed: int
    off: Outcome
    on: Outcome


Figure = Callable[[Outcome], float]


def cells(workload: Workload, pairs: Sequence[Pair]) -> list[str]:
    """The row of a workload; each figure as it was, and as it is."""
    evictions, slow = (_sums(pairs, figure) for figure in (lambda found: found.evictions, lambda found: found.slow))
    return [
        workload.name,
        _both(evictions),
        _fewer(evictions),
        f"{sum(pair.on.evictions > pair.off.evictions for pair in pairs)} of {len(pairs)}",
        _both(slow),
        _fewer(slow),
        _both(_sums(pairs, lambda found: found.repeated)),
        _both(_sums(pairs, lambda found: found.taken)),
        f"{sum(len(pair.on.waits) for pair in pairs):,}",
        _both(_waits(pairs)),
        " → ".join(f"{use:.1%}" for use in _uses(pairs)),
    ]


def served_cells(workload: Workload, pairs: Sequence[Pair]) -> list[str]:
    """The same of what the watches of a server have shown."""
    name, evictions, fewer, more, _slow, _slower, _repeated, _taken, *others = cells(workload, pairs)
    kept = (sum(figures) for figures in zip(*((pair.on.repeated, pair.on.taken) for pair in pairs), strict=True))
    return [name, evictions, fewer, more, *(f"- → {figure}" for figure in kept), *others]


def complaints(workload: Workload, pairs: Sequence[Pair]) -> list[str]:
    """What is not as promised, a sentence each.

    All is of the histories together: what a scheduler does early decides what it meets later, so that of two ways
    through one history the better one may still come upon more.
    """
    evicted, evicts = _sums(pairs, lambda found: found.evictions)
    slow = _sums(pairs, lambda found: found.slow)
    before, after = _waits(pairs)
    used, uses = _uses(pairs)
    again, taken = (_sums(pairs, figure)[1] for figure in (lambda found: found.repeated, lambda found: found.taken))
    checks = {
        f"evicts {evicts} instead of {evicted}": evicts > evicted,
        f"saves only {_fewer(slow)} of the evictions of slow victims": slow[1] > slow[0] * (1 - FEWER),
        f"evicts {again} pods for others that hold room": again > 0,
        f"lets {taken} reservations be taken": taken > 0,
        f"lets gangs wait {after:.0f} s instead of {before:.0f} s": after > before,
        f"uses {uses:.1%} of the cluster instead of {used:.1%}": uses < used - SAME_USE,
    }
    return [f"{workload.name}: {text}" for text, wrong in checks.items() if wrong]


def chart_of(found: Mapping[Workload, Sequence[Pair]]) -> str:
    """Evictions and waits of every history, as SVG."""
    rows: tuple[tuple[str, Figure], ...] = (
        ("evictions", lambda outcome: float(outcome.evictions)),
        ("median s until a gang runs", lambda outcome: median(outcome.waits.values())),
    )
    return drawn(
        [
            [
                Panel(workload.name, title, [(figure(p.off), figure(p.on)) for p in pairs])
                for workload, pairs in found.items()
            ]
            for title, figure in rows
        ]
    )


def _fewer(figures: tuple[float, float]) -> str:
    off, on = figures
    return f"{1 - on / off:.0%}" if off else "-"


def _both(figures: tuple[float, float]) -> str:
    return " → ".join(f"{figure:,.0f}" for figure in figures)


def _sums(pairs: Sequence[Pair], figure: Figure) -> tuple[float, float]:
    return sum(figure(pair.off) for pair in pairs), sum(figure(pair.on) for pair in pairs)


def _waits(pairs: Sequence[Pair]) -> tuple[float, float]:
    """The median over all gangs of all histories."""
    off, on = (
        [wait for each in which for wait in each.waits.values()] for which in zip(*_outcomes(pairs), strict=True)
    )
    return median(off), median(on)


def _uses(pairs: Sequence[Pair]) -> tuple[float, float]:
    off, on = _sums(pairs, lambda found: found.use)
    return off / len(pairs), on / len(pairs)


def _outcomes(pairs: Sequence[Pair]) -> list[tuple[Outcome, Outcome]]:
    return [(pair.off, pair.on) for pair in pairs]
