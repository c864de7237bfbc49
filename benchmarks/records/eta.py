"""How true predictions of starts come on traces: ``python -m benchmarks.records.eta week5.csv.gz week6.csv.gz``.

The scheduler runs each trace; a job that begins to wait is predicted by what was known then, of those that ended before
and of how earlier predictions came true.  All predictions count that were calibrated.
"""

from __future__ import annotations

import argparse
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.tables import head, row
from stromboli.builtin import full_registry
from stromboli.sim.simulation.metrics import mean
from stromboli.sim.simulation.pods import JobRun
from stromboli.sim.simulation.simulation import Simulation
from stromboli.study.calibration import LEVELS, SLACK, pinball
from stromboli.study.eta import rules_of
from stromboli.study.learning import Answer, Learner
from stromboli.study.simulating import read_trace

AVERAGED: Final = 20
"""Starts of a queue whose waits the moving average is taken of."""
PERIOD: Final = 30.0
"""Seconds between cycles."""
GIVEN: Final = 7 * 86400.0
"""Seconds that count for a quantile that is infinite."""


def answered(trace: Path, nodes: str, days: float, every: float, seed: int) -> tuple[list[Answer], list[JobRun], float]:
    """Predictions and what became of them, all jobs, and the beginning in seconds since 1970."""
    registry = full_registry("")
    config = registry.configured("")
    learner = Learner(every, rules=rules_of(config))
    workload = read_trace(trace, nodes).window(days * 86400)
    simulation = Simulation(workload, config, registry, period=PERIOD, seed=seed)
    follow(simulation, learner)
    runs = simulation.run(days * 86400)
    return sorted(learner.answers, key=lambda one: one.asked), runs, simulation.began


def follow(simulation: Simulation, learner: Learner) -> None:
    """Let ``learner`` look at the cluster once a period, as in a record, whichever cycles are left out."""

    def look() -> None:
        learner.look(simulation.scheduling.state, simulation.timeline.now)
        simulation.timeline.after(PERIOD, look)

    simulation.timeline.at(simulation.began, look)


def averages(answers: Sequence[Answer], runs: Sequence[JobRun], began: float) -> list[float]:
    """What a moving average of its queue's last waits would have said at each of ``answers``, in order of time."""
    waits: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=AVERAGED))
    starts = sorted((run.start, run.start - run.job.submit, run.job.queue) for run in runs if run.start is not None)
    found, at = [], 0
    for answer in answers:
        while at < len(starts) and starts[at][0] < answer.asked - began:
            waits[starts[at][2]].append(starts[at][1])
            at += 1
        found.append(mean(waits[answer.queue]))
    return found


class Truth(NamedTuple):
    """How true a quantile came in so many ``answers``, ``given`` with a number: which part held, and losses."""

    answers: int
    given: int
    covers: float
    loss: float
    averaged: float


def truth(answers: Sequence[Answer], averaged: Sequence[float], at: int) -> Truth:
    """How true quantile number ``at`` of ``answers`` came, and what a moving average would have lost.

    Where the quantile is infinite no number was given that could hold.
    """
    outcomes = [one.outcome for one in answers]
    said = [GIVEN if (found := one.quantiles[at]) is None else found for one in answers]
    held = [outcome <= one + SLACK for outcome, one in zip(outcomes, said, strict=True) if one < GIVEN]
    loss, other = (
        mean(pinball(outcome, one, LEVELS[at]) for outcome, one in zip(outcomes, some, strict=True))
        for some in (said, averaged)
    )
    return Truth(len(said), len(held), mean(map(float, held)), loss, other)


class Counted(NamedTuple):
    """Of one trace: what it was run on, and the ``answers`` that count, each with what the moving average said."""

    trace: str
    nodes: str
    jobs: int
    mean_wait: float
    asked: int
    answers: list[tuple[Answer, float]]

    @property
    def cells(self) -> list[str]:
        """A line of the table."""
        head = [self.trace, self.nodes, f"{self.jobs}", f"{self.mean_wait:.0f} s"]
        return [*head, f"{len(self.answers)} of {self.asked}", *truths(self.answers)]


def truths(answers: Sequence[tuple[Answer, float]]) -> Iterator[str]:
    """For each level the part of ``answers`` that held, and the loss as a part of the moving average's."""
    for at in range(len(LEVELS)):
        found = truth([one for one, _ in answers], [said for _, said in answers], at)
        given = "" if found.given == found.answers else f" of {found.given}"
        yield from (f"{found.covers:.1%}{given}", f"{found.loss / max(found.averaged, 1e-9):.2f}")


def week(trace: Path, nodes: str, options: argparse.Namespace) -> Counted:
    """One trace."""
    answers, runs, first = answered(trace, nodes, options.days, options.every, options.seed)
    counted = [(one, said) for one, said in zip(answers, averages(answers, runs, first), strict=True) if one.calibrated]
    waits = [run.start - run.job.submit for run in runs if run.start is not None]
    return Counted(trace.name, nodes, len(runs), mean(waits), len(answers), counted)


def together(weeks: Sequence[Counted]) -> list[str]:
    """The line of all traces: every answer counts once, so that traces with long waits decide what the losses are."""
    answers = [answer for one in weeks for answer in one.answers]
    asked = sum(one.asked for one in weeks)
    return ["all", "", f"{sum(one.jobs for one in weeks)}", "", f"{len(answers)} of {asked}", *truths(answers)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how true the predictions came."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.eta", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE", help="each is a week, or another span")
    parser.add_argument("--nodes", nargs="+", default=["552x4gpu"], help="for all traces, or for each (552x4gpu)")
    parser.add_argument("--days", type=float, default=7.0, help="of each trace (7)")
    parser.add_argument("--every", type=float, default=600.0, help="seconds between predictions (600)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    nodes = options.nodes * len(options.traces) if len(options.nodes) == 1 else options.nodes
    if len(nodes) != len(options.traces):
        parser.error(f"--nodes: {len(nodes)} for {len(options.traces)} traces")
    levels = [f"P{level * 100:.0f} {what}" for level in LEVELS for what in ("covers", "ratio")]
    print("Ratios are of the pinball loss over that of a moving average of the queue's last waits.\n")
    print(head(("trace", "nodes", "jobs", "mean wait", "predictions calibrated", *levels)))
    weeks = []
    for trace, some in zip(options.traces, nodes, strict=True):
        weeks.append(week(trace, some, options))
        print(row(weeks[-1].cells), flush=True)
    if len(weeks) > 1:
        print(row(together(weeks)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
