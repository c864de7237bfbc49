"""Where coroutines of the package wait: every await that its source has, and those at which tasks stand."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from types import CoroutineType
from typing import Any, NamedTuple, Protocol

import stromboli
from tests.support.virtual import VirtualLoop

PACKAGE = Path(stromboli.__file__).parent


class Await(NamedTuple):
    """An await, or an ``async with`` or ``async for``, of the package; modules as ``live/writing/binds.py``."""

    module: str
    function: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.function}: {self.text}"


Chain = tuple[Await, ...]
"""Where a task stands, the outermost function first."""


@cache
def awaits(module: str) -> dict[int, Await]:
    """All awaits of a module, by line."""
    tree = ast.parse((PACKAGE / module).read_text())
    functions = [found for found in ast.walk(tree) if isinstance(found, ast.AsyncFunctionDef)]
    return {
        line: Await(module, function.name, line, text)
        for function in functions
        for node in ast.walk(function)
        for line, text in _waiting(node)
    }


def _waiting(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Await):
        yield node.lineno, ast.unparse(node.value)
    elif isinstance(node, ast.AsyncWith):
        yield node.lineno, ", ".join(map(ast.unparse, node.items))
    elif isinstance(node, ast.AsyncFor):
        yield node.lineno, ast.unparse(node.iter)
    elif isinstance(node, ast.ListComp) and any(part.is_async for part in node.generators):
        yield node.lineno, ast.unparse(node)


def chain(task: asyncio.Task[Any]) -> Chain:
    """The awaits of the package at which ``task`` stands."""
    return tuple(_chain(task.get_coro()))


def _chain(waiting: Any) -> Iterator[Await]:
    while isinstance(waiting, CoroutineType) and waiting.cr_suspended and (frame := waiting.cr_frame):
        if known := _of_file(frame.f_code.co_filename):
            yield known[frame.f_lineno]
        waiting = waiting.cr_await


@cache
def _of_file(name: str) -> dict[int, Await] | None:
    """The awaits of a file; None for one that is not of the package."""
    path = Path(name)
    return awaits(path.relative_to(PACKAGE).as_posix()) if path.is_relative_to(PACKAGE) else None


def chains() -> frozenset[Chain]:
    """Where the tasks of this loop stand, a virtual one."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return frozenset(found for task in loop.tasks if (found := chain(task)))


class Moment(NamedTuple):
    """Before which turn of the loop, since a story has begun, its tasks stand where."""

    turn: int
    chains: frozenset[Chain]


class Sight(NamedTuple):
    """Before which turn its tasks stand where, how the cluster stands then, and all that a kill leaves."""

    turn: int
    chains: frozenset[Chain]
    standing: object
    left: object

    def moment(self) -> Moment:
        """Where a story told again comes by."""
        return Moment(self.turn, self.chains)


def fatal(found: list[Sight]) -> list[Moment]:
    """Those to kill at: where a kill leaves what an earlier one has left, what follows is known."""
    first = {sight.left: sight.moment() for sight in reversed(found)}
    return sorted(first.values(), key=lambda moment: moment.turn)


class Leaving(Protocol):
    """A connection that says what is left where its scheduler is killed."""

    def left(self) -> object:
        """It, in a form that compares."""


class Standing(Protocol):
    """A world that says how its cluster stands, and can be ended."""

    def standing(self) -> object:
        """What matters of the cluster, in a form that compares."""

    async def end(self) -> None:
        """Let nothing run any more."""


def at_turns(call: Callable[[int], None]) -> Callable[[], None]:
    """From now on ``call`` before each turn with its number; what is returned ends that."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    numbers = count(1)
    loop.before_turns.append(lambda: call(next(numbers)))
    return loop.before_turns.clear


async def sights(begin: Callable[[], Awaitable[tuple[Standing, Leaving]]], seconds: float) -> list[Sight]:
    """Those at which a task stands at an await at which none has stood before while the cluster stood so."""
    found: list[Sight] = []
    known: set[object] = set()
    world, wire = await begin()

    def look(turn: int) -> None:
        standing, at = world.standing(), chains()
        if new := {(chain, standing) for chain in at} - known:
            known.update(new)
            found.append(Sight(turn, at, standing, wire.left()))

    over = at_turns(look)
    await asyncio.sleep(seconds)
    over()
    await world.end()
    return found
