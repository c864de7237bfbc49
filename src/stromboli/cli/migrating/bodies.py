"""Objects of files as they are written, kinds that scheduling does not read included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from stromboli.errors import ManifestError

Body = Mapping[str, Any]
"""An object as written."""

SUFFIXES = (".yaml", ".yml", ".json")


def bodies_in(paths: Iterable[str]) -> Iterator[Body]:
    """The objects of files and directories.  Raises ManifestError for a file that cannot be read."""
    for path in map(Path, paths):
        files = sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES) if path.is_dir() else [path]
        for file in files:
            yield from _objects(file)


def _objects(file: Path) -> Iterator[Body]:
    try:
        data = file.read_bytes()
        documents = (
            [msgspec.json.decode(data)] if file.suffix == ".json" else list(yaml.load_all(data, yaml.CSafeLoader))
        )
    except (OSError, yaml.YAMLError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"cannot be read: {error}", file=str(file)) from error
    for document in documents:
        yield from _flat(document)


def _flat(document: Any) -> Iterator[Body]:
    if not isinstance(document, dict):
        return
    items = document.get("items")
    if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
        for item in items:
            yield from _flat(item)
    elif isinstance(document.get("metadata"), dict):
        yield document


def title(body: Body) -> str:
    """``Kind namespace/name``."""
    meta = body["metadata"]
    place = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{body.get('kind', '')} {place}{meta.get('name', '')}"


def at(body: Body, *path: str) -> Any:
    """What stands under keys inside each other; None where one is missing."""
    found: Any = body
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found
