"""What a rule is and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

Severity = Literal["error", "warning", "note"]
ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}

Subject = TypeVar("Subject")


class Spot(NamedTuple):
    """One place where a rule is broken: what is wrong, and where.

    ``line`` is that of the configuration, ``object`` and ``path`` name an object and its field.  ``severity`` replaces
    the rule's where one case weighs less.
    """

    text: str
    line: int = 0
    object: str = ""
    path: str = ""
    file: str = ""
    severity: Severity | None = None


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A broken rule: its id and severity, what is wrong where, why that matters and what to do."""

    rule: str
    severity: Severity
    text: str
    why: str
    fix: str
    file: str = ""
    line: int = 0
    object: str = ""
    path: str = ""

    @property
    def where(self) -> str:
        """File and line, or object and field."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ", ".join(part for part in (place, self.object, self.path) if part)


@dataclass(frozen=True, slots=True)
class Rule(Generic[Subject]):
    """A row of a table of rules; ``check`` yields the spots where its subject breaks it."""

    id: str
    severity: Severity
    check: Callable[[Subject], Iterable[Spot]]
    why: str
    fix: str

    def findings(self, subject: Subject, file: str = "") -> Iterator[Finding]:
        """Every spot as a finding; ``file`` is where they are unless they say so."""
        for spot in self.check(subject):
            yield Finding(
                self.id, spot.severity or self.severity, spot.text, self.why, self.fix, spot.file or file, spot.line,
                spot.object, spot.path,
            )  # fmt: skip


def broken(rules: Sequence[Rule[Subject]], subject: Subject, file: str = "") -> list[Finding]:
    """What is wrong with ``subject``, in the order of the file, then of the rules."""
    found = [finding for rule in rules for finding in rule.findings(subject, file)]
    return sorted(found, key=lambda finding: finding.line)


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes."""
    return sorted(findings, key=lambda finding: ORDER[finding.severity])
