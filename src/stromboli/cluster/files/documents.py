"""The bytes of a manifest file to objects: YAML documents, JSON, lists of objects, one JSON object a line.

What cannot be used comes out as an error in the place of the object; the objects around it are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from stromboli.api import kinds as declared
from stromboli.cluster.body import generated_name
from stromboli.cluster.decoding.decode import located
from stromboli.cluster.events import Added
from stromboli.cluster.files.yaml_values import load
from stromboli.cluster.kinds import KINDS, Object
from stromboli.cluster.objects import from_json, from_value, json_value, title_of
from stromboli.cluster.owners.kinds import OWNER_KINDS, is_of_kubernetes
from stromboli.crds.unknown import unknown_fields
from stromboli.errors import ManifestError
from stromboli.model.spec import Wire
from stromboli.model.values.reading import unreadable

LARGEST: Final = 1 << 30
"""Most bytes of one document."""
_DEEPEST: Final = 4
"""Most lists of objects inside each other."""

_SEPARATOR: Final = re.compile(rb"^---(?=\s|\Z)", re.MULTILINE)
_HOLDS_NOTHING: Final = re.compile(rb"(?:[ \t\r]*(?:#[^\n]*|%[^\n]*|\.\.\.[ \t\r]*)?(?:\n|\Z))*", re.MULTILINE)
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_FOREIGN: Final = {"Job": ("batch/",), "PodGroup": ("scheduling.k8s.io/", "scheduling.x-k8s.io/")}
"""Kinds of others that bear the same names, by the group of their API version."""
_RENAMED: Final = {(row.wire, version): kind for kind, row in KINDS.items() if row.wire for version in row.api_versions}
"""What kinds are called here whose names on the wire others have, too."""


class Document(NamedTuple):
    """One document of a file, and the line of the file (counted from 1) in which it begins."""

    text: bytes
    line: int = 1


class Skipped(NamedTuple):
    """An object of a kind that scheduling does not read: ``apiVersion kind``.

    Of one that may own pods ``owner`` is the object, of a kind that is not in the table its metadata alone.
    """

    kind: str
    owner: Mapping[str, Any] | None = None


class Ignored(NamedTuple):
    """A field that the object before has and its kind has not, and what that means for its writer."""

    error: ManifestError


Found = Added | Skipped | Ignored | ManifestError


class _Head(Wire, frozen=True):
    """What must be known of an object before it can be read; ``items`` makes it a list."""

    api_version: str | None = None
    kind: str | None = None
    items: list[msgspec.Raw] | None = None


_NO_HEAD: Final = _Head()


class _Form(Protocol):
    """An object, or list of objects, in the form in which it was read."""

    def head(self) -> _Head:
        """Its head, without the items."""

    def items(self) -> Iterable[_Opener] | None:
        """What it holds when it is a list of objects, each still to be opened."""

    def read(self, kind: str) -> Object:
        """The object, being of ``kind``."""

    def value(self) -> object:
        """Its plain value."""


_Opener = Callable[[], _Form]
"""Gives the form; raises ManifestError when there is none."""


class _Json(NamedTuple):
    raw: bytes | msgspec.Raw
    found: _Head | list[msgspec.Raw]

    def head(self) -> _Head:
        return self.found if isinstance(self.found, _Head) else _Head(kind="List")

    def items(self) -> Iterable[_Opener] | None:
        raws = self.found.items if isinstance(self.found, _Head) else self.found
        return None if raws is None else (partial(_json_form, raw) for raw in raws)

    def read(self, kind: str) -> Object:
        return from_json(kind, self.raw)

    def value(self) -> object:
        return json_value(self.raw)


class _Plain(NamedTuple):
    plain: object

    def head(self) -> _Head:
        if isinstance(self.plain, dict):
            version, kind = self.plain.get("apiVersion"), self.plain.get("kind")
            return _Head(version if isinstance(version, str) else None, kind if isinstance(kind, str) else None)
        if isinstance(self.plain, list):
            return _Head(kind="List")
        raise ManifestError(f"a document must be a mapping, not {type(self.plain).__name__} {self.plain!r:.40}")

    def items(self) -> Iterable[_Opener] | None:
        held = self.plain.get("items") if isinstance(self.plain, dict) else self.plain
        return (partial(_Plain, item) for item in held) if isinstance(held, list) else None

    def read(self, kind: str) -> Object:
        return from_value(kind, self.plain)

    def value(self) -> object:
        return self.plain


_decode_head: Final = msgspec.json.Decoder(_Head | list[msgspec.Raw]).decode


def _json_form(raw: bytes | msgspec.Raw) -> _Form:
    try:
        return _Json(raw, _decode_head(raw))
    except msgspec.ValidationError:  # neither a mapping nor a list, or its head is not as it should be
        return _Plain(json_value(raw))


def whole_objects(file: str | Path) -> Iterator[dict[str, Any]]:
    """The objects of a file as they are written, of whatever kind; those of lists come one by one.

    Raises ManifestError naming file and document for what is no object, and OSError.
    """
    for number, document in enumerate(split(Path(file).read_bytes()), start=1):
        try:
            yield from _whole(_form_of(document).value())
        except (UnicodeDecodeError, RecursionError) as error:
            raise ManifestError(unreadable(error), file=str(file), document=number) from error
        except ManifestError as error:
            raise located(error, file=str(file), document=number) from error


def readable_objects(data: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a file as :func:`whole_objects` gives them; documents that cannot be read hold none."""
    for document in split(data):
        try:
            found = list(_whole(_form_of(document).value()))
        except (UnicodeDecodeError, RecursionError, ManifestError):
            continue
        yield from found


