"""Broken requests against the embedded server: none is answered 5xx, hangs, or leaves it less than healthy."""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.chaos.grammar import Trial, trial
from benchmarks.chaos.outcomes import SLOW, Effort, Outcome
from benchmarks.chaos.samples import definition
from benchmarks.chaos.served import LOG, Served, server

_AT_ONCE: Final = 4
_CHECKED_EVERY: Final = 500
_MOMENT: Final = 0.05
_DECLARED: Final = frozenset({501})
"""Answers of 5xx that say what they mean: what only real containers have is not implemented."""
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_QUEUES: Final = "/apis/scheduling.volcano.sh/v1beta1/queues"
_PROBE: Final = "/api/v1/namespaces/kube-public/configmaps"


def run(effort: Effort) -> Outcome:
    """Send broken requests, then see whether the server starts over its journal."""
    outcome = Outcome("requests", effort.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server(folder) as found:
            asyncio.run(_Attack(found, outcome, effort).run())
        with server(folder) as found:
            again = _Attack(found, outcome, effort)
            asyncio.run(again.check("after a restart over its journal"))
        _read_log(folder / LOG, outcome)
    return outcome


def _read_log(path: Path, outcome: Outcome) -> None:
    """Each kind of traceback counts once, whatever was said before it."""
    seen: dict[str, str] = {}
    lines = path.read_text(errors="replace").splitlines()
    for number, line in enumerate(lines):
        if "was set aside" in line:
            seen.setdefault(line.partition("aside")[2], line)
        if line.startswith("Traceback"):
            end = next((at for at in range(number + 1, len(lines)) if not lines[at].startswith(" ")), number)
            where = [one.strip() for one in lines[number:end] if "^" not in one]
            seen.setdefault(f"{where[-2:]} {lines[end]}", lines[number - 1])
    for what, first in seen.items():
        outcome.violated(0, f"log: {what} ({first[:300]})")


class _Attack:
    def __init__(self, found: Served, outcome: Outcome, effort: Effort) -> None:
        self._found = found
        self._outcome = outcome
        self._effort = effort
        self._tls = ssl.create_default_context(cadata=found.authority)

    async def run(self) -> None:
        """All trials, some of them at once."""
        await self._ask(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("widgets", "Widget")
        )
        trials = iter(self._effort.trials())
        await asyncio.gather(*(self._worker(trials) for _ in range(_AT_ONCE)))
        await self.check("at the end")

    async def _worker(self, trials: Iterable[tuple[int, Random]]) -> None:
        for number, dice in trials:
            await self._try(number, trial(dice, self._found.token))
            self._outcome.tried += 1
            if number % _CHECKED_EVERY == 0:
                await self.check(f"after request {number}")

    async def _try(self, number: int, one: Trial) -> None:
        try:
            async with asyncio.timeout(SLOW):
                code = await self._sent(one)
        except TimeoutError:
            self._outcome.violated(number, f"no answer within {SLOW:.0f} s to {_short(one)}")
            return
        except (OSError, asyncio.IncompleteReadError) as error:
            code = 0
            if one.answered:
                self._outcome.violated(number, f"{type(error).__name__} instead of an answer to {_short(one)}")
        self._outcome.ends[f"{code // 100}xx" if code else "without answer"] += 1
        if code >= 500 and code not in _DECLARED:
            self._outcome.violated(number, f"{code} to {_short(one)}")

    async def _sent(self, one: Trial) -> int:
        """The code of the answer; 0 where none is due and none comes."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._found.port, ssl=self._tls if one.tls else None
        )
        try:
            writer.write(one.content)
            if one.answered and not one.watch:
                return await _answer(reader)
            try:
                async with asyncio.timeout(_MOMENT):
                    line = await reader.readline()
            except TimeoutError:
                return 0
            return _code(line) if line.startswith(b"HTTP/") else 0
        finally:
            writer.transport.abort()

    async def check(self, when: str) -> None:
        """Whether the server is healthy: an object can be made, read and deleted."""
        name = "probe"
        try:
            async with asyncio.timeout(SLOW):
                codes = [
                    await self._ask("GET", "/readyz"),
                    await self._ask("POST", _PROBE, {"metadata": {"name": name}, "data": {"a": "b"}}),
                    await self._ask("GET", f"{_PROBE}/{name}"),
                    await self._ask("DELETE", f"{_PROBE}/{name}"),
                ]
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self._outcome.violated(0, f"{when}: {type(error).__name__}")
            return
        if codes != [200, 201, 200, 200]:
            self._outcome.violated(0, f"{when} it answers {codes}")

    async def _ask(self, method: str, url: str, body: object = None) -> int:
        content = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._found.token}\r\n"
        head += f"Content-Length: {len(content)}\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", self._found.port, ssl=self._tls)
        try:
            writer.write(head.encode() + content)
            return await _answer(reader)
        finally:
            writer.transport.abort()


async def _answer(reader: asyncio.StreamReader) -> int:
    """The code of a whole answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().splitlines() if line.startswith(b"content-length:")]
    if lengths:
        await reader.readexactly(int(lengths[0]))
    return _code(head)


def _code(line: bytes) -> int:
    return int(line.split()[1])


def _short(one: Trial) -> str:
    return f"{one.what[:300]}: {one.content.partition(bytes(4 * [0]))[0][-1500:]!r}"
