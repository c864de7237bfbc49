"""What base images are made of on which machine, and what is said where they cannot be made."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.image import bases, build

BOOKWORM = {"ID": "debian", "VERSION_CODENAME": "bookworm", "PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)"}
NOBLE = {"ID": "ubuntu", "VERSION_CODENAME": "noble", "PRETTY_NAME": "Ubuntu 24.04 LTS"}


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the keys of Debian would be; they are not there, and the machine has a list of mirrors."""
    (tmp_path / "sources").write_text("")
    monkeypatch.setattr(bases, "SOURCES", (tmp_path / "none", tmp_path / "sources"))
    monkeypatch.setattr(bases, "KEYRING", tmp_path / "keys.gpg")
    return tmp_path / "keys.gpg"


def on(host: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: host)


def test_a_machine_with_the_release_uses_its_own_mirrors(keyring: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on(BOOKWORM, monkeypatch)
    assert bases.mirrors() == [str(keyring.parent / "sources")]


def test_another_one_uses_debians_if_it_can_trust_them(keyring: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on(NOBLE, monkeypatch)
    keyring.write_text("")
    assert bases.mirrors() == []


@pytest.mark.parametrize(("given", "kept"), [((), ("build", "runtime")), (("--base=x",), ("runtime",))])
def test_bases_that_are_kept_need_no_mirrors(
    given: tuple[str, ...], kept: tuple[str, ...], keyring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = list[tuple[Any, ...]]()
    on(NOBLE, monkeypatch)
    monkeypatch.setattr(build, "FOLDER", keyring.parent)
    monkeypatch.setattr(build, "build", lambda *words: built.append(words))
    monkeypatch.setattr(sys, "argv", ["build", *given])
    for kind in kept:
        with pytest.raises(SystemExit, match="without Debian's keys"):
            build.main()
        (keyring.parent / f"base-{kind}.tar").write_text("")
    build.main()
    assert len(built) == 1


@pytest.mark.parametrize("given", [(), ("--base=x",)])
def test_what_is_needed_is_said_before_anything_is_made(
    given: tuple[str, ...], keyring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise AssertionError("something is made")

    on(NOBLE, monkeypatch)
    monkeypatch.setattr(build, "FOLDER", keyring.parent)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["build", *given])
    with pytest.raises(
        SystemExit, match=r"has Ubuntu 24\.04 LTS without Debian's keys: install debian-archive-keyring"
    ):
        build.main()
