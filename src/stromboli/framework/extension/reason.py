"""Why a task does not fit: a code that says whether an eviction could help, and a text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum


class StatusCode(IntEnum):
    """Kubernetes' codes of a filter's answer."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a task does not fit a node, or nowhere.

    ``text`` may be a template with named gaps (``"Insufficient {resource}"``), to be filled by :meth:`of`.
    ``resolvable`` says whether evicting tasks could help; ``code`` follows from it (Unschedulable, or
    UnschedulableAndUnresolvable), or is given and decides: only plain Unschedulable is resolvable.  A refusal is never
    a Success, so that value stands for "not given".
    ``plugin`` is the plugin or filter that speaks; the framework fills it in where it is empty.
    """

    text: str
    resolvable: bool = True
    code: StatusCode = StatusCode.SUCCESS
    plugin: str = ""

    def __post_init__(self) -> None:
        if self.code == StatusCode.SUCCESS:
            derived = StatusCode.UNSCHEDULABLE if self.resolvable else StatusCode.UNSCHEDULABLE_AND_UNRESOLVABLE
            object.__setattr__(self, "code", derived)
        object.__setattr__(self, "resolvable", self.code == StatusCode.UNSCHEDULABLE)

    def of(self, **values: object) -> Reason:
        """The same reason with the gaps of its template filled; KeyError names a gap that was not given."""
        return replace(self, text=self.text.format(**values))

    def said_by(self, plugin: str) -> Reason:
        """The same reason with the speaker's name, unless it has one."""
        return self if self.plugin else replace(self, plugin=plugin)

    def __str__(self) -> str:
        return self.text
