"""What is kept of the recorded scenes, a text file a family, so that a commit shows what it changes.

::

    scene crowded-3
    cycle 1
      binds t-w0>n1 t-w1>n0
      texts 0a1b2c3d4e
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.recorded.deciding import Parts, decided, kept
from tests.recorded.families import FAMILIES, NAMES, scene

FOLDER: Final = Path(__file__).with_name("decisions")

Cycles = list[Parts]
"""What is kept of a scene."""


def of_now(name: str) -> Cycles:
    """What is kept of a scene as it is decided now."""
    return [kept(parts) for parts in decided(scene(name))]


def written(scenes: Iterable[tuple[str, Cycles]]) -> str:
    """The text of a file."""
    lines: list[str] = []
    for name, cycles in scenes:
        lines.append(f"scene {name}")
        for number, parts in enumerate(cycles, 1):
            lines.append(f"cycle {number}")
            lines += [f"  {part} {text}" for part, text in parts.items()]
    return "\n".join(lines) + "\n"


def read(text: str) -> dict[str, Cycles]:
    """The scenes of a file by name."""
    found: dict[str, Cycles] = {}
    cycles: Cycles = []
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if line.startswith("  "):
            cycles[-1][word] = rest
        elif word == "scene":
            cycles = found[rest] = []
        else:
            cycles.append({})
    return found


def recorded(family: str) -> dict[str, Cycles]:
    """What was recorded of the scenes of a family."""
    return read((FOLDER / f"{family}.txt").read_text(encoding="utf-8"))


def record() -> None:
    """Decide all scenes and keep what comes of them; files of families that are no more go."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.stem not in FAMILIES:
            path.unlink()
    for family in FAMILIES:
        found = [(name, of_now(name)) for name in NAMES if name.rpartition("-")[0] == family]
        (FOLDER / f"{family}.txt").write_text(written(found), encoding="utf-8")


def differences(name: str, before: Cycles, after: Cycles) -> list[str]:
    """The parts in which a scene is decided otherwise than recorded, and the commands that show more."""
    found = []
    for number in range(max(len(before), len(after))):
        old, new = (cycles[number] if number < len(cycles) else {} for cycles in (before, after))
        for part in dict.fromkeys((*old, *new)):
            if old.get(part) != new.get(part):
                found.append(f"{name}, cycle {number + 1}, {part}:\n  was {old.get(part)}\n  is  {new.get(part)}")
    return found
