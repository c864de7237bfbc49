"""A pytest plugin for tests marked `law("name")`: everyday runs try few examples, `--long-minutes N` many.

Everyday runs try :data:`EVERYDAY` examples of a law whose test names no number; with an explicit profile
(`--hypothesis-profile default`) as many as that says.  A long run repeats the laws for N minutes.

Of a test marked ``spread(n)`` everyday runs take every nth parameter, and a long run those between them, each once and
in one of its workers, before the laws.

The time is shared out evenly over the laws, and within a law over its tests; each round draws fresh examples.  In CI
(the variable is set) the rounds are numbered and drawn by their numbers, so that one commit is always tried alike.
The end of the run says how many examples each law has seen. Fixtures of a test are made once for all its rounds.
To use several cores let each of them run all laws: `--dist each --tx 2*popen`.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, seed, settings

settings.register_profile(
    "long",
    max_examples=60,  # a round: so short that the slowest law, too, keeps to its share of a few minutes
    deadline=None,
    derandomize=False,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)

EVERYDAY = 30


class Tally:
    """How many examples a test has seen."""

    def __init__(self) -> None:
        self.examples = 0

    def counting(self, function: Callable[..., None]) -> Callable[..., None]:
        """Wrap a function so that its calls are counted."""

        @functools.wraps(function)
        def counted(*args: object, **kwargs: object) -> None:
            self.examples += 1
            function(*args, **kwargs)

        return counted

    @contextmanager
    def watching(self, item: pytest.Function) -> Iterator[Callable[..., None]]:
        """Give the test's function, its examples counted; one call is one example of a test without Hypothesis."""
        handle = getattr(item.obj, "hypothesis", None)
        if handle is None:
            yield self.counting(item.obj)
            return
        inner = handle.inner_test
        handle.inner_test = self.counting(inner)
        try:
            yield item.obj
        finally:
            handle.inner_test = inner


class LawRunner:
    """Keeps the laws of a run only, and repeats each for its share of the time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started: float | None = None
        self.waiting: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)  # what -k leaves out has no share
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Drop what isn't a law, and give each test its weight: one law weighs as much as another."""
        laws = [item for item in items if law_name(item)]
        tests = Counter(map(law_name, laws))
        self.waiting = {item.nodeid: 1 / tests[law_name(item)] for item in laws}
        keep(config, items, [*own_share(between(items)), *laws])

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run one law's test for its share, and hang the count of its examples on its report."""
        if pyfuncitem.nodeid not in self.waiting:
            self.started = time.monotonic() if self.started is None else self.started
            return None
        tally, seconds = Tally(), self.take_share(pyfuncitem.nodeid)
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        try:
            with tally.watching(pyfuncitem) as function:
                repeat(lambda number: drawn(function, number)(**arguments), seconds)
        finally:
            pyfuncitem.user_properties.append(("law", [law_name(pyfuncitem), tally.examples]))
        return True

    def take_share(self, nodeid: str) -> float:
        """Answer this test's part of the seconds left, by its weight among the tests that still wait."""
        now = time.monotonic()
        self.started = now if self.started is None else self.started
        left = self.started + self.seconds - now
        all_shares = sum(self.waiting.values())
        return left * self.waiting.pop(nodeid) / all_shares


def between(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items of spread tests that everyday runs leave to long ones."""
    numbers: dict[str, itertools.count[int]] = {}
    found = []
    for item in items:
        if mark := item.get_closest_marker("spread"):
            number = next(numbers.setdefault(item.nodeid.partition("[")[0], itertools.count()))
            found += [item] * (number % mark.args[0] != 0)
    return found


def own_share(items: list[pytest.Item]) -> list[pytest.Item]:
    """Those of ``items`` that this worker runs, where each of several would run all."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", "gw0"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    return items[int(worker.removeprefix("gw")) :: int(workers)]


def keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    """Leave only ``kept`` of all ``items``."""
    known = {item.nodeid for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in known])
    items[:] = kept


def law_name(item: pytest.Item) -> str:
    """Answer the name of the law that a test belongs to; empty if it isn't one."""
    mark = item.get_closest_marker("law")
    return str(mark.args[0]) if mark else ""


def drawn(function: Callable[..., None], number: int) -> Callable[..., None]:
    """``function``, in CI with the examples of its round of this number."""
    if "CI" in os.environ and hasattr(function, "hypothesis"):
        seed(f"{os.environ.get('PYTEST_XDIST_WORKER', '')} {number}")(function)
    return function


def repeat(call: Callable[[int], None], seconds: float) -> None:
    """Call with 0, and with 1, 2, … as long as half of another round is likely to fit into the time."""
    start, rounds, spent = time.monotonic(), 0, 0.0
    while rounds == 0 or spent + spent / rounds / 2 < seconds:
        call(rounds)
        rounds, spent = rounds + 1, time.monotonic() - start


class Everyday:
    """Has laws try fewer examples, and spread tests fewer parameters."""

    @pytest.hookimpl(trylast=True)  # one that is asked for by name is the first of its test
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Limit each test once, however many parameters it has."""
        left = {item.nodeid for item in between(items)}
        keep(config, items, [item for item in items if item.nodeid not in left])
        for law in {item.obj for item in items if isinstance(item, pytest.Function) and law_name(item)}:
            if hasattr(law, "hypothesis") and not hasattr(law, "_hypothesis_internal_settings_applied"):
                settings(max_examples=EVERYDAY)(law)


class LawReport:
    """Sums up the examples by law, over tests and workers."""

    def __init__(self) -> None:
        self.examples: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a finished test brings along."""
        for key, value in report.user_properties if report.when == "call" else ():
            if key == "law" and isinstance(value, (list, tuple)):
                self.examples[value[0]] += value[1]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the laws."""
        terminalreporter.section("examples tried")
        for law, count in sorted(self.examples.items()):
            terminalreporter.line(f"{count:>10,}  {law}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption(
        "--long-minutes",
        type=float,
        metavar="N",
        help="repeat the laws for N minutes, after what is left of spread tests",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set up a long run if one is asked for."""
    minutes, profile = config.getoption("long_minutes"), config.getoption("--hypothesis-profile")
    if minutes is None:
        if not profile:
            config.pluginmanager.register(Everyday(), "everyday-laws")
        return
    if not profile:
        settings.load_profile("long")
    config.pluginmanager.register(LawRunner(minutes * 60), "law-runner")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(LawReport(), "law-report")
