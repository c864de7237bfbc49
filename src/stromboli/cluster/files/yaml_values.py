"""YAML as Kubernetes' tools read it: one document's text to plain values, with bounds on what it may grow into.

Like :mod:`stromboli.framework.config.document`, which keeps lines instead of being fast, it is built on the parser's
events, so nothing recurses: nesting is at most :data:`DEEPEST`, and aliases may add at most :data:`MOST_ALIASED`
values.  Scalars mean the same in both; keys are always texts; a key may stand once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Protocol

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from stromboli.errors import ManifestError
from stromboli.framework.config.document import resolve
from stromboli.model.values.yaml_bounds import DEEPEST, LONGEST_WORD, MOST_ALIASED

_TAG: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = (None, "!", f"{_TAG}map", f"{_TAG}seq")
_TAGGED: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
_MERGE: Final = "<<"


class _Open:
    """A mapping or list whose end has not come yet; ``size`` counts it and all below it, aliases in full."""

    __slots__ = ("anchor", "key", "merged", "size", "value")

    def __init__(self, value: dict[str, object] | list[object], anchor: str | None) -> None:
        self.value, self.anchor = value, anchor
        self.key: str | None = None
        self.merged: list[object] = []
        self.size = 1

    @property
    def wants_key(self) -> bool:
        """Whether what comes next is a key."""
        return self.key is None and isinstance(self.value, dict)


def load(text: str, first_line: int = 1) -> object:
    """The value of the one document in ``text``, which begins in ``first_line`` of its file; None when there is none.

    Raises :class:`~stromboli.errors.ManifestError` with the line for what is no YAML, or goes beyond the bounds.
    """
    builder = _Builder(first_line)
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise ManifestError(
            f"is not YAML: {error.problem or error.context}{_line(error.problem_mark, first_line)}"
        ) from error
    except yaml.YAMLError as error:
        raise ManifestError(f"is not YAML: {str(error).splitlines()[0]}") from error
    return builder.result


def _events(text: str) -> Iterator[Event]:
    return yaml.parse(text, Loader=yaml.CSafeLoader)


class _Mark(Protocol):
    @property
    def line(self) -> int:
        """Lines before this one."""


def _line(mark: _Mark | None, first_line: int) -> str:
    return f" (line {mark.line + first_line})" if mark else ""


class _Builder:
    """Puts values together from events."""

    def __init__(self, first_line: int) -> None:
        self._first_line = first_line
        self.result: object = None
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._aliased = 0

    def take(self, event: Event) -> None:
        """Go on by one event."""
        if isinstance(event, ScalarEvent):
            self._scalar(event)
        elif isinstance(event, CollectionEndEvent):
            self._close(event)
        elif isinstance(event, AliasEvent):
            self._alias(event)
        elif isinstance(event, SequenceStartEvent):
            self._open([], event)
        elif isinstance(event, MappingStartEvent):
            self._open({}, event)

    def _scalar(self, event: ScalarEvent) -> None:
        is_key = bool(self._stack) and self._stack[-1].wants_key
        value = event.value if is_key else self._meaning(event)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        if is_key:
            self._stack[-1].key = event.value
        else:
            self._put(value, 1, event)

    def _open(self, value: dict[str, object] | list[object], event: SequenceStartEvent | MappingStartEvent) -> None:
        if self._stack and self._stack[-1].wants_key:
            raise self._refuse("a key must be a text", event)
        if event.tag not in _PLAIN_TAGS:
            raise self._refuse(f"tag {event.tag!r:.40} is not known", event)
        if len(self._stack) >= DEEPEST:
            raise self._refuse(f"it is nested more than {DEEPEST} deep", event)
        self._stack.append(_Open(value, event.anchor))

    def _close(self, event: Event) -> None:
        done = self._stack.pop()
        if done.merged:
            # In one pass, as each merge may have a hundred thousand fellows; what is merged first counts most.
            whole = [self._mapping(value, event) for value in (*reversed(done.merged), done.value)]
            done.value = {key: value for mapping in whole for key, value in mapping.items()}
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        self._put(done.value, done.size, event)

    def _alias(self, event: AliasEvent) -> None:
        name = event.anchor or ""
        if name not in self._anchors:
            raise self._refuse(f"alias {name[:40]!r} stands for nothing that is complete", event)
        value, size = self._anchors[name]
        if self._stack and self._stack[-1].wants_key:
            if not isinstance(value, str):
                raise self._refuse("a key must be a text", event)
            self._stack[-1].key = value
            return
        self._aliased += size
        if self._aliased > MOST_ALIASED:
            raise self._refuse(f"its aliases stand for more than {MOST_ALIASED} values", event)
        self._put(value, size, event)

    def _put(self, value: object, size: int, event: Event) -> None:
        """``value`` is complete: it belongs to the innermost mapping or list that is still open."""
        if not self._stack:
            self.result = value
            return
        top = self._stack[-1]
        top.size += size
        if isinstance(top.value, list):
            top.value.append(value)
            return
        key, top.key = top.key or "", None
        if key == _MERGE:
            top.merged.extend(value if isinstance(value, list) else [value])
        elif key in top.value:
            raise self._refuse(f"key {key[:40]!r} stands twice in one mapping", event)
        else:
            top.value[key] = value

    def _mapping(self, value: object, event: Event) -> dict[str, object]:
        if not isinstance(value, dict):
            raise self._refuse("only mappings can be merged with <<", event)
        return value

    def _meaning(self, event: ScalarEvent) -> object:
        """What a scalar stands for, by its tag or, without one, by whether it is quoted."""
        if event.tag is None or event.tag == "!":
            return _plain(event.value) if event.implicit[0] else event.value
        name = event.tag.removeprefix(_TAG)
        value = event.value if name == "str" else _plain(event.value)
        if name not in _TAGGED or not isinstance(value, _TAGGED[name]):
            raise self._refuse(f"tag {event.tag[:40]!r} does not fit here", event)
        return value

    def _refuse(self, problem: str, event: Event) -> ManifestError:
        return ManifestError(f"is refused: {problem}{_line(event.start_mark, self._first_line)}")


def _plain(text: str) -> object:
    """What a scalar without quotes means."""
    return text if len(text) > LONGEST_WORD else _word(text)


_word: Final = lru_cache(maxsize=1 << 14)(resolve)
