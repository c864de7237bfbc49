"""One mutant tried: in a fork of this process, where the tests are collected already, or in a process of its own.

In the fork the code of the living functions is replaced.  What runs when a module is imported needs another process,
which compiles the mutated text instead of the file.  The tree itself is never written to.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tools.mutants.mutations import Mutation

Key = tuple[str, str, int]
"""A function's file, qualified name and first line."""

MEMORY = 8 << 30
"""Bytes of address space that a mutant may take."""
PASSED, FAILED, UNFIT = 0, 1, 77
HERE = Path(__file__).parents[2]
"""Where a process of its own finds this package, whatever project is broken."""


@dataclass(frozen=True)
class Verdict:
    """How a mutant fared: caught or not, and by what; ``tests`` were asked."""

    caught: bool
    by: str
    tests: int


@dataclass(frozen=True)
class Limits:
    """How long a mutant may take: CPU seconds, and seconds."""

    cpu: float
    wall: float

    @classmethod
    def of(cls, seconds: float) -> Limits:
        """The limits for tests that take so many CPU seconds when nothing is broken."""
        return cls(10 + 5 * seconds, 60 + 10 * seconds)


class Functions:
    """The functions that live in this process, by where they are defined."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.living: dict[Key, list[FunctionType]] = {}
        gc.unfreeze()  # objects that are frozen would not be listed
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(project / "src")):
                self.living.setdefault(_key(each.__code__), []).append(each)
        gc.freeze()

    def replace(self, mutation: Mutation) -> bool:
        """Give the functions that a mutation changes their mutated code; False where that cannot be."""
        path = str(self.project / mutation.path)
        codes = list(_codes(compile(mutation.mutated, path, "exec", dont_inherit=True)))
        changed = [(each, code) for code in codes for each in self.living.get(_key(code), []) if each.__code__ != code]
        times = Counter(_key(code) for code in codes)
        if not changed or any(times[_key(code)] > 1 for _, code in changed):  # lambdas of one line
            return False
        try:
            for function, code in changed:
                function.__code__ = code
        except ValueError:  # another number of variables from outside
            return False
        return True


def _key(code: CodeType) -> Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterable[CodeType]:
    """The code of all functions in some code, outermost first."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def run(items: Sequence[pytest.Item], limits: Limits, prepare: Callable[[], bool] = lambda: True) -> tuple[int, str]:
    """Run collected tests in a fork, up to the first that fails: how it ended (or -1: too late), and that test."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _become(limits)
        os._exit(_run(items, prepare, writing))
    os.close(writing)
    status = waited(child, limits.wall)
    with os.fdopen(reading) as pipe:
        return status, pipe.read()


def _become(limits: Limits) -> None:
    """Make the fork quiet, and unable to go on for ever."""
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silence, number)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    used = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + limits.cpu), int(used + limits.cpu) + 2))


def _run(items: Sequence[pytest.Item], prepare: Callable[[], bool], writing: int) -> int:
    try:
        if not prepare():
            return UNFIT
        session = items[0].session
        session.config.pluginmanager.unregister(name="terminalreporter")
        session.testsfailed, session.shouldfail = 0, False
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                os.write(writing, item.nodeid.encode())
                return FAILED
    except BaseException as error:  # noqa: BLE001 - whatever a mutant throws at pytest itself is a mutant noticed
        os.write(writing, f"{type(error).__name__}: {error}"[:500].encode())
        return FAILED
    return PASSED


def waited(child: int, seconds: float) -> int:
    """How a child process ended; -1 if it was ended, because it took too long or by a signal."""
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.01)
    _end_group(child)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else -1


def _end_group(child: int) -> None:
    """End what a child process has left running."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        return


def run_anew(mutation: Mutation, tests: Sequence[str], limits: Limits, project: Path) -> tuple[int, str]:
    """Run tests in a process that imports the mutated text: pytest's exit code (or -1: too late), and what failed."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as order:
        json.dump({"path": str(project / mutation.path), "text": mutation.mutated, "tests": list(tests)}, order)
        order.flush()
        command = [sys.executable, "-m", "tools.mutants.anew", order.name]
        paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        started = subprocess.Popen(
            command, cwd=project, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip
        status = waited(started.pid, limits.wall + 60)
        started.wait()  # else every later fork would warn that this process has not been waited for
        return status, json.loads(Path(order.name).read_text()).get("failed", "")
