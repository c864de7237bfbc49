"""One row of the table in which Stromboli departs from the reference."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One row: its name, what each side does, where it shows, and why ours differs.

    ``restored`` is False where compat mode keeps our way; ``why`` then says why that is safe.
    """

    name: str
    ours: str
    reference: str
    where: str
    why: str
    restored: bool = True
