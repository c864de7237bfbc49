"""A YAML text as a tree that remembers its lines, read so that no text can hurt.

The tree is built from the parser's events without recursion: depth and expansion by aliases are bounded, duplicate keys
are seen, and every mistake is a ConfigError with file and line.  Plain scalars are read as the reference's parser reads
them, not as YAML 1.1 in full: ``1e3`` is a number, ``1:30`` and ``2024-01-01`` are texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NoReturn

import yaml

from stromboli.errors import ConfigError
from stromboli.model.values.reading import unreadable
from stromboli.model.values.yaml_bounds import DEEPEST, LONGEST_WORD, MOST_ALIASED

CONFIG_MAP: Final = "ConfigMap"
"""The kind of manifests that hold configurations."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value and the line (counted from 1) it stands on; an entry of a mapping bears the line of its key.

    ``raw`` is a scalar as written, without quotes; ``size`` counts the nodes of the subtree, aliases expanded.
    """

    line: int
    value: Scalar | list[DocumentNode] | dict[str, DocumentNode]
    raw: str = ""
    size: int = 1

    def plain(self) -> object:
        """The value as plain dicts, lists and scalars."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


@dataclass(frozen=True, slots=True)
class Document:
    """The tree of a text, None when it is empty, and its doubtful spots as (line, what) pairs.

    A key that stands twice is such a spot: the last one counts.  So are further documents: the first one counts.
    """

    root: DocumentNode | None
    doubts: tuple[tuple[int, str], ...] = ()


def read_text(file: str | Path) -> str:
    """The text of a configuration file; of a ConfigMap's manifest the configuration in it, on the lines it stands on.

    Raises ConfigError for what is no UTF-8, and for a ConfigMap without one key that ends in ``.conf``; OSError.
    """
    try:
        text = Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(unreadable(error), file=str(file)) from error
    return _in_config_map(text, str(file)) if CONFIG_MAP in text else text


def _in_config_map(text: str, file: str) -> str:
    root = read_document(text, file=file).root
    entries = root.value if root is not None and isinstance(root.value, dict) else {}
    if "kind" not in entries or entries["kind"].value != CONFIG_MAP:
        return text
    data = entries["data"].value if "data" in entries else None
    found = [node for key, node in data.items() if key.endswith(".conf")] if isinstance(data, dict) else []
    if len(found) != 1 or not isinstance(found[0].value, str):
        problem = f"the ConfigMap holds {len(found)} configurations (keys that end in .conf); it must hold one"
        raise ConfigError(problem, file=file, line=entries["kind"].line)
    return "\n" * found[0].line + found[0].value


