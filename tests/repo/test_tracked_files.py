"""What the repository holds: sources, as text, and nothing that was fetched or built."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
LARGEST = 1 << 20


def tracked() -> list[str]:
    """The files that git knows; the test needs a clone."""
    if not (PROJECT / ".git").exists():
        pytest.skip("not a clone of the repository")
    found = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=True, text=True)
    return [name for name in found.stdout.split("\0") if name and (PROJECT / name).exists()]


def test_each_file_is_text_of_a_mebibyte_at_most() -> None:
    odd = [name for name in tracked() if not _is_source((PROJECT / name).read_bytes())]
    assert not odd, "a wheel, an archive or a picture that the project does not need?"


def _is_source(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return len(content) <= LARGEST


@pytest.mark.parametrize("content", [b"PK\x03\x04\xff", b"a" * (LARGEST + 1)])
def test_archives_and_large_files_are_no_sources(content: bytes) -> None:
    assert not _is_source(content)
