"""Scratch pads: what a pre-filter found out about a task, kept for the same task's filter and score."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Clonable(Protocol):
    """A value that makes its own copy when the state is cloned."""

    def clone(self) -> object:
        """An independent copy."""


class CycleState:
    """The scratch pad of one task; it ends with the session."""

    __slots__ = ("_values", "skip_filter_plugins", "skip_score_plugins")

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self.skip_filter_plugins: set[str] = set()
        self.skip_score_plugins: set[str] = set()

    def write(self, key: str, value: object) -> None:
        """Store ``value``, replacing what was there."""
        self._values[key] = value

    def read(self, key: str) -> object:
        """What was stored, the same object; KeyError naming the key when nothing was."""
        return self._values[key]

    def get(self, key: str, default: object = None) -> object:
        """What was stored, the same object; ``default`` when nothing was."""
        return self._values.get(key, default)

    def delete(self, key: str) -> None:
        """Forget ``key``; fine when it is absent."""
        self._values.pop(key, None)

    def clone(self) -> CycleState:
        """An independent state: values that can clone themselves are cloned, others shared."""
        twin = CycleState()
        twin._values = {k: v.clone() if isinstance(v, Clonable) else v for k, v in self._values.items()}
        twin.skip_filter_plugins = set(self.skip_filter_plugins)
        twin.skip_score_plugins = set(self.skip_score_plugins)
        return twin
