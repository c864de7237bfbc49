"""Events on objects, told sparingly: states again after a while, what happens again by its count, floods summed up."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from stromboli.errors import ApiError
from stromboli.kube.client import Client
from stromboli.kube.resources import EVENTS, nothing
from stromboli.model.names import EVENT_NORMAL
from stromboli.model.values.times import stamp

REPEAT: Final = 300.0
"""Seconds after which an event with an unchanged text is told again."""

RECOUNT: Final = 3.0
"""Seconds after which the count of what has happened again is written; twice as many each further time, until it has
been told anew after :data:`REPEAT`: something that happens all the time takes some eight writes in that span."""

SIMILAR: Final = 10
"""Different texts of one reason on one object within :data:`SIMILAR_SPAN` that are told one by one."""

SIMILAR_SPAN: Final = 600.0
"""Seconds that texts of one reason on one object are counted for."""

REMEMBERED: Final = 131_072
"""Events that are remembered, and objects with a reason; the oldest go first.

More than a large cluster has waiting jobs: one that is forgotten sooner than it is repeated is told again each cycle.
"""

FORGOTTEN: Final = 2 * REPEAT
"""Seconds after which what has not been told again is forgotten: what still happens is told every :data:`REPEAT`."""

WAITING: Final = 50_000
"""Warnings that may wait to be sent, and other events; more are dropped and counted."""

SENDERS: Final = 8
"""Events that are sent at once."""

URGENT_PAUSE: Final = 0.1
"""Seconds between two looks whether more urgent writes are still under way."""

SHORTEST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 1.0
"""Seconds between two events at least and at most, however fast or slow the server."""

LONGEST_NAME: Final = 220
"""Characters of an object's name that its events' names begin with: those have 253 at most."""

COMBINED: Final = "(combined from similar events): "
"""What the text of a flood begins with, as from Kubernetes' own programs."""

_WRITES: Final = EVENTS.read_as(nothing)


