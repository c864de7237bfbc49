"""Look through an unpacked image for unneeded files: `python -m tools.image.scan` unpacks it and says what there is.

It prints the sizes of the parts, what each program costs to start, and whatever should not be there; the exit code is 1
if anything is.
"""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

from tools.image.build import ARCHIVE
from tools.image.prune import UNUSED_LIBRARY
from tools.image.unpack import unpack

USER: Final = 65532
SHELLS: Final = ("sh", "bash", "dash", "ash", "busybox")
TOOLS: Final = ("pip*", "apt*", "dpkg*", "tar", "curl", "wget", "perl*", "gcc*", "ld", "git", "setpriv", "su", "mount")
"""Programs that would help an intruder to go further, and that ours never start."""
UNNEEDED: Final = ("*/tests/*", "*.pyi", "*.h", "*.a", "*/ensurepip/*", "*/pip/*", "*/setuptools/*", "*/man/*", "*.c")
ROOMS: Final = ("opt/stromboli", "usr/lib/python3.11", "usr/lib", "lib", "usr/bin", "var", "usr/share")


def surplus(root: Path) -> Iterator[str]:
    """What should not be in the image, a sentence each."""
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        mode = path.lstat().st_mode
        if path.name in SHELLS and os.access(path, os.X_OK):
            yield f"/{name} is a shell"
        if "bin" in path.parts and any(fnmatch(path.name, tool) for tool in TOOLS):
            yield f"/{name} is a tool that no program of ours starts"
        if any(fnmatch(f"/{name}", pattern) for pattern in UNNEEDED):
            yield f"/{name} is opened by no program"
        if mode & (stat.S_ISUID | stat.S_ISGID):
            yield f"/{name} runs as another user"
        if mode & stat.S_IWOTH and not path.is_symlink():
            yield f"/{name} can be written by all"
        if path.is_symlink() and not _target(root, path).exists():
            yield f"/{name} leads nowhere"


def uncompiled(root: Path) -> Iterator[str]:
    """Modules that are compiled again at each start, a sentence each."""
    for path in _files(root):
        if path.suffix != ".py" or "lib" not in path.parts or UNUSED_LIBRARY & {*path.parts}:
            continue
        if not Path(cache_from_source(str(path))).exists():
            yield f"/{path.relative_to(root)} is compiled at each start, as the root is read-only"


def _files(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        yield from (Path(folder, name) for name in files)
        yield from (path for path in (Path(folder, name) for name in names) if path.is_symlink())


def _target(root: Path, link: Path) -> Path:
    """Where a link leads inside the image."""
    to = link.readlink()
    found = root / to.relative_to("/") if to.is_absolute() else link.parent / to
    return _target(root, found) if found.is_symlink() else found


def programs(root: Path) -> list[str]:
    """The programs in the image's root."""
    return sorted(f"/{path.name}" for path in root.glob("vc-*"))


def cpu_of(root: Path, *command: str) -> float:
    """CPU seconds of a command in the image, as its user; it must end well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    jailed = ["chroot", f"--userspec={USER}:{USER}", str(root), *command]
    subprocess.run(jailed, check=True, stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "HOME": "/"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in _files(folder)) if folder.exists() else 0


def main(archive: Path) -> int:
    """Say what there is."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        config = unpack(archive, root)["config"]
        print(f"user {config['User']}, entry point {config['Entrypoint']}, {_size(root) / 2**20:.0f} MiB unpacked")
        for room in ROOMS:
            print(f"  {_size(root / room) / 2**20:6.1f} MiB  /{room}")
        for program in programs(root):
            print(f"  {min(cpu_of(root, program, '--version') for _ in range(3)):.2f} CPU s  {program} --version")
        found = [*surplus(root), *uncompiled(root)]
    print("\n".join(found) or "nothing unneeded")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ARCHIVE))
