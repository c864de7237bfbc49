"""The figures that reports show first: what they are called, in which unit, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

Format = Callable[[float], str]


def duration(seconds: float) -> str:
    """Seconds as people say them: ``45 s``, ``12 min``, ``3.4 h``, ``2.1 d``."""
    size = abs(seconds)
    for least, unit, name in ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (120, 60, "min")):
        if size >= least:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def percent(part: float) -> str:
    """A part as percent."""
    return f"{100 * part:.3g} %"


def number(value: float) -> str:
    """A number with four digits."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


class Shown(NamedTuple):
    """A figure: its title, how it is written, what it is in a sentence, and the formula."""

    title: str
    form: Format
    meaning: str
    formula: str


FIGURES: Final = {
    "mean_wait": Shown("Mean wait", duration, "How long a job waits before it starts.", "mean of start − submit"),
    "p95_wait": Shown(
        "95 % wait at most", duration, "95 of 100 jobs wait no longer than this.", "nearest rank of start − submit"
    ),
    "bounded_slowdown": Shown(
        "Bounded slowdown", number, "How many times longer a job takes than if it were alone; 1 is the best.",
        "mean of max(1, (wait + runtime) / max(runtime, 10 s))",
    ),
    "mean_response": Shown("Mean response", duration, "From a job's submission to its end.", "mean of end − submit"),
    "queue_length": Shown(
        "Jobs waiting", number, "How many jobs wait on average over time.", "∫ waiting jobs dt / time"
    ),
    "goodput": Shown(
        "Goodput", percent, "The part of what jobs occupied that went into work which was kept.",
        "Σ useful × share / Σ held × share",
    ),
    "fragmentation": Shown(
        "Fragmentation", percent, "The part of what is free that a typical job could not use.",
        "mean over pods m of Σ F(m), divided by all that is free",
    ),
    "evictions": Shown("Evictions", number, "How many pods were told to leave for others.", "count"),
    "lost_work": Shown("Lost work", duration, "Work that had to be done again.", "Σ done − saved when a pod left"),
    "jain": Shown(
        "Fairness of queues", percent, "100 % if every queue has the same part of what it deserves.",
        "∫ (Σx)² / (n Σx²) dt / time with x = allocated / deserved",
    ),
    "finish_time_fairness": Shown(
        "Finish-time fairness", number, "Above 1: jobs end later than on an equal part of the cluster.",
        "mean of response / (runtime × max(1, share × N))",
    ),
    "gini_slowdown": Shown(
        "Inequality of users", number, "0 if all users are slowed down alike, near 1 if one bears it all.",
        "Gini coefficient of users' mean bounded slowdowns",
    ),
    "unstarted": Shown("Jobs never started", number, "Jobs that waits and slowdowns leave out.", "count"),
    "unfinished": Shown("Unfinished jobs", number, "Jobs that had not ended when nothing more could happen.", "count"),
}  # fmt: skip
"""In the order in which tables show them."""

HEADLINES: Final = ("mean_wait", "p95_wait", "bounded_slowdown", "goodput", "evictions", "jain")
"""Those that sentences at the top speak of."""


def shown(name: str) -> Shown:
    """A figure by name, those of single resources too."""
    if name in FIGURES:
        return FIGURES[name]
    kind, resource = name.split(" ", 1)
    if kind == "utilisation":
        return Shown(
            f"Utilisation of {resource}", percent, f"The part of all {resource} that jobs occupied.",
            "Σ held × request / (capacity × makespan)",
        )  # fmt: skip
    return Shown(
        f"Shortfall of {resource}", number, f"{resource} × seconds that queues deserved, asked for and did not have.",
        "Σ ∫ max(0, deserved − allocated) dt",
    )  # fmt: skip


def chosen(names: Iterable[str]) -> Iterator[str]:
    """The figures of a table, of those that there are."""
    there = set(names)
    yield from (name for name in FIGURES if name in there)
    yield from sorted(name for name in there if name.startswith(("utilisation ", "shortfall ")))