class Regarding(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


class _Told:
    """An event that was written: its object's name, how often it has happened, and when: first, last, last told.

    ``combined`` stands for a flood of texts.  ``recounts`` is how often the count was to be written since it was told;
    ``waits`` says that it still is.
    """

    __slots__ = ("at", "combined", "count", "first", "last", "name", "posted", "recounts", "waits")

    def __init__(self, name: str, now: float, combined: bool) -> None:
        self.name, self.first, self.last, self.at, self.combined = name, now, now, now, combined
        self.count = self.recounts = 0
        self.posted = self.waits = False

    def again(self, now: float) -> None:
        """It has happened once more."""
        self.count += 1
        self.last = now


class _Write(NamedTuple):
    told: _Told
    about: Regarding
    type: str
    reason: str
    message: str


class Recorder:
    """Writes events as ``component``.  :meth:`record` never waits; :meth:`run` sends.

    ``clock`` gives seconds since 1970.  ``written``, ``dropped`` and ``held`` count events that were sent, given up
    and not written when they came, because at most their count was new.

    Warnings are sent before what is normal, and of each :data:`WAITING` may wait.  ``gives_way_to`` answers how many
    seconds a more urgent write takes at present, 0 while none is under way.  While some are, one event is sent at a
    time, and the next one, unless it is a warning, after so many seconds: the slower the server, the more of its time
    is the others'.  As the queue fills, more are sent at once, and without pauses: events do not pile up for it.
    """

    def __init__(self, client: Client, component: str, clock: Callable[[], float] = time.time) -> None:
        self._client, self.component, self._clock = client, component, clock
        self._told: OrderedDict[int, _Told] = OrderedDict()  # by hashes, which take less room than what they are of
        self._texts: OrderedDict[int, tuple[float, int]] = OrderedDict()
        self.gives_way_to: Callable[[], float] = lambda: 0.0
        self._queue: asyncio.PriorityQueue[tuple[bool, int, _Write]] = asyncio.PriorityQueue()
        self._waiting = Counter[bool]()
        self._recounts: list[tuple[float, int, _Write]] = []  # a heap, by when they are due
        self._recounting = asyncio.Event()
        self._number = self._put_in = 0
        self.written = self.dropped = self.held = 0

    def record(
        self, about: Regarding, type: str, reason: str, message: str, *, happened: bool = False  # noqa: A002 - the API's word
    ) -> None:  # fmt: skip
        """Note how ``about`` is, or that something has ``happened`` to it; ``type`` is Normal or Warning.

        A state may be noted again and again: it is written every :data:`REPEAT`.  What happens again is counted, and
        the count written soon, see :data:`RECOUNT`.
        """
        write = self._noted(about, type, reason, message, happened=happened)
        if write is not None:
            self._put(write)

    def record_once(self, about: Regarding, type: str, reason: str, message: str) -> None:  # noqa: A002 - as above
        """As :meth:`record`, of what does not happen to an object a second time: nothing of it is remembered."""
        now = self._clock()
        told = self._named(about, now, combined=False)
        told.count = 1
        self._put(_Write(told, about, type, reason, message))

    async def write(self, about: Regarding, type: str, reason: str, message: str) -> None:  # noqa: A002 - as above
        """As :meth:`record`, but return when it is written or given up; :meth:`run` need not be running."""
        write = self._noted(about, type, reason, message)
        if write is not None:
            await self._sent(write)

    def _noted(
        self, about: Regarding, type: str, reason: str, message: str, *, happened: bool = False  # noqa: A002 - as above
    ) -> _Write | None:  # fmt: skip
        """What is to be written now; None where nothing is new, or only its count."""
        now = self._clock()
        thing = (about.kind, about.namespace, about.name, about.uid, reason)
        text = hash((thing, message))
        told = self._told.get(text)
        is_held = told is not None and (told.waits or now - told.at < REPEAT)
        if told is None:
            told = self._new(thing, about, now)
        told.again(now)
        write = _Write(told, about, type, reason, COMBINED + message if told.combined else message)
        if is_held:
            self.held += 1
            if happened:
                self._recount(write, now)
            return None
        _remember(self._told, text, told)
        told.at, told.recounts = now, 0
        self._forget(now)
        return write

    def _recount(self, write: _Write, now: float) -> None:
        """Have the count written, unless that is to be done anyway."""
        told = write.told
        if told.waits or len(self._recounts) >= WAITING:
            return
        told.waits = True
        self._put_in += 1
        heapq.heappush(self._recounts, (now + RECOUNT * 2**told.recounts, self._put_in, write))
        told.recounts += 1
        self._recounting.set()

    def _new(self, thing: tuple[str, ...], about: Regarding, now: float) -> _Told:
        """What a text that was not told yet is told with: an event of its own, or the one of all texts of a flood."""
        combined = self._is_flood(hash(thing), now)
        flood = hash((thing, COMBINED))
        if combined and flood in self._told:
            return self._told[flood]
        told = self._named(about, now, combined)
        if combined:
            _remember(self._told, flood, told)
        return told

    def _named(self, about: Regarding, now: float, combined: bool) -> _Told:
        """An event of its own, under a unique name."""
        self._number += 1
        name = about.name[:LONGEST_NAME].rstrip(".-")  # what stands before a dot must end in a letter or digit
        return _Told(f"{name}.{int(now * 1e6):x}{self._number & 0xFFFF:04x}", now, combined)

    def _is_flood(self, thing: int, now: float) -> bool:
        """Whether too many texts have come of late, the present one included."""
        since, texts = self._texts.get(thing, (now, 0))
        if now - since > SIMILAR_SPAN:
            since, texts = now, 0
        _remember(self._texts, thing, (since, texts + 1))
        return texts >= SIMILAR

    def _forget(self, now: float) -> None:
        """Let go of what is at the front of both stores, and too old to matter."""
        while self._told and next(iter(self._told.values())).at < now - FORGOTTEN:
            self._told.popitem(last=False)
        while self._texts and next(iter(self._texts.values()))[0] < now - FORGOTTEN:
            self._texts.popitem(last=False)

    def _put(self, write: _Write) -> None:
        normal = write.type == EVENT_NORMAL
        if self._waiting[normal] >= WAITING:
            self.dropped += 1
            return
        self._put_in += 1
        self._waiting[normal] += 1
        self._queue.put_nowait((normal, self._put_in, write))

    # ------------------------------------------------------------------ sending

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._count_up())
            for number in range(SENDERS):
                group.create_task(self._sender(number))

    async def drain(self) -> None:
        """Return when nothing waits any more, counts included; :meth:`run` must be running."""
        self._put_recounts(until=float("inf"))
        await self._queue.join()

    async def _count_up(self) -> None:
        """Send counts when they are due."""
        while True:
            self._put_recounts(until=self._clock())
            if self._recounts:
                pause = self._recounts[0][0] - self._clock()
                await asyncio.sleep(max(SHORTEST_PAUSE, min(pause, RECOUNT)))
            else:
                self._recounting.clear()
                await self._recounting.wait()

    def _put_recounts(self, until: float) -> None:
        while self._recounts and self._recounts[0][0] <= until:
            _, _, write = heapq.heappop(self._recounts)
            write.told.waits = False
            self._put(write)

    async def _sender(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        ended = float("-inf")
        while True:
            while (pause := self._pause(number, loop.time() - ended)) > 0:
                await asyncio.sleep(max(SHORTEST_PAUSE, min(pause, URGENT_PAUSE)))
            normal, _, write = await self._queue.get()
            self._waiting[normal] -= 1
            try:
                await self._sent(write)
            finally:
                self._queue.task_done()
                ended = loop.time()

    def _pause(self, number: int, rested: float) -> float:
        """Seconds that a sender waits, as far as is known, which has sent nothing for ``rested`` seconds."""
        urgent = self.gives_way_to()
        if not urgent:
            return 0.0
        more = SENDERS * self._queue.qsize() // WAITING
        if number > more:
            return URGENT_PAUSE
        return 0.0 if more or self._waiting[False] else min(urgent, LONGEST_PAUSE) - rested

    async def _sent(self, write: _Write) -> None:
        try:
            await self._send(write)
            self.written += 1
        except Exception:  # noqa: BLE001  # an event is not worth more: what it tells stands in conditions and logs too
            self.dropped += 1

    async def _send(self, write: _Write) -> None:
        if write.told.posted and await self._repeated(write):
            return
        try:
            await self._create(write)
        except ApiError as error:
            if not error.conflict:
                raise
            await self._create(write)
        write.told.posted = True

    async def _create(self, write: _Write) -> None:
        """Write a new event; that it exists already means that it is ours."""
        namespace = write.about.namespace or "default"
        try:
            await self._client.create(_WRITES, self._body(write, namespace), namespace, again=True)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _repeated(self, write: _Write) -> bool:
        """Count a known event up; False when the server has forgotten it."""
        changes = {"count": write.told.count, "lastTimestamp": stamp(write.told.last), "message": write.message}
        try:
            namespace = write.about.namespace or "default"
            await self._client.patch(_WRITES, write.told.name, namespace, changes, again=True)
        except ApiError as error:
            if not error.not_found:
                raise
            return False
        return True

    def _body(self, write: _Write, namespace: str) -> dict[str, Any]:
        about, told = write.about, write.told
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": told.name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": write.type,
            "reason": write.reason,
            "message": write.message[:1024],
            "count": told.count,
            "firstTimestamp": stamp(told.first),
            "lastTimestamp": stamp(told.last),
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "reportingInstance": "",
        }


def _remember(store: OrderedDict[int, Any], key: int, value: object) -> None:
    store[key] = value
    store.move_to_end(key)
    if len(store) > REMEMBERED:
        store.popitem(last=False)
