"""Base images from Debian packages, made by mmdebstrap: one to build in, one to run in, which has no shell.

The one to run in holds what :data:`RUNTIME` lists with their libraries and nothing more: every other file is taken out
again, and licences stay, as does a record of the packages for scanners (``/var/lib/dpkg/status.d``).
"""

from __future__ import annotations

import platform
import subprocess
import tarfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

RELEASE: Final = "bookworm"
"""The release of Debian whose Python is 3.11."""
BUILD: Final = ("python3", "python3-venv", "python3-pip")
RUNTIME: Final = ("python3.11-minimal", "libpython3.11-stdlib", "libstdc++6")
SOURCES: Final = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
"""Where this machine says which mirrors it uses; mmdebstrap's own default if neither is there."""
KEPT: Final = (
    "./usr/bin/python3.11",
    "./usr/lib/python3.11/*",
    "./usr/lib/*-linux-gnu/*.so*",
    "./lib/*-linux-gnu/*.so*",
    "./lib64/*",
    "./usr/lib64/*",
    "./etc/python3.11/*",
    "./etc/mime.types",
    "./usr/share/doc/*/copyright",
    "./var/lib/dpkg/status.d/*",
)
"""Patterns of what stays of the packages' files; a star stands for any text, slashes included."""
FOLDERS: Final = ("tmp", "proc", "sys", "dev", "etc")
DROPPED: Final = (
    "./usr/lib/python3.11/ensurepip/*",
    "./usr/lib/python3.11/lib2to3/*",
    "./usr/lib/python3.11/pydoc_data/*",
    "./usr/lib/python3.11/idlelib/*",
    "./usr/lib/python3.11/config-3.11-*",
    "./usr/lib/python3.11/test/*",
    "./usr/lib/python3.11/turtle*",
    "./usr/lib/python3.11/curses/*",
    "./usr/lib/python3.11/dbm/*",
    "*/libdb-5.3.so",
    "*/libsqlite3.so*",
    "*/libreadline.so*",
    "*/libhistory.so*",
    "*/libncursesw.so*",
    "*/libtinfo.so*",
    "*/gconv/*",
    "*/engines-3/*",
    "*/libmemusage.so",
    "*/libpcprofile.so",
    "*/libc_malloc_debug.so*",
    "*/libBrokenLocale.so*",
    "*/libthread_db.so*",
)
"""Patterns of what goes although it would stay."""

KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""The keys that Debian signs its packages with; other distributions have them as a package of this name."""


class NoBase(Exception):
    """No base can be made on this machine; the text says what helps."""


_RECORD: Final = (
    'mkdir -p "$1/var/lib/dpkg/status.d" && for file in "$1"/var/cache/apt/archives/*.deb; do '
    'dpkg-deb --field "$file" > "$1/var/lib/dpkg/status.d/$(dpkg-deb --field "$file" Package)" || exit 1; done'
)
"""Keeps what each package says of itself, for scanners; its first argument is the folder that is made."""


def _wanted(member: tarfile.TarInfo) -> bool:
    """Whether a member of the packages' files stays; folders come with what is in them."""
    kept = any(fnmatch(member.name, pattern) for pattern in KEPT)
    return kept and not member.isdir() and not any(fnmatch(member.name, pattern) for pattern in DROPPED)


def _swept(source: Path, file: Path) -> None:
    """Copy an archive, without the unneeded files, and with the folders that a runtime mounts on."""
    with tarfile.open(source) as old, tarfile.open(file, "w") as new:
        members = {member.name: member for member in old}
        links = {name: one for name, one in members.items() if one.issym() and one.name.count("/") == 1}
        for name in FOLDERS:
            folder = tarfile.TarInfo(f"./{name}")
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            new.addfile(folder)
        for member in (*links.values(), *filter(_wanted, members.values())):  # such as /lib -> usr/lib
            new.addfile(member, old.extractfile(member) if member.isreg() else None)


def mirrors() -> list[str]:
    """Where the packages come from: what this machine says if it has the release, else Debian's own mirrors (none).

    Raises NoBase where those cannot be trusted.
    """
    try:
        host = platform.freedesktop_os_release()
    except OSError:
        host = {}
    if (host.get("ID"), host.get("VERSION_CODENAME")) == ("debian", RELEASE):
        return [str(path) for path in SOURCES if path.exists()][:1]
    if KEYRING.exists():
        return []
    raise NoBase(
        f"bases are made of packages of Debian {RELEASE}, and this machine has {host.get('PRETTY_NAME', 'another one')}"
        " without Debian's keys: install debian-archive-keyring, or name images that have Python 3.11 by --base and"
        " --runtime"
    )


def make(kind: str, file: Path) -> Path:
    """The root file system of a base, ``build`` or ``runtime``, as the archive ``file``; kept if it is there.

    Raises NoBase.
    """
    if file.exists():
        return file
    sources = mirrors()
    part = file.with_suffix(".part.tar")
    more: Sequence[str] = ("--variant=minbase", f"--include={','.join(BUILD)}")
    if kind == "runtime":
        more = ("--variant=extract", f"--include={','.join(RUNTIME)}", f"--extract-hook={_RECORD}")
    subprocess.run(["mmdebstrap", "--quiet", "--format=tar", *more, RELEASE, str(part), *sources], check=True)
    if kind == "runtime":
        whole = part.rename(part.with_suffix(".whole"))
        _swept(whole, part)
        whole.unlink()
    part.rename(file)
    return file
