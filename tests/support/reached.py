"""A pytest plugin that counts what the examples of each law reach, prints it, and fails a run that reaches too little.

An example reaches what any of its sessions does or has in it: it evicts for reclaim, it holds a gang back, there are
hypernodes (:data:`REACHED`).  tests/laws/floors.toml says how large a part of a law's examples must reach what.
"""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from stromboli.framework.session import closing
from stromboli.framework.session.session import Session
from stromboli.model.job import PENDING
from stromboli.model.names import GPU, ROOT_QUEUE

FLOORS = "tests/laws/floors.toml"
EVERY = "every law"
FEWEST = {EVERY: 1500}
"""Examples below which shares say nothing; 25 for a law's test."""


def evicts(session: Session, *reasons: str) -> bool:
    return any(eviction.reason in reasons for eviction in session.plan.evictions)


def holds_gang(session: Session) -> bool:
    jobs = (job for job in session.jobs.peek() if job.min_available > 1 and job.index.get(PENDING))
    return any(not job.is_ready() for job in jobs)


def binds_gang(session: Session) -> bool:
    jobs = Counter(bind.job for bind in session.plan.binds)
    return any(number > 1 and session.snapshot.jobs[job].min_available > 1 for job, number in jobs.items())


def places_gpu(session: Session) -> bool:
    column = session.axes.names.index(GPU) if GPU in session.axes.names else -1
    return column >= 0 and any(amount(session, placed, column) for placed in
                               (*session.plan.binds, *session.plan.reservations))  # fmt: skip


def amount(session: Session, placed: object, column: int) -> int:
    """How much of a column the template of a placed pod asks for."""
    job, uid = session.snapshot.jobs.get(placed.job), placed.uid  # type: ignore[attr-defined]
    vector = job.tasks[uid].template.vector if job is not None and uid in job.tasks else ()
    return vector[column] if column < len(vector) else 0


def has_tree(session: Session) -> bool:
    return any(each.spec.parent not in ("", ROOT_QUEUE) for each in session.snapshot.queues.values())


REACHED: Mapping[str, Callable[[Session], bool]] = {
    "preempt evicts": lambda session: evicts(session, "preempt", "gangpreempt"),
    "reclaim evicts": lambda session: evicts(session, "reclaim", "gangreclaim"),
    "gang bound": binds_gang,
    "gang held": holds_gang,
    "GPU placed": places_gpu,
    "room reserved": lambda session: bool(session.plan.reservations),
    "hierarchy": has_tree,
    "hypernodes": lambda session: bool(session.snapshot.hyper_nodes),
    "close gang placed": lambda session: any(update.hyper_node for update in session.plan.hyper_nodes),
    "sub-groups": lambda session: any(job.facts.is_split for job in session.jobs.peek()),
    "ten nodes": lambda session: len(session.table) >= 10,
}
"""What an example may reach, and how that shows in a session as it closes."""


class Watch:
    """Counts, while a test runs, how many examples it tries and how many of them reach what."""

    def __init__(self) -> None:
        self.examples = 0
        self.counts: Counter[str] = Counter()
        self.now: set[str] = set()

    def counted(self, function: Callable[..., None]) -> Callable[..., None]:
        """Wrap what is called once for each example."""

        @functools.wraps(function)
        def example(*args: object, **kwargs: object) -> None:
            self.now = set()
            function(*args, **kwargs)
            self.examples += 1
            self.counts.update(self.now)

        return example

    @contextmanager
    def watching(self, item: pytest.Function) -> Iterator[None]:
        """Look at every session that closes."""
        handle, close = item.obj.hypothesis, closing.close
        inner = handle.inner_test

        def look(session: Session) -> None:
            close(session)
            self.now.update(name for name, reaches in REACHED.items() if name not in self.now and reaches(session))

        handle.inner_test, closing.close = self.counted(inner), look
        try:
            yield
        finally:
            handle.inner_test, closing.close = inner, close


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Count what the examples of a law of clusters reach, and hang it on the report."""
    if not hasattr(pyfuncitem.obj, "hypothesis") or pyfuncitem.get_closest_marker("law") is None:
        return (yield)
    watch = Watch()
    with watch.watching(pyfuncitem):
        found = yield
    pyfuncitem.user_properties.append(("reached", [watch.examples, dict(watch.counts)]))
    return found


class ReachReport:
    """Sums up what was reached, test by test, over parameters and workers, and judges it by the floors."""

    def __init__(self, floors: Mapping[str, Mapping[str, float]]) -> None:
        self.floors = floors
        self.examples: Counter[str] = Counter()
        self.counts: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a finished test brings along."""
        name = report.nodeid.partition("[")[0].rpartition("/")[2]
        for key, value in report.user_properties if report.when == "call" else ():
            if key == "reached" and isinstance(value, (list, tuple)):
                for sum_of in (name, EVERY):
                    self.examples[sum_of] += value[0]
                    self.counts.setdefault(sum_of, Counter()).update(value[1])

    def share(self, name: str, what: str) -> float:
        """The part of a test's examples that reach something."""
        return self.counts[name][what] / self.examples[name]

    def low(self) -> list[str]:
        """What was reached too seldom, as sentences."""
        enough = [name for name in self.floors if self.examples[name] >= FEWEST.get(name, 25)]
        return [
            f"{name}: {what} in {self.share(name, what):.0%} of the examples, at least {floor:.0%}"
            for name in enough for what, floor in self.floors[name].items() if self.share(name, what) < floor
        ]  # fmt: skip

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that went well but reached too little."""
        if self.low() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List what was reached, and what was not."""
        if not any(self.counts.values()):
            return
        terminalreporter.section("what the examples of the laws reached, in percent")
        for name, counts in sorted(self.counts.items()):
            reached = [f"{what} {self.share(name, what):.0%}" for what in REACHED if counts[what]]
            if reached:
                terminalreporter.line(f"{self.examples[name]:>6}  {name}: {', '.join(reached)}")
        for sentence in self.low():
            terminalreporter.line(f"TOO LOW  {sentence}")


def read_floors(path: Path) -> dict[str, dict[str, float]]:
    """The floors by test and what is reached; raises pytest.UsageError for something that is not counted."""
    floors: dict[str, dict[str, float]] = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    unknown = {what for each in floors.values() for what in each} - set(REACHED)
    if unknown:
        raise pytest.UsageError(f"{FLOORS}: nothing counts {', '.join(sorted(unknown))}")
    return floors


def pytest_configure(config: pytest.Config) -> None:
    """Put the report where reports come together: not in the workers of a parallel run."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(ReachReport(read_floors(config.rootpath / FLOORS)), "reach-report")
