"""The lock files pin every package by version and hash, and name no place to get it from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ["run.txt", "dev.txt"]


def pinned(lock: str) -> list[str]:
    """Answer the requirements of a lock file, continuation lines joined."""
    return (ROOT / "requirements" / lock).read_text().replace("\\\n", " ").splitlines()


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[; ]", requirement)[0].lower() for requirement in requirements}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_has_a_version_and_a_hash(lock: str) -> None:
    form = re.compile(r"[a-z0-9-]+==[0-9][\w.]*( +; [^#]+?)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in pinned(lock) if not form.fullmatch(line)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_host_is_named(lock: str) -> None:
    assert "://" not in (ROOT / "requirements" / lock).read_text()


@pytest.mark.parametrize(("lock", "extras"), [("run.txt", ()), ("dev.txt", ("dev",))])
def test_what_the_project_asks_for_is_pinned(lock: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(item for extra in extras for item in project["optional-dependencies"][extra])]
    assert names(asked) <= names(pinned(lock))


def test_both_locks_agree() -> None:
    assert {line.split()[0] for line in pinned("run.txt")} <= {line.split()[0] for line in pinned("dev.txt")}