def _whole(value: object, outer: _Head = _NO_HEAD) -> Iterator[dict[str, Any]]:
    if value is None:
        return
    head = _inherited(_Plain(value).head(), outer) if isinstance(value, dict) else _NO_HEAD
    if not isinstance(value, dict) or head.api_version is None or head.kind is None:
        raise ManifestError("a document without apiVersion and kind")
    items = value.get("items") if head.kind.endswith("List") else None
    if not isinstance(items, list):
        yield {**value, "apiVersion": head.api_version, "kind": head.kind}
        return
    for item in items:
        yield from _whole(item, head)


def split(data: bytes) -> Iterator[Document]:
    """The documents of a file, those that hold nothing left out: parted by ``---``, or one JSON value a line."""
    line = 1
    for part in _SEPARATOR.split(data.removeprefix(_BYTE_ORDER_MARK)):
        if part.lstrip()[:1] == b"{" and not _is_json(part):
            yield from _lines(part, line)
        elif not _HOLDS_NOTHING.fullmatch(part):
            yield Document(part, line)
        line += part.count(b"\n")


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _lines(text: bytes, first: int) -> list[Document]:
    """The lines of ``text`` when the first is a JSON value by itself, else ``text`` in one piece."""
    lines = [Document(line, number) for number, line in enumerate(text.split(b"\n"), start=first) if line.strip()]
    return lines if _is_json(lines[0].text) else [Document(text, first)]


def parse(document: Document, places: Iterator[int]) -> Iterator[Found]:
    """The objects of one document, in its order; ``places`` tell objects apart that ask for generated names."""
    try:
        if len(document.text) > LARGEST:
            raise ManifestError(f"is larger than {LARGEST} bytes; split it")
        yield from _unfold(partial(_form_of, document), _Head(), 0, places)
    except ManifestError as error:
        yield error
    except (UnicodeDecodeError, RecursionError) as error:
        yield ManifestError(unreadable(error))


def _form_of(document: Document) -> _Form:
    text, start = document.text, document.text.lstrip()[:2]
    if start[:1] in (b"{", b"[") and _is_json(text):
        return _json_form(text)
    try:
        return _Plain(load(text.decode(), document.line))
    except ManifestError:
        if start == b'{"':  # surely meant as JSON, so let JSON's reader say what is wrong
            json_value(text)
        raise


def _unfold(opener: _Opener, outer: _Head, depth: int, places: Iterator[int]) -> Iterator[Found]:
    try:
        form = opener()
        head = _inherited(form.head(), outer)
        items = form.items() if (head.kind or "List").endswith("List") else None
        if items is None:
            yield from _one(form, head, places)
            return
    except ManifestError as error:
        yield error
        return
    if depth == _DEEPEST:
        yield ManifestError(f"lists of objects are nested more than {_DEEPEST} deep", path="items")
        return
    for item in items:
        yield from _unfold(item, head, depth + 1, places)


