"""The three steps of an action in a cycle."""

from __future__ import annotations

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_action
from stromboli.framework.extension.action import Action
from stromboli.framework.session.session import Session
from stromboli.testing.builders import cluster


class Noting(Action):
    """Notes which of its steps were done, and fails in one of them."""

    name = "noting"

    def __init__(self, failing: str) -> None:
        super().__init__()
        self.failing = failing
        self.done: list[str] = []

    def _note(self, step: str) -> None:
        self.done.append(step)
        if step == self.failing:
            raise ValueError(step)

    def initialize(self) -> None:
        self._note("initialize")

    def execute(self, session: Session) -> None:
        self._note("execute")

    def uninitialize(self) -> None:
        self._note("uninitialize")


@pytest.mark.parametrize(
    ("failing", "done", "told"),
    [
        ("", ["initialize", "execute", "uninitialize"], []),
        ("execute", ["initialize", "execute", "uninitialize"], ["action noting failed: ValueError: execute"]),
        ("initialize", ["initialize"], ["action noting failed: ValueError: initialize"]),
    ],
)
def test_an_action_is_initialized_executed_and_uninitialized(failing, done, told):
    registry = builtin_registry()
    action = Noting(failing)
    with Session.open(cluster(), registry.configured(), registry) as session:
        run_action(session, action)
    assert (action.done, session.plan.inconsistencies) == (done, told)
