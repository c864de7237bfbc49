"""A scheduler that decides alongside another one and carries nothing out.

It follows the cluster and makes plans as a :class:`~stromboli.live.scheduler.scheduler.LiveScheduler` does, holds them
against what the other does, and tells differences with their reasons.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from stromboli.cluster import kinds
from stromboli.cluster.mirror import WAITING
from stromboli.errors import SHADOW, CapabilityMissing, LostLease, in_words
from stromboli.framework.books.plan import Plan
from stromboli.kube.informer import Change, What
from stromboli.kube.transport import Checked, Transport
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.shadow import causes, extender
from stromboli.live.shadow.causes import Moment
from stromboli.live.shadow.differences import RECENT, Comparison, Decided, Difference, Pod
from stromboli.model.names import EVENT_EVICT
from stromboli.narration.observe import Observer, Silent

REST: Final = 4.0
"""How many times as long as the last search for reasons took no other begins: scheduling comes first."""

LONGEST: Final = 10.0
"""Seconds after which a search begins no further plan: plugins may wait for the cluster in each."""

MOST_LEFT_OUT: Final = 3
"""Sentences on what a plan was made without that a reason quotes; /shadow has all of the last plan."""

_LACKING: Final = CapabilityMissing.clause(SHADOW)
_BECAUSE: Final = "because of "


def read_only(transport: Transport) -> Transport:
    """A transport that carries reads alone; anything else raises LostLease."""

    def refuse() -> None:
        raise LostLease("a shadow writes nothing; run `stromboli serve` without --shadow to schedule")

    return Checked(transport, refuse)


class Seen(NamedTuple):
    """How a pod stood when it was last heard of."""

    node: str
    evicted: str
    says: str


class Made(NamedTuple):
    """What a plan was made from, and sentences on what it was made without."""

    moment: Moment
    left_out: tuple[str, ...]


class Spans(Silent):
    """Passes on how long cycles and their parts take, and nothing of what is decided, as none of it comes true."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def started(self, kind: str, name: str) -> None:
        """A span begins."""
        self._observer.started(kind, name)

    def ended(self, kind: str, name: str) -> None:
        """A span is over."""
        self._observer.ended(kind, name)


