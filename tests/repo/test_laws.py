"""A long run repeats the laws for the time given, evenly, and counts their examples."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from tests.support import laws
from tests.support.laws import EVERYDAY, LawRunner

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from hypothesis import given, settings, strategies

@pytest.mark.law("sums commute")
@settings(max_examples=100)
@given(a=strategies.integers(), b=strategies.integers())
def test_sums(a, b): assert a + b == b + a

@pytest.mark.law("plain")
@pytest.mark.parametrize("n", [1, 2])
def test_plain(n, tmp_path): assert tmp_path.exists()

def test_that_is_no_law(): assert False
"""


CLOCK = """
from itertools import count
from types import SimpleNamespace
from tests.support import laws

laws.time = SimpleNamespace(monotonic=count().__next__)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run tests as a long run of 18 seconds, by a clock that moves on by one whenever it is read."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(laws, "time", SimpleNamespace(monotonic=count().__next__))
    pytester.makeconftest(CLOCK)  # for the workers of a parallel run
    pytester.makeini("[pytest]\nmarkers =\n    law(name): a law\n    spread(n): every nth\n")

    def run_tests(text: str, *options: str, long: tuple[str, ...] = ("--long-minutes", "0.3")) -> pytest.RunResult:
        pytester.makepyfile(text)
        return pytester.runpytest("-p", "tests.support.laws", *long, *options)

    before = settings.get_current_profile_name()
    yield run_tests
    settings.load_profile(before)


def examples(result: pytest.RunResult) -> dict[str, int]:
    rows = (re.fullmatch(r" *([0-9,]+)  (.+)", line) for line in result.outlines)
    return {row[2]: int(row[1].replace(",", "")) for row in rows if row}


@pytest.mark.parametrize(("options", "workers"), [((), 1), (("--dist", "each", "--tx", "2*popen"), 2)])
def test_laws_are_repeated_and_counted_and_nothing_else_runs(run, options: tuple[str, ...], workers: int) -> None:
    result = run(TESTS, *options)
    result.assert_outcomes(passed=3 * workers, deselected=None if workers > 1 else 1)
    counts = examples(result)
    assert set(counts) == {"sums commute", "plain"}
    assert counts["sums commute"] >= 200 * workers
    assert counts["plain"] > 2 * workers


NUMBERS = """
import pytest
from hypothesis import given, settings, strategies
seen = []

@pytest.mark.law("fresh")
@settings(max_examples=5)
@given(strategies.integers(0, 2**60))
def test_fresh(n):
    seen.append(n)
    print("drew", n)
    assert len(seen) < 50
"""


def numbers(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("drew")]


def test_each_round_draws_other_examples(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    first, second = (
        numbers(run(NUMBERS, "-s", "--long-minutes", "0.1")),
        numbers(run(NUMBERS, "-s", "--long-minutes", "0.1")),
    )
    assert len(set(first)) > 15
    assert first[:20] != second[:20]


def test_in_ci_the_rounds_differ_and_two_runs_are_alike(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    first, second = (
        numbers(run(NUMBERS, "-s", "--long-minutes", "0.1")),
        numbers(run(NUMBERS, "-s", "--long-minutes", "0.1")),
    )
    assert len(set(first)) > 15
    assert first[:20] == second[:20]


SPREAD = """
import pytest

@pytest.mark.spread(3)
@pytest.mark.parametrize("n", range(7))
def test_spread(n): pass

@pytest.mark.law("plain")
def test_plain(): pass

def test_that_is_neither(): pass
"""


def passed(result: pytest.RunResult) -> list[str]:
    rows = (re.search(r"::test_(\S+) PASSED", line) for line in result.outlines)
    return [row[1] for row in rows if row]


def test_an_everyday_run_takes_every_nth_of_a_spread_test_and_a_long_one_the_others_first(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    every_third = ["spread[0]", "spread[3]", "spread[6]"]
    assert passed(run(SPREAD, "-v", long=())) == [*every_third, "plain", "that_is_neither"]
    assert passed(run(SPREAD, "-v", "-k", "spread and 4", long=())) == ["spread[4]"], "by its name"
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    for worker, others in (("gw0", ["spread[1]", "spread[4]"]), ("gw1", ["spread[2]", "spread[5]"])):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        assert passed(run(SPREAD, "-v")) == [*others, "plain"]


def test_laws_that_are_left_out_have_no_share_of_the_time(run) -> None:
    result = run("""
        import pytest

        @pytest.mark.law("asked for")
        def test_this(request): assert not request.config.pluginmanager.get_plugin("law-runner").waiting

        @pytest.mark.law("left out")
        def test_other(): pass
    """, "-k", "this", "--long-minutes", "0")  # fmt: skip
    result.assert_outcomes(passed=1, deselected=1)


def test_a_broken_law_fails_the_run(run) -> None:
    result = run("import pytest\n@pytest.mark.law('false')\ndef test_false(): assert False\n")
    result.assert_outcomes(failed=1)
    assert examples(result) == {"false": 1}


def test_a_long_run_without_laws_is_refused(run) -> None:
    assert run("def test_that_is_no_law(): pass").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_the_time_is_shared_by_weight() -> None:
    runner = LawRunner(seconds=60)
    runner.waiting = {"a": 1.0, "b": 0.5, "c": 0.5}
    shares = [round(runner.take_share(test)) for test in "abc"]
    assert shares == [30, 30, 60]


EVERYDAY_TESTS = """
import pytest
from hypothesis import given, settings, strategies
seen = {"law": 0, "own": 0, "plain": 0}

def count(name): seen[name] += 1

@pytest.mark.law("law")
@given(strategies.integers())
def test_law(n): count("law")

@pytest.mark.law("own")
@settings(max_examples=70)
@given(strategies.integers())
def test_own(n): count("own")

@given(strategies.integers())
def test_plain(n): count("plain")

def test_counts(): assert seen == {"law": LAW, "own": 70, "plain": 100}
"""


@pytest.mark.parametrize(("options", "law"), [((), EVERYDAY), (("--hypothesis-profile", "default"), 100)])
def test_an_everyday_run_tries_few_examples_of_laws_that_say_no_number(run, options: tuple[str, ...], law: int) -> None:
    run(EVERYDAY_TESTS.replace("LAW", str(law)), *options, long=()).assert_outcomes(passed=4)
