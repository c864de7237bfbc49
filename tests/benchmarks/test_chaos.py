"""The command that breaks things: what it tries is drawn alike again, and what is not survived is said."""

from __future__ import annotations

import os
import signal
import sys
from random import Random

import pytest

from benchmarks.chaos import __main__ as command
from benchmarks.chaos import documents, files, grammar, requests
from benchmarks.chaos.outcomes import Effort, Outcome
from benchmarks.chaos.values import broken
from stromboli.cli.running import TRACEBACK


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """The part of files sets what a whole process shares."""
    monkeypatch.setattr("resource.setrlimit", lambda which, limits: None)
    known, told = signal.getsignal(signal.SIGPROF), os.environ.get(TRACEBACK)
    yield
    signal.signal(signal.SIGPROF, known)
    if told is None:
        os.environ.pop(TRACEBACK, None)


def test_trials_are_drawn_alike_again_one_by_one(tmp_path):
    drawn = dict(Effort(7, 40, 1.0).trials())
    for number in (0, 13, 39):
        ((again, dice),) = Effort(7, 1, 1.0, number).trials()
        assert again == number
        assert grammar.trial(dice, "t").content == grammar.trial(drawn[number], "t").content
    assert len({grammar.trial(dice, "t").content for _, dice in Effort(8, 40, 1.0).trials()}) > 30


def test_time_ends_a_part():
    assert list(Effort(1, 10, 0.0).trials()) == []


def test_every_kind_of_trial_is_drawn():
    kinds = {grammar.trial(dice, "t").what.split()[0] for _, dice in Effort(1, 600, 1.0).trials()}
    assert {"POST", "PUT", "PATCH", "GET", "DELETE", "malformed", "bytes"} <= kinds


def test_what_is_broken_is_a_copy():
    known = {"a": [1, {"b": "c"}]}
    assert any(broken(known, Random(seed), 1) != known for seed in range(5))
    assert known == {"a": [1, {"b": "c"}]}


def test_broken_requests_leave_a_server_healthy(monkeypatch):
    monkeypatch.setattr(requests, "SLOW", 120.0)  # a machine with other work says nothing of the server
    outcome = requests.run(Effort(11, 300, 2.0))
    assert (outcome.tried, outcome.violations) == (300, [])
    assert {"2xx", "4xx"} <= set(outcome.ends)


def test_broken_files_are_told():
    outcome = files.run(Effort(11, 60, 2.0))
    assert (outcome.tried, outcome.violations) == (60, [])


def _fails(code):
    def run(app, program, arguments):
        return code(arguments)

    return run


def _loops(arguments):
    while True:
        pass


def _raises(arguments):
    raise ValueError("an unforeseen error")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (_loops, "hangs"),
        (_raises, "an unforeseen error"),
        (lambda arguments: 3, "ended with 3"),
        (sys.exit, "SystemExit"),
    ],
)
def test_a_command_that_hangs_or_breaks_is_a_violation(monkeypatch, tmp_path, code, told):
    monkeypatch.setattr(files, "run_program", _fails(code))
    monkeypatch.setattr(files, "SLOW", 0.2)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(documents, "_KINDS", (lambda dice, folder: ["plan", str(folder)],))
    outcome = files.run(Effort(1, 1, 1.0))
    assert outcome.survived == 0
    assert told in outcome.violations[0]


def test_the_command_ends_with_1_when_something_was_not_survived(monkeypatch, capsys):
    def part(effort):
        outcome = Outcome("glass", effort.seed, tried=effort.number)
        outcome.violated(3, "it broke")
        return outcome

    monkeypatch.setattr(command, "PARTS", {"glass": part})
    monkeypatch.setattr(sys, "argv", ["chaos", "--number", "5", "--seed", "9"])
    assert command.main() == 1
    told = capsys.readouterr().out
    assert "glass: 5 tried, 4 survived, seed 9" in told
    assert "glass 3: it broke" in told
