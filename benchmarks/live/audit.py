"""What an API server was asked, from its audit log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

POLICY: Final = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, verbs: [watch]}
- {level: None, users: ["system:apiserver"]}
- {level: Metadata}
"""

_PAUSE: Final = 0.5
"""Seconds between two looks at the log."""
_READS: Final = frozenset({"get", "list"})


class _Target(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class Entry(msgspec.Struct):
    """A request as the log tells it: its verb, when it came and was answered, its client and what it asked for."""

    verb: str
    at: str = msgspec.field(name="requestReceivedTimestamp")
    stage_at: str = msgspec.field(default="", name="stageTimestamp")
    agent: str = msgspec.field(default="-", name="userAgent")
    target: _Target | None = msgspec.field(default=None, name="objectRef")
    status: _Status | None = msgspec.field(default=None, name="responseStatus")

    @property
    def client(self) -> str:
        """The name of the client, without its version."""
        return self.agent.split("/")[0]

    @property
    def request(self) -> str:
        """The verb and what it was asked for."""
        what = "" if self.target is None else "/".join(filter(None, (self.target.resource, self.target.subresource)))
        return f"{self.verb} {what}"

    @property
    def name(self) -> str:
        """The name of the object; empty where the request names none."""
        return "" if self.target is None else self.target.name

    @property
    def succeeded(self) -> bool:
        """Whether the answer was no error."""
        return self.status is not None and 200 <= self.status.code < 300

    @property
    def answered(self) -> float:
        """When it was answered, in seconds since 1970."""
        return datetime.fromisoformat(self.stage_at).timestamp()

    def __str__(self) -> str:
        return f"{self.client} {self.request}"


_decode: Final = msgspec.json.Decoder(Entry).decode


class Audit:
    """Reads the log of a server that still writes it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0

    async def until_quiet(self, seconds: float, limit: float) -> str:
        """Return when nothing was written to the cluster for so many seconds, or after ``limit`` seconds.

        The answer is empty, or names the last write and its client.
        """
        self._read = self._log.stat().st_size
        quiet, last = 0.0, ""
        for _ in range(int(limit / _PAUSE)):
            await asyncio.sleep(_PAUSE)
            writes = [str(entry) for entry in self.news() if entry.verb not in _READS]
            quiet, last = (0.0, writes[-1]) if writes else (quiet + _PAUSE, last)
            if quiet >= seconds:
                return ""
        return last

    def requests(self, since: float, until: float) -> Counter[str]:
        """Requests received between two moments, in seconds since 1970, by user agent, verb and resource."""
        first, last = _stamp(since), _stamp(until)
        entries = map(_decode, self._log.read_bytes().splitlines())
        return Counter(str(entry) for entry in entries if entry.target is not None and first <= entry.at < last)

    def news(self) -> Iterator[Entry]:
        """Whole lines that have come since the last time."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            lines, _, _ = log.read().rpartition(b"\n")
        self._read += len(lines) + 1 if lines else 0
        yield from map(_decode, lines.splitlines())


def _stamp(moment: float) -> str:
    """A moment as the log writes it; such texts compare as the moments do."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
