"""Unpack an OCI archive into a folder, as a container runtime sees it: its root file system and its settings."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_OPAQUE: Final = ".wh..wh..opq"
_GONE: Final = ".wh."


def unpack(archive: Path, root: Path) -> dict[str, Any]:
    """Write the root file system below ``root`` and answer the image's configuration."""
    root.mkdir(parents=True)
    for layer in layers(archive):
        _apply(layer, root)
    with tarfile.open(archive) as file:
        found: dict[str, Any] = json.loads(_blob(file, _manifest(file)["config"]))
    return found


def layers(archive: Path) -> Iterator[io.BytesIO]:
    """The layers of an image, the lowest first, each a tar archive."""
    with tarfile.open(archive) as file:
        for layer in _manifest(file)["layers"]:
            data = _blob(file, layer)
            yield io.BytesIO(gzip.decompress(data) if layer["mediaType"].endswith("gzip") else data)


def _manifest(file: tarfile.TarFile) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_blob(file, json.loads(_read(file, "index.json"))["manifests"][0]))
    return found


def _blob(file: tarfile.TarFile, descriptor: dict[str, Any]) -> bytes:
    return _read(file, f"blobs/{descriptor['digest'].replace(':', '/', 1)}")


def _read(file: tarfile.TarFile, name: str) -> bytes:
    found = file.extractfile(name)
    return found.read() if found else b""


def _apply(layer: io.BytesIO, root: Path) -> None:
    """Lay a layer over what is there; names that begin with ``.wh.`` take something away."""
    with tarfile.open(fileobj=layer) as members:
        for member in members:
            path = root / member.name
            if path.name == _OPAQUE:
                for below in path.parent.iterdir():
                    _remove(below)
            elif path.name.startswith(_GONE):
                _remove(path.with_name(path.name.removeprefix(_GONE)))
            else:
                if not member.isdir():
                    _remove(path)
                members.extract(member, root, filter="fully_trusted")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
