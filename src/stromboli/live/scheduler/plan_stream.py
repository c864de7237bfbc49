"""Handing decisions to the executor while the cycle that makes them still goes on, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from stromboli.cluster.executor import Executor
from stromboli.framework.books.plan import Plan
from stromboli.kube.turns import Slices
from stromboli.narration.observe import Silent

Call = Callable[..., object]
T = TypeVar("T")

AT_ONCE: Final = 200
"""Decisions that are taken over in one go: a gang may have thousands, and others want their turn."""


class Inbox:
    """Calls from another thread, made in the event loop's, in order, in slices between which others have their turn.

    ``failed`` is told of a call that raises; those after it are made all the same.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._loop, self._failed = asyncio.get_running_loop(), failed
        self._calls: deque[Callable[[], object]] = deque()
        self._news = asyncio.Event()
        self._over = False

    def later(self, call: Call, *arguments: object) -> None:
        """Have ``call`` made soon; any thread may ask for it."""
        self._calls.append(partial(call, *arguments))
        self._loop.call_soon_threadsafe(self._news.set)

    def end(self) -> None:
        """Nothing more will come."""
        self._over = True
        self._news.set()

    async def run(self) -> None:
        """Make the calls until nothing more will come."""
        busy = Slices()
        while self._calls or not self._over:
            if self._calls:
                self._make(self._calls.popleft())
                await busy.give_way()
            else:
                self._news.clear()
                await self._news.wait()

    def _make(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001  # the cycle's other decisions must not go with it
            self._failed(error)


class Handover(Silent):
    """An observer of one cycle: what its plan has grown by reaches the executor through ``later``.

    ``later(function, *arguments)`` has the function called in the executor's thread, in order.
    """

    def __init__(self, executor: Executor, later: Call) -> None:
        self._executor, self._later = executor, later
        self._binds = self._evictions = 0

    def wants(self, key: str) -> bool:
        """Only that a plan has grown."""
        return key == "plan.committed"

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Hand over what is new in the plan."""
        plan = fields["plan"]
        if key == "plan.committed" and isinstance(plan, Plan):
            self.rest(plan)

    def rest(self, plan: Plan) -> None:
        """Hand over whatever has not been: evictions first, whose room others may wait for."""
        evictions, binds = plan.evictions[self._evictions :], plan.binds[self._binds :]
        self._evictions, self._binds = len(plan.evictions), len(plan.binds)
        for some in _parts(evictions):
            self._later(self._executor.evict, some)
        for others in _parts(binds):
            self._later(self._executor.bind, others)


def _parts(decisions: Sequence[T]) -> Iterator[Sequence[T]]:
    return (decisions[start : start + AT_ONCE] for start in range(0, len(decisions), AT_ONCE))
