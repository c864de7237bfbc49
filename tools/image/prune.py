"""Run inside the build of the image: leave of an environment what is needed at run time, compiled once.

`python3 prune.py ENVIRONMENT ROOT` removes tests, headers and type stubs of ENVIRONMENT, compiles the rest so that a
read-only root costs no start-up time, and writes to ROOT what stands elsewhere in the image: links in its root, such as
/vc-scheduler, and the compiled standard library, which base images leave out.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import stat
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

COMMANDS = ("stromboli", "vcctl")
PROGRAMS = "vc-"
"""How the reference's binaries begin: what copied manifests name as `/vc-scheduler` leads to ours."""
MODE = py_compile.PycInvalidationMode.UNCHECKED_HASH
"""Our files in an image never change, so that none is looked at."""
UNUSED_LIBRARY = frozenset({"distutils", "ensurepip", "idlelib", "lib2to3", "test", "tkinter", "turtledemo", "venv"})
"""Folders of the standard library that no program of ours imports from."""
UNNEEDED_FOLDERS = frozenset({"tests", "include", "f2py", "__pycache__", "share"})
UNNEEDED_FILES = (".pyi", ".pyx", ".pxd", ".h", ".c", ".a", ".lib", ".typed")


def unneeded(environment: Path) -> Iterator[Path]:
    """What no program of ours ever opens."""
    for folder, names, files in os.walk(environment):
        here = Path(folder)
        gone = [name for name in names if name in UNNEEDED_FOLDERS]
        names[:] = [name for name in names if name not in gone]
        yield from (here / name for name in gone)
        yield from (here / name for name in files if name.endswith(UNNEEDED_FILES))
    scripts = environment / "bin"
    wanted = (*COMMANDS, "python", PROGRAMS)
    yield from (one for one in scripts.iterdir() if not one.name.startswith(wanted))


def compile_library(library: Path, root: Path) -> None:
    """Write to ``root`` what the modules of the standard library compile to, where Python looks for it."""
    checked = py_compile.PycInvalidationMode.CHECKED_HASH  # the image may be put on another base of the same version
    left_out = UNUSED_LIBRARY | UNNEEDED_FOLDERS | {"dist-packages", "site-packages"}
    for folder, names, files in os.walk(library):
        names[:] = [name for name in names if name not in left_out]
        for source in (Path(folder, name) for name in files if name.endswith(".py")):
            compiled = root.joinpath(*Path(cache_from_source(str(source))).parts[1:])
            compiled.parent.mkdir(parents=True, exist_ok=True)
            py_compile.compile(str(source), str(compiled), doraise=True, invalidation_mode=checked)


def main(environment: Path, root: Path) -> None:
    """Prune, compile, link."""
    for path in list(unneeded(environment)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for name in ("python", "python3", "python3.11"):  # the image has no /usr/bin/python3, only what that leads to
        link = environment / "bin" / name
        if link.is_symlink():
            target = link.resolve()
            link.unlink()
            link.symlink_to(target)
    if not compileall.compile_dir(environment / "lib", quiet=2, invalidation_mode=MODE, workers=1):
        sys.exit("some modules do not compile")
    root.mkdir()
    compile_library(Path(sysconfig.get_path("stdlib")), root)
    for program in (environment / "bin").glob(f"{PROGRAMS}*"):
        (root / program.name).symlink_to(program)
    for folder, names, files in os.walk(environment):
        for name in (*names, *files):
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
