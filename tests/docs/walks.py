"""The walks of the page on architecture, and the functions that are entered while a cluster goes through them."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import stromboli
from tests.support.contested import Contested
from tests.support.live_world import LiveWorld, gang

PACKAGE = Path(stromboli.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
STEP = re.compile(r"^\d+\. `(?P<path>[\w/]+\.py)`, `(?P<function>[\w.]+)`: ", re.MULTILINE)


class Step(NamedTuple):
    """A function of the package: its file as ``live/writing/binds.py``, and its qualified name."""

    path: str
    function: str


def steps(heading: str) -> list[Step]:
    """The steps of the walk under a heading of the page."""
    _, found, text = PAGE.read_text(encoding="utf-8").partition(f"### {heading}\n")
    assert found, heading
    return [Step(*match.groups()) for match in STEP.finditer(text.partition("\n#")[0])]


def first_missing(walk: Iterable[Step], entered: Iterable[Step]) -> Step | None:
    """The first step of a walk that is not entered after the one before it; None if all are."""
    left = iter(entered)
    return next((step for step in walk if step not in left), None)


@contextmanager
def entering() -> Iterator[list[Step]]:
    """Every function of the package that is entered inside, in order; coroutines count each time they go on."""
    found: list[Step] = []
    start = f"{PACKAGE}/"

    def look(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(start):
            found.append(Step(code.co_filename.removeprefix(start), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)


async def a_pod_is_bound() -> list[Step]:
    """A pod arrives for which there is room."""
    world = LiveWorld()
    world.start(world.scheduler())
    await asyncio.sleep(3)
    with entering() as found:
        gang(world.server, "g", 1)
        await asyncio.sleep(4)
    assert all(world.pods().values())
    await world.end()
    return found


async def a_gang_takes_room(folder: Path) -> list[Step]:
    """A gang arrives that has to evict others, waits until they have ended, and is bound."""
    world = Contested(folder / "conf")
    world.start(world.mortal())
    await asyncio.sleep(3)
    with entering() as found:
        world.contend()
        await asyncio.sleep(15)
    assert all(world.high())
    await world.end()
    return found
