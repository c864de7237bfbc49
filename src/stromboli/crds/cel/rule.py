"""What a rule of admission in CEL is, and expressions that several have in common.

An expression holds where the object is fine.  Absent fields are as they are stored, so each is asked for by ``has``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stromboli.crds.admission.paths import CREATE, UPDATE


class Rule(NamedTuple):
    """What must hold for ``operations``, and the sentence otherwise; ``told`` is an expression that makes it."""

    holds: str
    text: str
    told: str = ""
    operations: tuple[str, ...] = (CREATE, UPDATE)


class Policy(NamedTuple):
    """The rules of one kind; ``variables`` are expressions by name, ``only`` is a condition for being asked at all.

    ``lost`` says what the webhook server checks and CEL cannot.
    """

    name: str
    rules: Sequence[Rule]
    lost: Sequence[str] = ()
    variables: Mapping[str, str] = {}
    only: str = ""


def listed(names: Sequence[str]) -> str:
    """Texts as a list."""
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def some(field: str) -> str:
    """The list in a field that may be absent."""
    return f"has({field}) ? {field} : []"


def clashes(topology: str) -> str:
    """That a topology, which is there, names its highest tier twice."""
    return f"has({topology}.highestTierAllowed) && has({topology}.highestTierName)"
