"""The scheduler on a live cluster.

>>> scheduler = LiveScheduler(client, Options(), Source("volcano-scheduler.conf"))      # doctest: +SKIP
>>> await scheduler.run()                                                               # until cancelled

One event loop follows the cluster, carries decisions out and takes snapshots; each cycle runs in a worker thread.  What
is decided is carried out while the cycle still goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from stromboli.api.scheduling import QUEUE_OPEN
from stromboli.cluster.decoding.proofs import Proofs
from stromboli.cluster.kinds import Object, Pod
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.rim import Cut, Learned, Measured
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.errors import ApiError, ManifestError, StromboliError, in_words
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.extension.capabilities import NOTHING
from stromboli.kube.client import Client
from stromboli.kube.collecting import holding_a_cluster, tidy
from stromboli.kube.recorder import Recorder, Regarding
from stromboli.kube.resources import QUEUES
from stromboli.kube.turns import Slices
from stromboli.live.process.duties import Duties
from stromboli.live.process.events import Telling
from stromboli.live.process.stopping import Stop
from stromboli.live.proofs.keys import LOOK_EVERY as KEYS_EVERY
from stromboli.live.proofs.keys import ReservationKeys
from stromboli.live.proofs.proving import Proving
from stromboli.live.scheduler.audit import Audit
from stromboli.live.scheduler.closeness import Closeness
from stromboli.live.scheduler.configuration import Configuration, Source
from stromboli.live.scheduler.context import Context
from stromboli.live.scheduler.feed import FOLLOWED, Feed, asked_for, selected
from stromboli.live.scheduler.hash_ring import owned_by
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.outside import Outside
from stromboli.live.scheduler.pace import Pace
from stromboli.live.scheduler.plan_stream import Handover, Inbox
from stromboli.live.scheduler.sharding import Sharding
from stromboli.live.scheduler.strays import Strays
from stromboli.live.scheduler.usage_poller import UsagePoller
from stromboli.live.writing.executor import LiveExecutor
from stromboli.model.names import EVENT_FAILED_SCHEDULING, EVENT_WARNING, ROOT_QUEUE
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT, Observer, Several, Unrepeated

QUEUE_TRIES: Final = 60
"""Attempts to create the first queues, a second apart."""

CHECK_EVERY: Final = 5.0
"""Seconds between looks for decisions whose confirmation is overdue."""
READING_KEYS: Final = "reading the key of reservations"

LOOK_EVERY: Final = 0.1
"""Seconds between looks whether we lead, or are to stop."""

TOO_LONG: Final = 600.0
"""Seconds after which a cycle counts as stuck."""

FEW: Final = 5
"""Snapshots in a row that fail although everything has been read again, before the process counts as sick."""

TOO_OFTEN: Final = 30.0
"""Seconds between two such attempts, at most."""


class LiveScheduler:
    """Schedules the cluster that ``client`` talks to.

    ``observer`` hears what happens (logs, metrics); ``may_write`` says whether we lead, and nothing is decided or
    written while we do not; ``clock`` gives seconds since 1970.  ``when_planned`` is called with each plan.  ``ready``
    is set once everything has been read; ``cycles`` counts.
    """

    def __init__(
        self,
        client: Client,
        options: Options | None = None,
        source: Source | None = None,
        *,
        observer: Observer = SILENT,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
        when_planned: Callable[[Plan], None] = lambda _: None,
    ) -> None:
        self.client, self.options, source = client, options or Options(), source or Source()
        self.observer = observer if source.compat else Unrepeated(observer)
        self.may_write, self.clock, self.tell = may_write, clock, Telling(observer)
        self.configuration = Configuration(source, self.tell)
        proofs, options = Proofs(), self.options
        ours = options.scheduler_names, options.node_selector, proofs, owned_by(options.replica)
        self.mirror = Mirror(ClusterState(options.default_queue), *ours)
        for change in options.changes(self.configuration.current):
            self.mirror.rim.do(change)
        self.feed = Feed(self.mirror, self.tell, clock, self._refused)
        asked = asked_for(self.configuration.current, source.registry)
        self.informers = self.feed.informers(client, (*asked, *selected(FOLLOWED, self.options.unwatched)))
        self.recorder = Recorder(client, options.component, clock)
        context = Context(client, self.feed, self.recorder, may_write=may_write, clock=clock)
        self.executor = LiveExecutor(context, options.component)
        remove_gate = self.executor.updater.remove_gate
        self.outside = Outside(client, self.recorder, may_write, tell=self.tell, remove_gate=remove_gate)
        self.strays, self.sharding = Strays(context, self.executor.status_updater()), Sharding(context)
        self.closeness = Closeness(context, lambda: (self.configuration.current, self.configuration.source.registry))
        keys = ReservationKeys(client, self.options.namespace, self.tell, clock)
        self.proving = Proving(context, proofs, keys, self.executor.updater)
        self.audit = Audit(client, self.feed, self.informers)
        self.usage = self._poller()
        self.ready = asyncio.Event()
        self.duties = Duties(self.ready, self.tell)
        self._began: float | None = None
        self.cycles, self._uncounted, self._astray = 0, 0, False
        self.pace = Pace(lambda: self.feed.arrivals)
        self._told_of: list[str] = []
        self.last_plan: Plan | None = None
        self.when_planned = when_planned
        self._thread = ThreadPoolExecutor(1, "cycle") if self.options.in_thread else None
        self._stop = Stop()

    def _refused(self, found: Object, error: ManifestError) -> None:
        """A pod of ours that cannot be used waits for ever; an event on it says why."""
        if isinstance(found, Pod) and found.spec.scheduler_name in self.options.scheduler_names and self.may_write():
            about = Regarding("v1", "Pod", found.metadata.namespace, found.metadata.name, found.metadata.uid)
            self.recorder.record(about, EVENT_WARNING, EVENT_FAILED_SCHEDULING, str(error))

    def _poller(self) -> UsagePoller:
        """What asks for the loads of nodes, as the configuration of the moment says."""
        return UsagePoller(
            lambda: self.configuration.current.metrics,
            lambda: [name for name, entry in self.state.nodes.entries().items() if entry.spec is not None],
            lambda usage: self.mirror.rim.do(Measured(usage)),
            self.tell,
            client=self.client,
            clock=self.clock,
            fills=lambda: self.configuration.current.ways.asks("usage-stamp"),
        )

    @property
    def state(self) -> ClusterState:
        """The cluster as known, decisions included; belongs to the event loop's thread."""
        return self.mirror.state

    # ------------------------------------------------------------------ the life

    async def run(self) -> None:
        """Follow and schedule until cancelled, or until :meth:`stop` has been called and done."""
        if self._thread is None:
            await self._run()
            return
        try:
            with holding_a_cluster():
                await self._run()
        finally:
            self._thread.shutdown(wait=False)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self.informers.run()),
                group.create_task(self.executor.run()),
                group.create_task(self.recorder.run()),
                group.create_task(self.outside.run()),
                group.create_task(self._measure()),
                *map(group.create_task, self._periodic()),
            ]
            await self._stop.unless(self._synced())
            await self._schedule()
            await self._wind_down()
            for task in background:
                task.cancel()

    def _periodic(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What is done from time to time; one that fails is told, and the cycles go on."""
        every = self.duties.every
        yield every(CHECK_EVERY, "asking for overdue pods", self.executor.ask_for_overdue)
        yield every(CHECK_EVERY, "looking for pods that no cycle looks at", self.strays.look)
        yield every(CHECK_EVERY, "looking for network topologies that are asked for in vain", self.closeness.look)
        yield every(KEYS_EVERY, READING_KEYS, self.proving.refresh)
        yield every(self.options.audit_period, "the audit", self.audit.run)
        yield every(self.options.resync_period, "the resync", self.informers.refresh)

    def stop(self) -> None:
        """Finish the cycle, what it has sent and what it is about to tell, hand back the rest, and return from run."""
        self._stop.ask()

    async def _synced(self) -> None:
        """Wait until everything has been read; what is late is told, and scheduling starts without it."""
        timeout = self.options.resource_sync_timeout
        if timeout:
            try:
                async with asyncio.timeout(timeout):
                    await self.informers.synced()
            except TimeoutError:
                for kind in self.informers.late():
                    self.tell("handler_not_synced", name=kind)
        self.ready.set()

    async def freshen(self) -> None:
        """Read everything again: a new leader must know what the one before has decided last."""
        for kind in ("Node", "Pod", "PodGroup"):
            self.informers.by_kind[kind].refresh()
        await self.informers.synced()

    async def _schedule(self) -> None:
        led, fresh = False, True
        while not self._stop:
            if not self.may_write():
                led = fresh = False
                await asyncio.sleep(LOOK_EVERY)
                continue
            if not led:
                await self._stop.unless(self._begin_to_lead(fresh))
                led = True
                continue
            if self._astray:
                await self._stop.unless(self._read_anew())
                continue
            await self.cycle()
            await self.pause()

    async def _begin_to_lead(self, fresh: bool) -> None:
        for queue in await create_queues(self.client, self.options.default_queue):
            self.feed.answer(queue)  # the first cycle knows it already, and turns no queue away
        if not fresh:
            self.mirror.forget_reservations()
            await self.freshen()
        await self.duties.once(READING_KEYS, self.proving.refresh)
        self.tell("scheduler_started")

    async def pause(self) -> None:
        """The time between cycles, cut short by :meth:`stop`: what is written of the last one goes on meanwhile."""
        loop = asyncio.get_running_loop()
        self._tidy()
        while not self._stop and (left := self.pace.seconds_left(loop.time(), self.options.schedule_period)) > 0:
            await asyncio.sleep(min(left, LOOK_EVERY))
            self._tidy()

    def _tidy(self) -> None:
        if self._thread is not None:
            tidy()

    async def _wind_down(self) -> None:
        """Finish what has been sent, and hand back the rest."""
        waiting = self.executor.hand_back()
        self.tell("stopping", in_flight=self.executor.in_flight, waiting=waiting)
        try:
            async with asyncio.timeout(self.options.stop_timeout):
                await self.executor.quiet()
                await self.recorder.drain()
        except TimeoutError:
            self.tell("write_failed", what="the last decisions", error="the time to stop is over")
        self.tell("stopped")

    # ------------------------------------------------------------------ cycles

    async def cycle(self) -> Plan | None:
        """Run one cycle and have its plan carried out; None when it failed as a whole, which is told."""
        self._began = asyncio.get_running_loop().time()
        try:
            return await self._cycle()
        except Exception as error:  # noqa: BLE001  # one cycle's failure must not end the scheduler
            self.pace.decided(asyncio.get_running_loop().time())
            self.tell("cycle_failed", error=in_words(error))
            return None
        finally:
            self._began = None

    async def _cycle(self) -> Plan:
        if self.configuration.refresh():
            self.feed.follow(self.client, asked_for(self.configuration.current, self.configuration.source.registry))
        self.tell.renew()
        self.proving.remove_unproven()
        await self.sharding.publish()
        cut, snapshot = await self.take_snapshot()
        plan = await self._plan_for(snapshot, cut)
        self.pace.decided(asyncio.get_running_loop().time(), idle=plan.is_empty)
        await self.take_over(plan)
        return plan

    async def take_snapshot(self) -> tuple[Cut, Snapshot]:
        """The cluster as it stands, and when that is; what has changed is counted in slices before."""
        busy = Slices()
        self._uncounted, self._astray = self._uncounted + 1, True
        for _ in self.state.catching_up():
            await busy.give_way()
        self.pace.begun(asyncio.get_running_loop().time(), self.options.schedule_period)
        now = self.clock()
        cut = Cut(now, time.localtime(now).tm_gmtoff, self.options.seed)
        found: Snapshot = self.mirror.rim.do(cut)
        self._uncounted, self._astray = 0, False
        return cut, found

    async def _read_anew(self) -> None:
        """After a snapshot that could not be taken: rebuild the state from what the server says."""
        self.tell("read_anew", times=self._uncounted)
        self.mirror.begin_anew()
        for informer in self.informers.by_kind.values():
            informer.forget()
        await self.informers.synced()
        self.mirror.all_told()
        self._astray = False
        await asyncio.sleep(self.client.backoff(self._uncounted, LOOK_EVERY, TOO_OFTEN))

    async def _plan_for(self, snapshot: Snapshot, cut: Cut) -> Plan:
        """The plan, of which binds and evictions have been handed over meanwhile."""
        config = self.configuration.current
        if self._thread is None:
            return self._decide(snapshot, cut, config, Handover(self.executor, _at_once))
        inbox = Inbox(self._not_handed_over)
        making = asyncio.create_task(inbox.run())
        work = partial(self._decide, snapshot, cut, config, Handover(self.executor, inbox.later))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            inbox.end()
            await making

    def _not_handed_over(self, error: Exception) -> None:
        self.tell("decision_failed", what="some pods", error=in_words(error))

    def stuck(self) -> str:
        """What is wrong when the cycle under way has gone on for :data:`TOO_LONG`, or none can begin; else nothing."""
        if self._uncounted > FEW:
            return f"the state could not be counted {self._uncounted} times in a row"
        since = 0.0 if self._began is None else asyncio.get_running_loop().time() - self._began
        return f"a cycle has gone on for {since:.0f} s" if since >= TOO_LONG else ""

    def _decide(self, snapshot: Snapshot, cut: Cut, config: Config, handover: Handover) -> Plan:
        observer = Several([handover, self.observer])
        registry = self.configuration.source.registry
        may_wait = self._thread is not None  # the event loop answers plugins while the cycle's thread waits
        offered = self.outside.offered(config.features) if may_wait else NOTHING
        plan = run_cycle(snapshot, config, registry, cut.now, cut.seed, observer, offered)
        handover.rest(plan)
        return plan

    async def take_over(self, plan: Plan) -> None:
        """Have all of a plan but its binds and evictions carried out, and let the state know it."""
        self.mirror.rim.do(Learned.of(plan, self.state))
        self._tell_inconsistencies(plan.inconsistencies)
        busy = Slices()
        for _ in self.executor.steps(plan):
            await busy.give_way()
        self.cycles += 1
        self.last_plan = plan
        self.when_planned(plan)

    def _tell_inconsistencies(self, found: list[str]) -> None:
        """What did not add up and was left out of the cycle; what was so the last time is not told again."""
        self.tell("metric.inconsistencies", count=len(found))
        for text in found:
            if text not in self._told_of:
                self.tell("inconsistency", text=text)
        self._told_of = found

    # ------------------------------------------------------------------ outside the cycles

    async def _measure(self) -> None:
        """Ask for the loads of nodes again and again, once nodes are known."""
        await self.ready.wait()
        await self.usage.run()


def _at_once(call: Callable[..., object], *arguments: object) -> None:
    call(*arguments)


async def create_queues(client: Client, default_queue: str) -> list[Object]:
    """Create the root queue and the default queue where they are missing; returns those.  Raises the last error."""
    made = [await _created(client, name, name != ROOT_QUEUE) for name in (ROOT_QUEUE, default_queue)]
    return [queue for queue in made if queue is not None]


async def _created(client: Client, name: str, reclaimable: bool) -> Object | None:
    """The queue ``name``, made and opened; None where it is there already, and its state others' business."""
    spec = {"weight": 1, "reclaimable": reclaimable}
    body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    left = QUEUE_TRIES
    while True:
        try:
            await client.create(QUEUES, body)
            return await client.patch(QUEUES, name, "", {"status": {"state": QUEUE_OPEN}}, subresource="status")
        except StromboliError as error:
            if isinstance(error, ApiError) and error.reason == "AlreadyExists":
                return None
            if not (left := left - 1):
                raise
        await asyncio.sleep(1.0)
