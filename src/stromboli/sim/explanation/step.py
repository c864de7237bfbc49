"""One step of an explanation."""

from __future__ import annotations

import msgspec

from stromboli.framework.extension.weighing import Numbers
from stromboli.framework.session.admission import Refusal


class Step(msgspec.Struct, frozen=True):
    """One question and its answer.

    ``n`` numbers it as in the documentation, ``ok`` is None where it was not asked; ``lines`` are details in words.
    """

    n: int
    name: str
    ok: bool | None
    text: str
    lines: tuple[str, ...] = ()
    numbers: Numbers = {}
    refusals: tuple[Refusal, ...] = ()
