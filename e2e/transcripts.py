"""Transcripts of kubectl: commands with what they print, tried against a server.

A file holds lines that begin with ``$ `` and what the command prints below them; ``-> 1`` is an exit code that is not
0.  Below that may stand what kubectls of other versions print, headed ``~ before 1.27`` or ``~ since 1.34``; the first
that holds counts.  Before they are compared, colours go, ages, times, addresses, ports, identities and resource
versions become one word each, and runs of blanks one blank: what differs from run to run, and between servers that are
both right.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "kubectl"
_SECONDS: Final = 150.0
"""No command takes longer."""

_OTHERWISE: Final = re.compile(r"^~ (before|since) 1\.(\d+)$")

_MASKS: Final = (
    (r"\x1b\[[\d;]*m", ""),
    (r"https://127\.0\.0\.1:\d+", "URL"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
    (r"\b(?:10|192)\.\d+\.\d+\.\d+", "IP"),
    (r"\b(\d+[dhms]){1,2}(?= |$)", "AGE"),
    (r"(resourceVersion: )\S+", r"\1N"),
    (r"/tmp/(LIVE|MERGED)-\d+", r"\1"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "TIME"),
    (r'Context "\S+"', 'Context "NAME"'),
    (r"[ \t]+", " "),
    (r" $", ""),
)


class Step(NamedTuple):
    """A command, and what it prints; an exit code other than 0 is its last line.

    ``otherwise`` says which kubectls print something else: before, or since, which minor version, and what.
    """

    command: str
    printed: str
    otherwise: tuple[tuple[str, int, str], ...] = ()

    def printed_by(self, minor: int) -> str:
        """What the kubectl of a minor version prints."""
        for when, limit, lines in self.otherwise:
            if minor < limit if when == "before" else minor >= limit:
                return lines
        return self.printed


def steps_of(text: str) -> Iterator[Step]:
    """The steps of a transcript; lines before the first command are remarks."""
    for block in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, rest = block.partition("\n")
        told, *others = re.split(r"^(?=~ )", rest, flags=re.MULTILINE)
        yield Step(command, told.strip("\n"), tuple(_other(one) for one in others))


def _other(block: str) -> tuple[str, int, str]:
    head, _, rest = block.partition("\n")
    found = _OTHERWISE.match(head)
    if found is None:
        raise ValueError(f"{head!r} says of no kubectl's version when it holds")
    return found[1], int(found[2]), rest.strip("\n")


def minor_of(kubectl: str) -> int:
    """The minor version of a kubectl, e.g. 32."""
    done = subprocess.run([kubectl, "version", "--client", "-o", "json"], capture_output=True, check=True)
    version: str = json.loads(done.stdout)["clientVersion"]["gitVersion"]
    return int(version.split(".")[1])


def masked(text: str) -> list[str]:
    """The lines of a text without what differs from run to run, which the order of an object's faults does, too."""
    found: list[str] = []
    for line in text.strip("\n").splitlines():
        if line.startswith("Waiting for "):  # how often kubectl looks before a rollout is over differs
            continue
        for pattern, word in _MASKS:
            line = re.sub(pattern, word, line)
        found.append(line)
    blocks = (list(block) for _, block in groupby(found, lambda line: line.startswith("* ")))
    return [line for block in blocks for line in (sorted(block) if block[0].startswith("* ") else block)]


def printed(command: str, environment: Mapping[str, str], kubectl: str = "kubectl") -> str:
    """What a command prints, both streams, and its exit code if that is not 0."""
    words = shlex.split(command)
    if words[0] == "kubectl":
        words[0] = kubectl
    done = subprocess.run(
        words,
        cwd=FOLDER / "manifests",
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.stdout + (f"-> {done.returncode}\n" if done.returncode else "")


def played(transcript: Path, kubeconfig: Path, home: Path, kubectl: str = "kubectl") -> list[str]:
    """Run a transcript, in a namespace of the kubectl's own; a report for each step that printed something else."""
    environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(home)}
    minor = minor_of(kubectl)
    text = re.sub(r"\bstory\b", f"story-{minor}", transcript.read_text(encoding="utf-8"))
    reports = []
    for step in steps_of(text):
        got, expected = printed(step.command, environment, kubectl), step.printed_by(minor)
        if masked(got) != masked(expected):
            reports.append(f"$ {step.command}\nexpected:\n{expected}\nprinted:\n{got}")
    return reports
