"""A skipped test is listed, and fails the run unless the list allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.skips import matches, parse_rule

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

def test_runs(): pass

@pytest.mark.parametrize("case", ["a", "b"])
def test_skips(case): pytest.skip("no such device")

@pytest.mark.xfail(reason="known")
def test_expected(): assert False
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run the tests of a small project with the gate in place; the argument is its list of allowed skips."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.mkdir("tests")

    def run_with(allowed: str, tests: str, *options: str) -> pytest.RunResult:
        (pytester.path / "tests/allowed_skips.txt").write_text(allowed)
        (pytester.path / "tests/test_a.py").write_text(tests)
        return pytester.runpytest("-p", "tests.support.skips", *options)

    return run_with


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_an_unlisted_skip_fails_the_run_and_is_named(run, options: tuple[str, ...]) -> None:
    result = run("# none\n\ntests/test_a.py::test_expected | *\n", TESTS, *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines_random(
        [
            "NOT ALLOWED  tests/test_a.py::test_skips[[]a[]]: no such device",
            "NOT ALLOWED  tests/test_a.py::test_skips[[]b[]]: no such device",
            "allowed  tests/test_a.py::test_expected: expected to fail: known",
            "3 skipped, 2 of them not allowed by tests/allowed_skips.txt",
        ]
    )


def test_listed_skips_pass_and_are_still_named(run) -> None:
    result = run("tests/test_a.py::test_skips[*] | no such *\ntests/test_a.py::test_expected | *", TESTS)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*3 skipped, 0 of them not allowed*"])


def test_the_reason_must_fit_too(run) -> None:
    assert run("tests/* | too slow", TESTS).ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_module_skipped_as_a_whole_counts(run, options: tuple[str, ...]) -> None:
    result = run("", "import pytest\npytest.importorskip('no_such_module')\n", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["NOT ALLOWED  tests/test_a.py: *no_such_module*"])


def test_a_run_without_skips_passes(run) -> None:
    result = run("", "def test_runs(): pass")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["0 skipped, 0 of them not allowed*"])


def test_a_failed_run_stays_failed(run) -> None:
    assert run("", "def test_fails(): assert False").ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("a*", "abc", True),
        ("*c", "abc", True),
        ("t[1]", "t[1]", True),
        ("t[1]", "t1", False),
        ("t?", "t1", False),
        ("a*c", "a\nc", True),
    ],
)
def test_only_the_star_is_special(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


@pytest.mark.parametrize("line", ["tests/a.py::b", "tests/a.py::b | ", " | reason"])
def test_a_line_needs_test_and_reason(line: str) -> None:
    with pytest.raises(pytest.UsageError, match=r"must read 'test id \| reason'"):
        parse_rule(line)
