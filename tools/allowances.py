"""Exceptions from budgets: what exceeds its limit today, how far, and why; a ratchet that turns one way."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.sizes import Size

FILE = "tools/budget_exceptions.toml"
MOST = 50
"""How many exceptions there may be."""
Key = tuple[str, str]
LIMIT = re.compile(r'limit = "(?P<limit>[^"]+)"\n')
ENTRY = re.compile(r'"(?P<place>[^"]+)" = \d+\n')


@dataclass
class Allowances:
    """What exceptions allow, by limit and place, and what was measured of each."""

    values: Mapping[Key, int]
    unexplained: Sequence[str] = ()
    measured: dict[Key, int] = field(default_factory=dict)

    @classmethod
    def read(cls, project: Path) -> Allowances:
        """Read the project's list; a missing file has no entries."""
        path = project / FILE
        groups = tomllib.loads(path.read_text(encoding="utf-8")).get("exception", []) if path.exists() else []
        values = {(group["limit"], place): value for group in groups for place, value in group["values"].items()}
        return cls(values, [group["limit"] for group in groups if not group.get("reason", "").strip()])

    def limit(self, size: Size, usual: int) -> int:
        """Answer how large `size` may be, and remember how large it was found."""
        if size.value > usual and size.key in self.values:
            self.measured[size.key] = max(size.value, self.measured.get(size.key, 0))
        return self.values.get(size.key, usual)

    def breaches(self) -> Iterator[str]:
        """Yield what is wrong with the list itself."""
        if len(self.values) > MOST:
            yield f"{FILE}: {len(self.values)} exceptions, at most {MOST}"
        for limit in self.unexplained:
            yield f"{FILE}: an exception from {limit!r} lacks a reason"

    def slack(self) -> dict[Key, int]:
        """Answer the exceptions that allow more than is needed, with what was measured; 0 if none is needed."""
        found = {key: self.measured.get(key, 0) for key in self.values}
        return {key: value for key, value in found.items() if value < self.values[key]}

    def requests(self) -> Iterator[str]:
        """Yield what should change in the list because the project has become better."""
        for (limit, place), value in self.slack().items():
            change = f"is {value}: lower its exception" if value else "needs its exception no longer"
            yield f"{FILE}: {limit} of {place} {change}"

    def lower(self, project: Path) -> None:
        """Write the list with each exception at what was measured, those that nothing needs left out."""
        path, slack, limit = project / FILE, self.slack(), ""
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = []
        for line in lines:
            if named := LIMIT.fullmatch(line):
                limit = named["limit"]
            kept.append(lowered(line, {place: value for (of, place), value in slack.items() if of == limit}))
        path.write_text("".join(kept), encoding="utf-8")


def lowered(line: str, places: Mapping[str, int]) -> str:
    """Answer a line of the list, below one limit, with the value that its place has; empty if that is 0."""
    entry = ENTRY.fullmatch(line)
    if entry is None or entry["place"] not in places:
        return line
    value = places[entry["place"]]
    return f'"{entry["place"]}" = {value}\n' if value else ""
