"""All recorded scenes by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.recorded.claims import claimed
from tests.recorded.closeness import close
from tests.recorded.crowds import crowded
from tests.recorded.devices import carded
from tests.recorded.drawing import Dice
from tests.recorded.layers import divided, held, layered
from tests.recorded.loads import grouped, measured, pinned, revocable, strategic
from tests.recorded.placing import particular
from tests.recorded.scene import Scene
from tests.recorded.sharing import branches, shares, trees

FAMILIES: Final[dict[str, tuple[Callable[[Dice, str], Scene], int]]] = {
    "crowded": (crowded, 45),
    "shares": (shares, 40),
    "trees": (trees, 40),
    "branches": (branches, 15),
    "particular": (particular, 40),
    "close": (close, 50),
    "layered": (layered, 45),
    "held": (held, 30),
    "divided": (divided, 20),
    "carded": (carded, 35),
    "claimed": (claimed, 25),
    "measured": (measured, 20),
    "revocable": (revocable, 15),
    "grouped": (grouped, 15),
    "pinned": (pinned, 15),
    "strategic": (strategic, 25),
}
"""How scenes of a family are made, and how many there are."""

NAMES: Final = tuple(f"{family}-{number}" for family, (_, count) in FAMILIES.items() for number in range(count))


def scene(name: str) -> Scene:
    """The scene of a name; the name is the seed of what is drawn."""
    make, _ = FAMILIES[name.rpartition("-")[0]]
    return make(Dice(name), name)
