"""What commands print, word for word: transcripts/*.txt hold the command, its exit code, and what it wrote.

RECORD_TRANSCRIPTS=1 rewrites them from what the commands print now.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from stromboli.cli.main import main

FOLDER = Path(__file__).parent / "transcripts"
FILES = sorted(FOLDER.glob("*.txt"))
ERRORS = "--- standard error"


MEASURED = re.compile(r'(?<=_cpu_s|wall_s|ss_mib)("?): [0-9.]+')


def stripped(text: str) -> str:
    """Without blanks at the ends of lines, and without what differs from run to run."""
    return MEASURED.sub(r"\1: ...", "\n".join(line.rstrip() for line in text.splitlines()))


def played(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run ``$ [NAME=VALUE...] stromboli ARGUMENTS`` and write down what came of it."""
    words = shlex.split(command.removeprefix("$ "))
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        monkeypatch.setenv(name, value)
    assert words.pop(0) == "stromboli"
    code = main(words)
    found = capsys.readouterr()
    errors = f"{ERRORS}\n{stripped(found.err)}\n" if found.err else ""
    return f"{command}\n--- exit code {code}\n{stripped(found.out)}\n{errors}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_transcript(file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = file.read_text(encoding="utf-8")
    command = expected.partition("\n")[0]
    found = played(command, capsys, monkeypatch)
    if os.environ.get("RECORD_TRANSCRIPTS"):
        file.write_text(found, encoding="utf-8")
        return
    assert found == expected


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 8
