"""What is noted of a live cluster: every request, every line of a log, and the figures at the end, each with its time.

What is drawn at random is drawn alike each time, uids are shown as what they are of, and versions of objects as current
or old, so that one request more does not change all that follow.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from types import SimpleNamespace
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry

from stromboli.errors import StromboliError
from stromboli.job_plugins.wanted import SSH_KEYS
from stromboli.kube import turns
from stromboli.kube.credentials import Login
from stromboli.kube.transport import Request, Response, Stream
from stromboli.live.controllers import keeper
from stromboli.metrics.logs import LogObserver
from stromboli.narration.observe import Passing
from stromboli.server.controllers import node_lifecycle
from stromboli.server.storage import reading, watching
from stromboli.server.storage.store import Change, CollectionName
from stromboli.server.verbs import writing
from tests.support.embedded_server import EmbeddedServer
from tests.support.virtual import VirtualLoop

Json = dict[str, Any]
BEGIN: Final = 1000.0
"""Where virtual time begins."""
LATER: Final = 1e-7
_UID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_EVENT: Final = re.compile(r"\.[0-9a-f]{17,19}\b")
"""The end of an event's name: its moment and its number."""


class Notes:
    """Lines in the order of what they tell of; uids are named as the server's objects come."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        """Texts that stand for others, such as the folder of a configuration."""
        self._times = Counter[str]()

    def note(self, author: str, text: str) -> None:
        """One line."""
        passed = asyncio.get_running_loop().time() - BEGIN
        self.lines.append(f"{passed:.3f} {author} {self.shown(text)}")

    def shown(self, text: str) -> str:
        """A text without uids, and on one line."""
        for found, meant in self.texts.items():
            text = text.replace(found, meant)
        return _EVENT.sub(".*", _UID.sub(self._named, text)).replace("\n", "\\n")

    def _named(self, found: re.Match[str]) -> str:
        return self.names.get(found[0], "<uid>")

    def name(self, name: CollectionName, change: Change) -> None:
        """Name the uid of an object that is new."""
        found = change.entry.body["metadata"]
        if found["uid"] not in self.names:
            what = f"<{name[1]} {found['name']}>"
            if name[1] == "podgroups" and (owner := _UID.search(what)):
                what = what.replace(owner[0], self.names.get(owner[0], owner[0]))
            self._times[what] += 1
            times = self._times[what]
            self.names[found["uid"]] = what if times == 1 else f"{what[:-1]} #{times}>"


class InOrder(VirtualLoop):
    """A loop in which what is due at one moment is done in the order in which it was asked for, on every Python."""

    def __init__(self) -> None:
        super().__init__()
        self._alike = Counter[float]()

    def call_at(  # type: ignore[override]  # as the loop's own, whatever the callback takes
        self, when: float, *args: Any, **named: Any
    ) -> asyncio.TimerHandle:
        """Put off, by so little that no time that is noted shows it, what is due when something else is."""
        self._alike[when] += 1
        return super().call_at(when + LATER * (self._alike[when] - 1), *args, **named)

    async def create_connection(self, *_args: Any, **_named: Any) -> Any:
        """What others outside answer, and when, is not the same twice."""
        raise OSError("stories reach nothing outside")

    sock_connect = create_connection


class Told(Passing):
    """An observer that notes the lines of a log up to a level, each at once."""

    def __init__(self, notes: Notes, author: str, level: int, clock: Any) -> None:
        self.notes, self.author = notes, author
        self.log = LogObserver(self, level, "json", clock, pid=1)
        super().__init__(self.log)

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Note it."""
        super().tell(key, fields)
        self.log.flush()

    def write(self, text: str) -> int:
        """Take lines of the log."""
        for line in text.splitlines():
            found = json.loads(line)
            self.notes.note(self.author, f"{found['severity']}{found['v']} {found['key']}: {found['msg']}")
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


class Wire:
    """A transport that takes ``latency`` seconds and notes what is sent by it."""

    def __init__(self, server: Server, author: str, latency: float) -> None:
        self.server, self.author, self.latency = server, author, latency

    async def send(self, request: Request, login: Login) -> Response:
        """Send a request and wait for the whole answer."""
        await asyncio.sleep(self.latency)
        asked = self.server.described(request)
        try:
            answer = await self.server.send(request, login)
        except StromboliError as error:
            self.server.notes.note(self.author, f"{asked} {type(error).__name__}")
            raise
        self.server.notes.note(self.author, f"{asked} {outcome(answer)}")
        return answer

    def stream(self, request: Request, login: Login) -> AbstractAsyncContextManager[Stream]:
        """Send a request and follow its answer."""
        self.server.notes.note(self.author, self.server.described(request))
        return self.server.stream(request, login)

    async def close(self) -> None:
        """Nothing is open."""


