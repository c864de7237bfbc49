"""Time that passes only when there is nothing to do: coroutines that wait for hours end at once, in order."""

from __future__ import annotations

import asyncio
import selectors
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NoWaiting(selectors.DefaultSelector):
    """Instead of sleeping, moves the loop's time on."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found and timeout is None:
            raise RuntimeError("everything waits for something that never comes")
        if not found and timeout:
            self.loop.moment += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next thing that is due.  It must not wait for anything outside.

    ``before_turns`` are called before each turn of the loop, when all tasks stand at an await.  What is given to a
    thread is done in a turn of its own.  ``tasks`` are those of this loop: asyncio's list grows with every loop that
    the garbage collector has not come to.
    """

    def __init__(self) -> None:
        self.moment = 1000.0
        self.before_turns: list[Callable[[], None]] = []
        self.tasks = weakref.WeakSet[asyncio.Task[Any]]()
        selector = _NoWaiting()
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self.moment

    def create_task(self, *args: Any, **named: Any) -> asyncio.Task[Any]:
        task = super().create_task(*args, **named)
        self.tasks.add(task)
        return task

    def _run_once(self) -> None:
        for call in self.before_turns:
            call()
        self._reach_what_is_due()
        super()._run_once()  # type: ignore[misc]

    def _reach_what_is_due(self) -> None:
        """Move on to the first timer that the loop takes for due a little early, so that time moves on in each turn.

        Tasks that wait once more for what is left, in turns of their own, keep one of them ready at all times.
        """
        due = self._scheduled[0].when() if self._scheduled else 0.0  # type: ignore[attr-defined]
        if self.moment < due < self.moment + self._clock_resolution:  # type: ignore[attr-defined]
            self.moment = due

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        async def work() -> Any:
            return func(*args)

        return self.create_task(work())


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