class Shadow:
    """Makes plans for the cluster that ``scheduler`` follows, which itself must not lead.

    ``patience`` is how many seconds a plan may want what the other does not do before that is told.
    ``comparison`` has what was found; ``plans`` counts.
    """

    def __init__(self, scheduler: LiveScheduler, patience: float) -> None:
        self.scheduler, self.tell = scheduler, scheduler.tell
        self.comparison = Comparison(patience)
        self.plans = 0
        self._seen: dict[str, Seen] = {}
        self._made: dict[int, Made] = {}
        self._news: deque[Difference] = deque()
        self._rows: list[str] = []
        self.left_out: tuple[str, ...] = ()
        """Sentences on what the last plan was made without."""
        self._rested = 0.0
        scheduler.informers.by_kind["Pod"].subscribe(self._heard)

    # ------------------------------------------------------------------ the life

    async def run(self) -> None:
        """Plan and compare until cancelled, or until :meth:`stop` has been called."""
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self.scheduler.run())
            ready = group.create_task(self.scheduler.ready.wait())
            await asyncio.wait({following, ready}, return_when=asyncio.FIRST_COMPLETED)
            self.tell("shadow_started")
            while not following.done():
                await self._round()
                await asyncio.wait({following}, timeout=self.scheduler.options.schedule_period)
            ready.cancel()
        self._sum_up()

    def stop(self) -> None:
        """Return from :meth:`run` soon."""
        self.scheduler.stop()

    async def _round(self) -> None:
        try:
            await self.cycle()
        except Exception as error:  # noqa: BLE001  # one cycle's failure must not end the comparison
            self.tell("cycle_failed", error=in_words(error))

    def _sum_up(self) -> None:
        counts = sorted(self.comparison.counts.items())
        self.tell("shadow_summary", plans=self.plans, counts=", ".join(f"{name} {count}" for name, count in counts))

    # ------------------------------------------------------------------ ours

    async def cycle(self) -> Plan:
        """Make one plan of the cluster as it stands, and tell what the other has done otherwise since the last."""
        scheduler = self.scheduler
        scheduler.configuration.refresh()
        cut, snapshot = await scheduler.take_snapshot()
        config, registry = scheduler.configuration.current, scheduler.configuration.source.registry
        offered = scheduler.outside.offered_to_read(config.features)
        moment = Moment(snapshot, config, registry, cut.now, cut.seed, offered)
        waiting = tuple(self._waiting())
        plan = await asyncio.to_thread(self._plan, moment)
        self.plans += 1
        lacking = (text for text in plan.inconsistencies if _LACKING in text)
        self._leave_out((*extender.unasked(config), *lacking))
        self._made[self.plans] = Made(moment, self.left_out)
        self._made.pop(self.plans - RECENT, None)
        self.comparison.decided(Decided.of(plan, self.plans, cut.now, waiting))
        says = {uid: seen.says for uid, seen in self._seen.items() if seen.says}
        self._news.extend(self.comparison.overdue(scheduler.clock(), says))
        await self._tell_news()
        return plan

    def _plan(self, moment: Moment) -> Plan:
        return moment.plan(observer=Spans(self.scheduler.observer))

    def _leave_out(self, sentences: tuple[str, ...]) -> None:
        """Tell what a plan was made without, if the one before was not."""
        for text in sentences:
            if text not in self.left_out:
                self.tell("shadow_leaves_out", text=text)
        self.left_out = sentences

    def _waiting(self) -> Iterator[Pod]:
        """The pods that wait for a node, as a snapshot of this moment has them."""
        names = self.scheduler.options.scheduler_names
        for task in self.scheduler.state.tasks.values():
            if task.status in WAITING and task.scheduler in names:
                yield Pod(task.uid, task.key, task.job)

    # ------------------------------------------------------------------ the other's

    def _heard(self, change: Change[object]) -> None:
        """News of a pod: what the other has decided shows in it."""
        pod = change.object
        if change.what is What.deleted or not isinstance(pod, kinds.Pod):
            self._seen.pop(change.uid, None)
            return
        if pod.spec.scheduler_name not in self.scheduler.options.scheduler_names:
            return
        new, old = seen(pod), self._seen.get(change.uid)
        self._seen[change.uid] = new
        if old is not None:
            self._news.extend(one for one in self._decided(change.uid, pod, old, new) if one is not None)

    def _decided(self, uid: str, pod: kinds.Pod, old: Seen, new: Seen) -> Iterator[Difference | None]:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        task = self.scheduler.state.tasks.get(key)
        about, now = Pod(uid, key, task.job if task is not None else ""), self.scheduler.clock()
        if new.node and not old.node:
            yield self.comparison.bound(about, new.node, now)
        if new.evicted and not old.evicted:
            yield self.comparison.evicted(about, new.evicted, now)

    # ------------------------------------------------------------------ telling

    async def _tell_news(self) -> None:
        """Tell what is new, pods of one job that differ alike in one line, with the reason of the first."""
        groups: dict[tuple[str, str, int], list[Difference]] = {}
        while self._news:
            one = self._news.popleft()
            groups.setdefault((one.what, one.job, one.cycle), []).append(one)
        for alike in groups.values():
            why = await self._why(alike[0])
            for one in alike:
                self.comparison.explained(one, why)
            self._tell(alike, why)

    def _tell(self, alike: Sequence[Difference], why: str) -> None:
        first = alike[0]
        more = f" and {len(alike) - 1} more of job {first.job}" if len(alike) > 1 else ""
        self.tell("shadow_differs", what=first.what, pod=first.pod + more, there=first.there, here=first.here, why=why)

    async def _why(self, found: Difference) -> str:
        """The reason, looked for in another thread unless the last search is too fresh, or its plan is gone."""
        loop = asyncio.get_running_loop()
        made, began = self._made.get(found.cycle), loop.time()
        if made is None or began < self._rested:
            return causes.BEYOND
        moment = made.moment._replace(late=lambda: loop.time() - began > LONGEST)
        text, rows = await asyncio.to_thread(causes.why, moment, found, tuple(self._rows))
        self._rows = [*rows, *(row for row in self._rows if row not in rows)]
        self._rested = loop.time() + REST * (loop.time() - began)
        if text == causes.UNKNOWN and made.left_out:
            return f"{text}; or what the shadow leaves out makes it: {_some(made.left_out)}"
        return text


def _some(sentences: Sequence[str]) -> str:
    more = len(sentences) - MOST_LEFT_OUT
    return "; ".join(sentences[:MOST_LEFT_OUT]) + (f"; and {more} more" if more > 0 else "")


def seen(pod: kinds.Pod) -> Seen:
    """What a pod shows of decisions: its node, why it is evicted, and what it is said to lack."""
    evicted, says = "", ""
    for one in pod.status.conditions:
        if one.type == "Ready" and one.reason == EVENT_EVICT:
            evicted = one.message.partition(_BECAUSE)[2] or one.message or EVENT_EVICT
        if one.type == "PodScheduled" and one.status == "False":
            says = f"waits: {one.message}" if one.message else ""
    return Seen(pod.spec.node_name, evicted, says)