def read_document(text: str, *, file: str) -> Document:
    """Parse ``text``; ``file`` is named in messages.  Raises ConfigError with file and line for anything unreadable."""
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.feed(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        last = text.rstrip().count("\n") + 1  # what is never closed is noticed beyond the end
        raise ConfigError(f"not YAML: {problem}", file=file, line=min(mark.line + 1, last) if mark else 0) from error
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ConfigError("not YAML: half a surrogate pair in the text", file=file, line=line) from error
    return Document(builder.roots[0] if builder.roots else None, tuple(builder.doubts))


@dataclass(slots=True)
class _Open:
    """A collection whose end is still to come; the items of a mapping are key, value, key, value."""

    line: int
    mapping: bool
    anchor: str | None
    items: list[DocumentNode] = field(default_factory=list)


class _Builder:
    def __init__(self, file: str) -> None:
        self.file = file
        self.roots: list[DocumentNode] = []
        self.doubts: list[tuple[int, str]] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, DocumentNode] = {}
        self._aliased = 0

    def feed(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.DocumentStartEvent() if self.roots:
                self.doubts.append((line, "a second document; only the first one counts"))
            case yaml.ScalarEvent():
                self._add(self._scalar(event, line), event.anchor)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._descend(_Open(line, isinstance(event, yaml.MappingStartEvent), event.anchor))
            case yaml.CollectionEndEvent():
                opened = self._open.pop()
                self._add(self._closed(opened), opened.anchor)
            case yaml.AliasEvent():
                self._add(self._alias(event, line), None)

    def _descend(self, opened: _Open) -> None:
        if len(self._open) >= DEEPEST:
            self._refuse(opened.line, f"nested more than {DEEPEST} deep")
        self._open.append(opened)

    def _add(self, node: DocumentNode, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = node
        (self._open[-1].items if self._open else self.roots).append(node)

    def _alias(self, event: yaml.AliasEvent, line: int) -> DocumentNode:
        node = self._anchors.get(event.anchor or "")
        if node is None:
            self._refuse(line, f"alias *{event.anchor} has no anchor before it, or stands inside its own anchor")
        self._aliased += node.size
        if self._aliased > MOST_ALIASED:
            self._refuse(line, f"aliases expand to more than {MOST_ALIASED} values")
        return node

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> DocumentNode:
        tag = event.tag
        if event.implicit[0]:
            return DocumentNode(line, resolve(event.value), event.value)
        if tag in (None, "!") or event.implicit[1] or tag == "tag:yaml.org,2002:str":
            return DocumentNode(line, event.value, event.value)
        value = resolve(event.value)
        if tag not in {f"tag:yaml.org,2002:{kind}" for kind in _KINDS.get(type(value), ())}:
            self._refuse(line, f"tag {tag} does not go with {event.value!r}")
        return DocumentNode(line, value, event.value)

    def _closed(self, opened: _Open) -> DocumentNode:
        size = 1 + sum(item.size for item in opened.items)
        if not opened.mapping:
            return DocumentNode(opened.line, opened.items, size=size)
        return DocumentNode(opened.line, self._mapping(opened.items), size=size)

    def _mapping(self, items: list[DocumentNode]) -> dict[str, DocumentNode]:
        entries: dict[str, DocumentNode] = {}
        merged: list[dict[str, DocumentNode]] = []
        for key, value in zip(items[::2], items[1::2], strict=True):
            if isinstance(key.value, (list, dict)):
                self._refuse(key.line, "a key must be a plain text")
            if key.raw == "<<":
                merged += self._merged(key, value)
                continue
            if key.raw in entries:
                self.doubts.append((key.line, f"key {key.raw} stands twice, first in line {entries[key.raw].line}"))
            entries[key.raw] = replace(value, line=key.line)
        for source in merged:
            for name, node in source.items():
                entries.setdefault(name, node)  # in place: a new mapping a merge would take quadratic time
        return entries

    def _merged(self, key: DocumentNode, value: DocumentNode) -> Iterator[dict[str, DocumentNode]]:
        for source in value.value if isinstance(value.value, list) else [value]:
            if not isinstance(source.value, dict):
                self._refuse(key.line, "<< takes a mapping or a list of mappings")
            yield source.value

    def _refuse(self, line: int, problem: str) -> NoReturn:
        raise ConfigError(problem, file=self.file, line=line)


_KINDS: dict[type, tuple[str, ...]] = {bool: ("bool",), int: ("int", "float"), float: ("float",), type(None): ("null",)}

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **{form: True for word in ("true", "yes", "on") for form in (word, word.title(), word.upper())},
    **{form: False for word in ("false", "no", "off") for form in (word, word.title(), word.upper())},
    **{sign + form: float(f"{sign}inf") for sign in ("", "+", "-") for form in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}

_INT = re.compile(r"([-+]?)(?:0x([0-9a-fA-F]+)|0b([01]+)|0o?([0-7]+)|([1-9][0-9]*|0))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)


def resolve(text: str) -> Scalar:
    """The value of a scalar written without quotes: null, truth, whole number (64 bits), number, else the text."""
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "")
    if len(text) > LONGEST_WORD or not text[0].isascii():
        return text
    if found := _INT.fullmatch(digits):
        sign, *groups = found.groups()
        number = next(int(group, base) for group, base in zip(groups, (16, 2, 8, 10), strict=True) if group)
        return _within(-number if sign == "-" else number)
    return float(digits) if _FLOAT.fullmatch(digits) else text


def _within(number: int) -> int | float:
    return number if -(2**63) <= number < 2**64 else float(number)
