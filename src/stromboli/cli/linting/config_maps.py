"""Configurations that stand in manifests, as values of ConfigMaps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from stromboli.cluster.body import part
from stromboli.cluster.files.documents import whole_objects
from stromboli.cluster.files.reader import files_of
from stromboli.cluster.files.yaml_values import load
from stromboli.errors import ManifestError

SUFFIX: Final = ".conf"
"""Keys of configurations end so."""
USUAL: Final = "volcano-scheduler.conf"
"""The key of the scheduler's configuration in Volcano's installers."""
_MARKS: Final = (b"ConfigMap", SUFFIX.encode())
"""What a file must hold to be read for them."""
_PARTS: Final = ("actions", "tiers", "configurations")
"""Parts of the scheduler's configuration, of which it has one: redis.conf or volcano-admission.conf are another's."""
_KEY: Final = re.compile(r"^([a-z]{1,20})[ \t]*:", re.MULTILINE)
_MOST_KEYS: Final = 100
"""Keys of a value that are looked at."""
_LIKE: Final = 0.8
"""How like a part a key must be to be meant for it: a slip of the pen is to be found."""


class Held(NamedTuple):
    """A configuration in a file; its first line comes after so many ``before`` it."""

    file: str
    text: str
    before: int


def held_in(paths: Iterable[str]) -> list[Held]:
    """The configurations in ConfigMaps of files and directories; files that cannot be read hold none."""
    return [held for path in paths for file in files_of(path) for held in _held(Path(file))]


def _held(file: Path) -> Iterator[Held]:
    try:
        data = file.read_bytes()
        objects = list(whole_objects(file)) if all(mark in data for mark in _MARKS) else []
    except (OSError, ManifestError):  # reported when the objects are read
        return
    lines = [line.replace('"', "").strip() for line in data.decode(errors="replace").splitlines()]
    starts: dict[str, Iterator[int]] = {}
    for body in objects:
        values = part(body, "data") if body["kind"] == "ConfigMap" else None
        for key, text in values.items() if isinstance(values, dict) else ():
            if isinstance(text, str) and _is_conf(str(key), text):
                yield Held(str(file), text, next(starts.setdefault(key, _lines_of(key, lines)), 0))


def _is_conf(key: str, text: str) -> bool:
    """Whether a value is a configuration of the scheduler."""
    return key == USUAL or (
        key.endswith(SUFFIX) and any(get_close_matches(one, _PARTS, 1, _LIKE) for one in _keys(text))
    )


def _keys(text: str) -> Iterator[str]:
    """The first keys of a text that is a mapping, or is to be one."""
    try:
        value = load(text, 1)
    except ManifestError:
        value = dict.fromkeys(found.group(1) for found in islice(_KEY.finditer(text), _MOST_KEYS))
    return (str(key)[:20] for key in islice(value, _MOST_KEYS)) if isinstance(value, Mapping) else iter(())


def _lines_of(key: str, lines: Iterable[str]) -> Iterator[int]:
    """The numbers of the lines where ``key`` is given a value, in the order of the objects."""
    return (number for number, line in enumerate(lines, 1) if line.startswith(f"{key}:"))
