"""Unexpected values, and how they get into objects that were sound before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

WORDS: Final[dict[str, Any]] = yaml.load(
    Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
"""Values, keys and texts that somewhere mean something, or nothing at all."""
ODD: Final[tuple[Any, ...]] = (*WORDS["odd values"], "a" * 64, "a" * 300, "a" * 70_000)
"""Values that somewhere are too large, too small, of another type, or mean something."""
_KEYS: Final = (*WORDS["odd keys"], "a" * 300)


def odd(dice: Random) -> Any:
    """One of the unexpected values."""
    if dice.random() < 0.02:
        return nested(dice)
    return deepcopy(dice.choice(ODD))


def nested(dice: Random) -> Any:
    """A value in a value in a value."""
    value: Any = 1
    in_list = dice.random() < 0.5
    for _ in range(dice.choice((3, 50, 150, 199, 250))):
        value = [value] if in_list else {"a": value}
    return value


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places of a value: a list or map, and an index or key of it."""
    open_ones = [value]
    while open_ones:
        one = open_ones.pop()
        if isinstance(one, dict | list):
            for key, inner in list(one.items() if isinstance(one, dict) else enumerate(one)):
                yield one, key
                open_ones.append(inner)


def broken(value: Any, dice: Random, times: int) -> Any:
    """A copy of the value that was changed in so many places."""
    value = deepcopy(value)
    for _ in range(times):
        found = list(places(value))
        if found:
            dice.choice(_BREAKS)(*dice.choice(found), dice)
    return value


def _replace(holder: Any, key: Any, dice: Random) -> None:
    holder[key] = odd(dice)


def _remove(holder: Any, key: Any, dice: Random) -> None:
    del holder[key]


def _add(holder: Any, key: Any, dice: Random) -> None:
    if isinstance(holder, dict):
        holder[dice.choice(_KEYS)] = odd(dice)
    else:
        holder.insert(dice.randrange(len(holder) + 1), odd(dice))


def _rename(holder: Any, key: Any, dice: Random) -> None:
    if isinstance(holder, dict):
        holder[dice.choice(_KEYS)] = holder.pop(key)


def _repeat(holder: Any, key: Any, dice: Random) -> None:
    """What stands there stands there twice, or in a list, or in itself."""
    match dice.randrange(3):
        case 0 if isinstance(holder, list):
            holder.extend([deepcopy(holder[key])] * dice.choice((1, 3, 200)))
        case 1:
            holder[key] = [holder[key]]
        case _:
            holder[key] = {"a": holder[key]}


def _within(holder: Any, key: Any, dice: Random) -> None:
    """A text that differs a little."""
    text = holder[key]
    if isinstance(text, str) and text:
        at = dice.randrange(len(text))
        holder[key] = text[:at] + dice.choice(("", "é", "\n", " ", "/", "%", "0", "{", '"')) + text[at + 1 :]
    else:
        holder[key] = odd(dice)


def _alike(holder: Any, key: Any, dice: Random) -> None:
    """Another value of the same type, which a decoder takes."""
    same = [one for one in ODD if type(one) is type(holder[key])]
    holder[key] = deepcopy(dice.choice(same)) if same else odd(dice)


_BREAKS: Final[tuple[Callable[[Any, Any, Random], None], ...]] = (
    _alike, _alike, _alike, _alike, _replace, _replace, _remove, _remove, _add, _rename, _repeat, _within,
)  # fmt: skip