def outcome(answer: Response) -> str:
    """How a request ended."""
    if answer.status < 300:
        return str(answer.status)
    found = json.loads(answer.body)
    return f"{answer.status} {found.get('reason')}: {found.get('message')}"


class Server(EmbeddedServer):
    """The embedded server, whose objects' uids are named in notes."""

    def __init__(self, clock: Any, notes: Notes, uid: Callable[[], str]) -> None:
        self.notes, self.uid = notes, uid
        super().__init__(clock)
        for name in self.api.store.names():
            for entry in self.api.store.of(name).sorted():
                self.notes.name(name, Change(entry.version, "ADDED", entry, None))
        self.api.store.listeners.append(self.notes.name)

    def put(self, collection: str, found: Json) -> Json:
        """Store an object as it is, new or changed."""
        known = self.api.store.get(self._kinds[collection].collection, self._key(found))
        uid = self.uid() if known is None else known.body["metadata"]["uid"]
        return super().put(collection, {**found, "metadata": {"uid": uid, **found["metadata"]}})

    def described(self, request: Request) -> str:
        """A request as it is noted."""
        params = {
            name: "*" if name in ("resourceVersion", "continue") and text else text
            for name, text in request.params.items()
            if name != "fieldManager"
        }
        asked = "&".join(f"{name}={text}" for name, text in params.items())
        text = f"{request.method} {request.path}{'?' if asked else ''}{asked}"
        if request.body:
            text += " " + json.dumps(self._plain(request, json.loads(request.body)), separators=(",", ":"))
        return text

    def _plain(self, request: Request, body: Any) -> Any:
        """A body in which the version of the object says whether it is the newest."""
        if not isinstance(body, dict) or "resourceVersion" not in (body.get("metadata") or {}):
            return body
        parts = request.path.split("/")
        at = parts.index("namespaces") if "namespaces" in parts and len(parts) > parts.index("namespaces") + 3 else None
        namespace = parts[at + 1] if at is not None else ""
        plural, name = (parts[at + 2], parts[at + 3]) if at is not None else (parts[-2], parts[-1])
        current = self._current(plural, namespace, name) == body["metadata"]["resourceVersion"]
        return {**body, "metadata": {**body["metadata"], "resourceVersion": "current" if current else "old"}}

    def _current(self, plural: str, namespace: str, name: str) -> str:
        if plural not in self._kinds:
            return ""
        found = self.api.store.get(self._kinds[plural].collection, (namespace, name))
        return "" if found is None else str(found.body["metadata"]["resourceVersion"])


def figures(registry: CollectorRegistry) -> Iterator[str]:
    """The samples of a page of metrics, without the buckets of durations."""
    for family in registry.collect():
        for sample in family.samples:
            if not sample.name.endswith(("_bucket", "_created")):
                labels = ",".join(f'{name}="{text}"' for name, text in sorted(sample.labels.items()))
                yield f"{sample.name}{{{labels}}} {sample.value:.12g}"


async def waited_for(work: Any, seconds: float | None) -> Any:
    """``asyncio.wait_for`` as it is from Python 3.12 on; before that it takes more turns of the loop."""
    async with asyncio.timeout(seconds):
        return await work


@contextmanager
def drawn_alike(seed: int) -> Iterator[Callable[[], str]]:
    """Meanwhile uids, names, pauses and keys are drawn by a seed, and no work is cut into slices by its duration.

    Gives what draws a uid.
    """
    dice = random.Random(seed)

    def uid() -> str:
        return f"{dice.getrandbits(32):08x}-0000-4000-8000-{dice.getrandbits(48):012x}"

    secrets = SimpleNamespace(choice=dice.choice, token_hex=lambda size: f"{dice.getrandbits(8 * size):0{2 * size}x}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "wait_for", waited_for)
        patch.setattr(writing, "uuid", SimpleNamespace(uuid4=uid))
        for module in (writing, node_lifecycle, reading):
            patch.setattr(module, "secrets", secrets)
        patch.setattr(watching, "random", dice)
        patch.setattr(turns, "time", SimpleNamespace(perf_counter=lambda: 0.0))
        patch.setitem(keeper.MAKERS, SSH_KEYS, lambda there: {**there, "id_rsa": "cHJpdmF0ZQ=="})
        yield uid
