"""The file system that a real container sees: this machine's, with the pod's volumes and hosts file in their places."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

SETUP_FAILED: Final = 125
"""Exit code of a container whose file system could not be made."""
MOST_PROCESSES: Final = 1024
"""Of all pods together."""
MEMORY: Final = 4 << 30
"""Bytes of memory of its own that each process may take where the container has no limit."""


class Mount(NamedTuple):
    """What stands at ``target``, an absolute path in the container."""

    source: Path
    target: str
    read_only: bool = False


class Command(NamedTuple):
    """What a container runs, with which variables, in which folder; ``memory`` in bytes for each process."""

    words: Sequence[str]
    variables: Mapping[str, str]
    folder: str
    hostname: str
    memory: int


def script(root: Path, mounts: Iterable[Mount], command: Command) -> str:
    """The shell script that lays the file system out at ``root`` and becomes the command.

    Its first line says by which number this machine knows the command.
    """
    placed = {Path(os.path.realpath(mount.target)): mount for mount in mounts}
    targets = sorted(placed, key=lambda target: len(target.parts))
    lines = [
        "set -e",
        f"trap 'exit {SETUP_FAILED}' EXIT",
        "read pid rest < /proc/self/stat",
        'echo "$pid"',
        f"mount -t tmpfs -o mode=755 none {_quoted(root)}",
        f"mkdir {_quoted(root)}/.host",
        f"mount --rbind / {_quoted(root)}/.host",
        *_folder(root, Path("/"), placed),
        *(line for target in targets for line in _mounted(f"{root}{target}", placed[target])),
        f"hostname {_quoted(command.hostname)} 2>/dev/null || true",
        "trap - EXIT",
    ]
    return "\n".join([*lines, _started(root, command)])


def _folder(root: Path, folder: Path, targets: Collection[Path]) -> Iterator[str]:
    """A folder that contains mounts: everything else in it is as on this machine."""
    for path in _entries(folder):
        at = _quoted(f"{root}{path}")
        if path in targets:
            continue
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and any(path in target.parents for target in targets):
            yield f"mkdir {at}"
            yield from _folder(root, path, targets)
        elif is_folder and folder == Path("/"):
            yield f"mkdir {at}; mount --rbind {_quoted(path)} {at}"
        else:
            yield f"ln -s {_quoted(f'/.host{path}')} {at}"


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # what cannot be read is empty for the pod, too
        return []


def _mounted(at: str, mount: Mount) -> Iterator[str]:
    is_folder = mount.source.is_dir()
    yield f"mkdir -p {_quoted(at if is_folder else Path(at).parent)}"
    if not is_folder:
        yield f": > {_quoted(at)}"
    yield f"mount --bind {_quoted(mount.source)} {_quoted(at)}"
    if mount.read_only:  # not where the folder lies on a restricted mount
        yield f"mount -o remount,bind,ro {_quoted(at)} 2>/dev/null || true"


def _started(root: Path, command: Command) -> str:
    variables = (f"{name}={value}" for name, value in command.variables.items())
    limits = ("prlimit", f"--nproc={MOST_PROCESSES}", f"--data={command.memory}", "--core=0", "--")
    words = (*limits, "chroot", root, "/usr/bin/env", "-i", *variables)
    begin = ("sh", "-c", 'cd "$0" && exec "$@"', command.folder, *command.words)
    return "exec " + " ".join(map(_quoted, (*words, *begin)))


def _quoted(word: object) -> str:
    return shlex.quote(str(word))