def _inherited(head: _Head, outer: _Head) -> _Head:
    """``head`` with what the list around it says of its items: a PodList holds Pods."""
    kind = (outer.kind or "").removesuffix("List")
    if head.kind is not None or not kind:
        return head
    return _Head(head.api_version or outer.api_version, kind)


def _one(form: _Form, head: _Head, places: Iterator[int]) -> Iterator[Found]:
    try:
        kind, version = _checked_kind(head)
        if kind == "List" or (kind.removesuffix("List") in KINDS and kind not in KINDS):
            raise ManifestError("must be a list", path="items")
        meant = _RENAMED.get((kind, version))
        if meant is None and (kind not in KINDS or _is_internal(kind) or version.startswith(_FOREIGN.get(kind, ()))):
            yield Skipped(f"{version} {kind}".strip(), _owner(form, kind, version.rpartition("/")[0]))
            return
        kind = meant or kind
        _check_version(kind, version)
        form, found = _read(form, kind, places)
        yield Added(kind, found)
        yield from _ignored(form, kind)
    except ManifestError as error:
        yield ManifestError(error.problem, object=error.object or _title(form, head), path=error.path)


def _owner(form: _Form, kind: str, group: str) -> Mapping[str, Any] | None:
    """What is kept of an object that may own pods; None where kinds of its group own none, or it has no plain value."""
    if is_of_kubernetes(group):
        return None
    try:
        value = form.value()
    except ManifestError:  # such as of a number out of range, which is none of our concern
        return None
    if not isinstance(value, Mapping) or not isinstance(value.get("metadata"), Mapping):
        return None
    return value if (group, kind) in OWNER_KINDS else {"metadata": value["metadata"]}


def _read(form: _Form, kind: str, places: Iterator[int]) -> tuple[_Form, Object]:
    """The object, and its form, in which one without a name that has a ``generateName`` has got one."""
    try:
        return form, form.read(kind)
    except ManifestError as error:
        named = _named(form.value(), places) if error.path == "metadata.name" else None
        if named is None:
            raise
        return named, named.read(kind)


def _named(value: object, places: Iterator[int]) -> _Form | None:
    """The object under a name as an API server generates it; None where it asks for none.

    The same object in the same place gets the same name whenever it is read.
    """
    metadata = value.get("metadata") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(metadata, Mapping) or metadata.get("name"):
        return None
    base = metadata.get("generateName")
    if not isinstance(base, str) or not base:
        return None
    drawn = iter(sha256(repr((value, next(places))).encode()).digest())
    name = generated_name(base, lambda letters: letters[next(drawn) % len(letters)])
    return _Plain({**value, "metadata": {**metadata, "name": name}})


def _is_internal(kind: str) -> bool:
    """Whether manifests know the kind by another name."""
    return bool(KINDS[kind].wire or KINDS[kind].part_of)


def _ignored(form: _Form, kind: str) -> Iterator[Ignored]:
    """The fields of an object of ours that its kind does not have."""
    value = form.value() if kind in declared.KINDS else None
    if not isinstance(value, Mapping):
        return
    for unknown in unknown_fields(declared.KINDS[kind], value):
        meant = f"; did you mean {unknown.meant}?" if unknown.meant else ""
        problem = f"a {kind} has no such field, so it is ignored{meant}"
        yield Ignored(ManifestError(problem, object=title_of(kind, value), path=unknown.path))


def _title(form: _Form, head: _Head) -> str:
    try:
        return title_of(head.kind or "object", form.value())
    except ManifestError:
        return head.kind or "object"


def _checked_kind(head: _Head) -> tuple[str, str]:
    if not head.kind:
        raise ManifestError("is missing, or is no text", path="kind")
    return head.kind, head.api_version or ""


def _check_version(kind: str, version: str) -> None:
    known = KINDS[kind].api_versions
    if version not in known:
        problem = f"{version[:60]!r} is not known" if version else "is missing, or is no text"
        raise ManifestError(f"{problem}; a {kind} is {' or '.join(known)}", path="apiVersion")
