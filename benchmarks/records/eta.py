"""How true predictions of starts come on a trace: ``python -m benchmarks.records.eta philly_week6.csv.gz``.

The scheduler runs the trace; a job that begins to wait is predicted by what was known then, of those that ended before
and of how earlier predictions came true.  The last part of the trace is what counts.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.tables import head, row
from stromboli.builtin import full_registry
from stromboli.framework.books.plan import Plan
from stromboli.sim.simulation.metrics import mean, percentile
from stromboli.sim.simulation.pods import JobRun
from stromboli.sim.simulation.simulation import Simulation
from stromboli.study.eta import LEVELS, SLACK
from stromboli.study.learning import Answer, Learner
from stromboli.study.simulating import read_trace

AVERAGED: Final = 20
"""Starts of a queue whose waits the moving average is taken of."""
GIVEN: Final = 7 * 86400.0
"""Seconds that count for a quantile that is infinite."""


def answered(trace: Path, nodes: str, days: float, every: float, seed: int) -> tuple[list[Answer], list[JobRun], float]:
    """Predictions and what became of them, all jobs, and the beginning in seconds since 1970."""
    registry, learner = full_registry(""), Learner(every)
    workload = read_trace(trace, nodes).window(days * 86400)
    simulation = Simulation(workload, registry.configured(""), registry, period=30.0, seed=seed)
    told, look = simulation.scheduling, simulation._look

    def planned(plan: Plan) -> None:
        learner.look(told.state, simulation.timeline.now)
        look(plan)

    told._when_planned = planned
    runs = simulation.run(days * 86400)
    return learner.answers, runs, simulation.began


def averages(answers: Sequence[Answer], runs: Sequence[JobRun], began: float) -> list[float]:
    """What a moving average of its queue's last waits would have said at each answer."""
    waits: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=AVERAGED))
    starts = sorted((run.start, run.start - run.job.submit, run.job.queue) for run in runs if run.start is not None)
    found, at = [], 0
    for answer in sorted(answers, key=lambda one: one.asked):
        while at < len(starts) and starts[at][0] < answer.asked - began:
            waits[starts[at][2]].append(starts[at][1])
            at += 1
        found.append(mean(waits[answer.queue]))
    return found


def pinball(outcome: float, said: float, level: float) -> float:
    """The loss of a quantile."""
    return max(level * (outcome - said), (level - 1) * (outcome - said))


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how true the predictions came."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.eta", description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--nodes", default="552x4gpu")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--every", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    began = time.process_time()
    answers, runs, first = answered(options.trace, options.nodes, options.days, options.every, options.seed)
    answers.sort(key=lambda one: one.asked)
    averaged = averages(answers, runs, first)
    half = len(answers) // 2
    print(
        f"{len(runs)} jobs, {len(answers)} predictions, {time.process_time() - began:.0f} CPU s; waits of all: mean "
        f"{mean(run.start - run.job.submit for run in runs if run.start is not None):.0f} s\n"
    )
    print(head(("quantile", "answers with a number", "covers of these", "pinball loss", "moving average", "ratio")))
    for at, level in enumerate(LEVELS):
        found = truth(answers[half:], averaged[half:], at)
        cells = [f"P{level * 100:.0f}", f"{found.given} of {found.answers}", f"{found.covers:.1%}", f"{found.loss:.0f}"]
        print(row([*cells, f"{found.averaged:.0f}", f"{found.loss / max(found.averaged, 1e-9):.2f}"]))
    outcomes = [one.outcome for one in answers[half:]]
    print(f"\nwaits of the second half: P50 {percentile(outcomes, 0.5):.0f} s, P80 {percentile(outcomes, 0.8):.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
