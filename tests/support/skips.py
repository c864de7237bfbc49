"""A pytest plugin: every skipped test is listed with its reason, and a skip that is not allowed fails the run.

tests/allowed_skips.txt holds the allowed ones, a line each: `test id | reason`. Both may contain `*` for any text.
Tests marked as expected failures count as skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ALLOWED = "tests/allowed_skips.txt"


@dataclass(frozen=True)
class Rule:
    """A line of the list of allowed skips: a pattern for the test's id, and one for the reason."""

    test: str
    reason: str

    def allows(self, test: str, reason: str) -> bool:
        """Tell whether this line means that test, skipped for that reason."""
        return matches(self.test, test) and matches(self.reason, reason)


def matches(pattern: str, text: str) -> bool:
    """Tell whether the whole text fits a pattern in which only `*` is special."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def read_rules(path: Path) -> list[Rule]:
    """Read a list of allowed skips; blank lines and lines that start with # say nothing, a missing file is empty.

    Raises pytest.UsageError for a line without a reason.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [parse_rule(line) for line in lines if line.strip() and not line.startswith("#")]


def parse_rule(line: str) -> Rule:
    """Read one line."""
    test, bar, reason = (part.strip() for part in line.partition(" | "))
    if not (test and bar and reason):
        raise pytest.UsageError(f"{ALLOWED}: {line!r} must read 'test id | reason'")
    return Rule(test, reason)


class SkipGate:
    """Collects the skips of one run, judges them by the rules, and reports at the end."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.skips: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a test that was skipped, or failed as expected."""
        if report.skipped:
            self.skips[report.nodeid] = skip_reason(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember a module that was skipped as a whole."""
        if report.skipped:
            self.skips[report.nodeid] = skip_reason(report)

    def refused(self) -> list[str]:
        """Answer the ids of the tests that no rule allows to be skipped."""
        return [test for test, why in self.skips.items() if not any(rule.allows(test, why) for rule in self.rules)]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that went well but for a refused skip."""
        if self.refused() and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List every skip, the refused ones marked."""
        refused = set(self.refused())
        terminalreporter.section("skipped tests")
        for test, reason in sorted(self.skips.items()):
            terminalreporter.line(f"{'NOT ALLOWED' if test in refused else 'allowed'}  {test}: {reason}")
        terminalreporter.line(f"{len(self.skips)} skipped, {len(refused)} of them not allowed by {ALLOWED}")


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Say why a test was skipped, or is expected to fail."""
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}".rstrip(": ")
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_configure(config: pytest.Config) -> None:
    """Put the gate where reports come together: not in the workers of a parallel run."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipGate(read_rules(config.rootpath / ALLOWED)), "skip-gate")
