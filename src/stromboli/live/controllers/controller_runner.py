"""The controllers on a live cluster: what they follow, when they look, and how their changes are carried out.

:class:`Controllers` is the runner: ``await Controllers(client, ...).run()``.  ``stromboli controllers`` runs it alone,
``stromboli serve --controllers`` and the embedded cluster, next to a scheduler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from stromboli.controllers.changes import (
    Ask,
    Change,
    Create,
    Emit,
    Keep,
    Outcome,
    Target,
)
from stromboli.controllers.manager import Manager, Settings
from stromboli.controllers.regarding import regarding
from stromboli.controllers.work import About, Work
from stromboli.errors import ApiError, ObjectInTheWay, StromboliError, in_words
from stromboli.job_plugins.registry import offered
from stromboli.kube.client import ALL, Client
from stromboli.kube.informer import Informer, unforeseen
from stromboli.kube.informers import Informers
from stromboli.kube.recorder import Recorder, Regarding
from stromboli.live.controllers.controlled import Followed, division_sources, followed, topology_sources, writable
from stromboli.live.controllers.failures import failure_of, is_away
from stromboli.live.controllers.options import Options
from stromboli.live.controllers.prober import Prober
from stromboli.live.controllers.topology_poller import TopologyPoller
from stromboli.live.controllers.writer import Writer
from stromboli.live.process.events import Telling
from stromboli.live.process.stopping import Stop
from stromboli.model.names import EVENT_WARNING
from stromboli.narration.observe import SILENT, Observer

COMPONENT: Final = "vc-controller-manager"
"""Source of the controllers' events."""


FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 1000.0
"""Seconds before a failed look is repeated: doubling from the first to the longest, each drawn from the half below."""

AWAY_PAUSE: Final = 2.0
"""Seconds, or down to half of that, before a look is repeated that did not reach the server, or found an object of
another owner's in the way."""


class Controllers:
    """Follows a cluster and does what the reconcilers ask for, while ``may_write`` says that we lead.

    ``clock`` gives seconds since 1970, ``ask`` says whether an address answers well.  ``ready`` is set once everything
    has been listed; ``looks`` counts.
    """

    def __init__(
        self, client: Client, options: Options | None = None, *, observer: Observer = SILENT,
        clock: Callable[[], float] = time.time, may_write: Callable[[], bool] = lambda: True,
        ask: Callable[[Target], Awaitable[bool]] | None = None,
    ) -> None:  # fmt: skip
        self.options = options or Options()
        chosen = self.options
        plugins = chosen.job_plugins or offered()
        how = Settings(chosen.inherit_owner_annotations, chosen.looks, chosen.group_by, plugins, chosen.sharding)
        self.manager = Manager(how)
        self.recorder = Recorder(client, COMPONENT, clock)
        self.tell = Telling(observer)
        self.ready = asyncio.Event()
        self.looks = 0
        self._client, self._clock, self._may_write = client, clock, may_write
        self._whole: dict[str, Informer[Any]] = {}
        """The informers of all objects of a kind, by what the resource is called."""
        resources = writable(self.options.scheduler_names)
        self._writer = Writer(client, self.manager, resources, clock, ask or Prober().ask, self._whole)
        self._wake = asyncio.Event()
        self._poller = TopologyPoller(client, self.manager.topology, self._wake, may_write)
        self._stop = Stop()
        self._busy: set[Work] = set()
        self._looking: set[asyncio.Task[None]] = set()
        self._later: dict[Work, asyncio.TimerHandle] = {}
        self._failures: dict[Work, int] = {}
        self._refused: dict[Work, tuple[str, str]] = {}
        """The first thing that each look under way could not create: a word and a sentence."""

    # ------------------------------------------------------------------ running

    async def run(self) -> None:
        """Control until cancelled, or until :meth:`stop` has been called and done."""
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(self.recorder.run()), group.create_task(self._poller.run())]
            await self._stop.unless(self._begin(group, background))
            await self._dispatch(group)
            await self._wind_down()
            for task in (*background, *self._looking):
                task.cancel()

    def stop(self) -> None:
        """Finish the looks under way and what is about to be told, and return from :meth:`run`."""
        self._stop.ask()
        self._wake.set()

    async def _begin(self, group: asyncio.TaskGroup, background: list[asyncio.Task[None]]) -> None:
        """Read everything there is, and follow what happens from then on."""
        informers = self._informers()
        background.append(group.create_task(informers.run()))
        await informers.synced()
        self.ready.set()

    async def _wind_down(self) -> None:
        """Let what is under way come to its end, and have everything told, as far as the time to stop allows."""
        try:
            async with asyncio.timeout(self.options.stop_timeout):
                if self._looking:
                    await asyncio.wait(self._looking)
                await self.recorder.drain()
        except TimeoutError:
            self.tell("write_failed", what="the last changes", error="the time to stop is over")

    def _informers(self) -> Informers:
        informers = Informers()
        for row in self._followed():
            informer = Informer(
                self._client, row.resource, namespace=row.namespace, select=row.select, keep=False,
                troubled=self._trouble(row), optional=row.optional,
            )  # fmt: skip
            informer.subscribe(self._hearing(row))
            informers.by_kind[f"{row.resource} {len(informers.by_kind)}"] = informer  # some kinds are followed twice
            if not row.namespace and row.select == ALL:
                self._whole.setdefault(str(row.resource), informer)
        return informers

    def _followed(self) -> Iterator[Followed]:
        options = self.options
        yield from followed(self.manager, options.scheduler_names, options.looks)
        if About.discovery in options.looks:
            yield topology_sources(self.manager.topology, self._poller, options.namespace, options.config_map)
        if About.sharding in options.looks and options.sharding_config_map and options.sharding_namespace:
            yield division_sources(self.manager.sharding, options.sharding_namespace, options.sharding_config_map)

    def _trouble(self, row: Followed) -> Callable[[StromboliError], None]:
        def troubled(error: StromboliError) -> None:
            if not row.needed and isinstance(error, ApiError) and error.not_found:
                self.tell("not_served", resource=row.resource)
            else:
                self.tell("following_trouble", kind=row.resource.kind, error=error)

        return troubled

    def _hearing(self, row: Followed) -> Callable[[Any], None]:
        def hear(change: Any) -> None:
            try:
                row.hear(change)
            except Exception as error:  # noqa: BLE001  # one object's trouble must not end the controllers
                self.tell("object_refused", error=unforeseen("taken in", error, row.resource.kind, change.key))
            self._wake.set()

        return hear

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        """Begin a look at whatever is ready, one at a time for each object, until we are to stop."""
        while not self._stop:
            self._wake.clear()
            if self._may_write():
                self.manager.wake(self._clock())
                for work in [work for work in self.manager.ready if work not in self._busy]:
                    self._busy.add(work)
                    looking = group.create_task(self._work(work))
                    self._looking.add(looking)
                    looking.add_done_callback(self._looking.discard)
            await self._rest()

    async def _rest(self) -> None:
        """Wait for something to happen, or for the next action that was put off."""
        due = self.manager.jobs.timers.next()
        pause = None if due is None else max(due - self._clock(), 0.001)
        if not self._may_write():
            pause = 0.5
        try:
            await asyncio.wait_for(self._wake.wait(), pause)
        except TimeoutError:
            return

    def _again(self, work: Work, seconds: float) -> None:
        """Have ``work`` looked at when so much time has passed; the sooner of two times counts."""
        loop = asyncio.get_running_loop()
        known = self._later.get(work)
        if known is not None:
            if known.when() <= loop.time() + seconds:
                return
            known.cancel()
        self._later[work] = loop.call_later(seconds, self._ready_again, work)

    def _ready_again(self, work: Work) -> None:
        self._later.pop(work, None)
        self.manager.ready[work] = None
        self._wake.set()

    # ------------------------------------------------------------------ one look

    async def _work(self, work: Work) -> None:
        """Look at one object, do what follows, and let it be for a breath."""
        pause = await self._look(work)
        if pause:
            asyncio.get_running_loop().call_later(pause, self._let_go, work)
        else:
            self._let_go(work)

    def _let_go(self, work: Work) -> None:
        """The object may be looked at again."""
        self._busy.discard(work)
        self._wake.set()

    async def _look(self, work: Work) -> float:
        """One look; how many seconds no other one should follow."""
        self.looks += 1
        self._refused.pop(work, None)
        try:
            outcome = self.manager.look(work, self._clock())
            await self._carry_out(work, outcome)
            if work.about is About.command:  # it is deleted now, so that it is carried out once
                await self._carry_out(work, self.manager.carry_out(work.key))
        except Exception as error:  # noqa: BLE001  # one object's trouble must not end the controllers
            if is_away(error):
                return self._wait_for_server(work, error)
            await self._say_hindered(work)
            if isinstance(error, ObjectInTheWay):
                return self._wait_for_server(work, error)
            return await self._failed(work, in_words(error))
        if outcome.error:
            return await self._failed(work, outcome.error)
        self._failures.pop(work, None)
        self.manager.settled(work)
        self.tell("controlled", what=work, changes=sum(map(len, outcome.batches)))
        if outcome.after is not None:
            self._again(work, outcome.after)
        has_more = outcome.batches or outcome.after is not None
        return max(outcome.rest, self.options.breath if has_more else 0.0)

    def _wait_for_server(self, work: Work, error: Exception) -> float:
        """Have a look repeated that failed for no fault of its object, however often; how many seconds to wait."""
        self.tell("control_retried", what=work, error=error)
        self.manager.repeat(work)
        return self._client.backoff(1, AWAY_PAUSE, AWAY_PAUSE)

    async def _failed(self, work: Work, error: str) -> float:
        """Have a look repeated, or give its object up; how many seconds to wait before."""
        tries = self._failures[work] = self._failures.get(work, 0) + 1
        if 0 <= self.options.max_requeue < tries:
            del self._failures[work]
            self.tell("control_given_up", what=work, tries=tries, error=error)
            if (about := regarding(work, self.manager.world)) is not None:
                text = f"given up after {tries} attempts, until something about it changes: {error}"
                self.recorder.record(Regarding(*about), EVENT_WARNING, "GivenUp", text)
            last = self.manager.give_up(work)
            await self._carry_out(work, last)
            if last.after is not None:
                self._again(work, last.after)
            return 0.0
        self.tell("control_retried", what=work, error=error)
        self.manager.repeat(work)
        return self._client.backoff(tries, FIRST_PAUSE, LONGEST_PAUSE)

    async def _say_hindered(self, work: Work) -> None:
        """Have a job's status say what the API server has against the job's pods or PodGroup."""
        if (refused := self._refused.pop(work, None)) is None or work.about is not About.job:
            return
        try:
            await self._carry_out(work, self.manager.jobs.hindered(work.key, *refused, self._clock()))
        except StromboliError as error:  # the look is repeated anyway
            self.tell("control_retried", what=work, error=error)

    # ------------------------------------------------------------------ changes

    async def _carry_out(self, work: Work, outcome: Outcome) -> None:
        """Do batch after batch; raises what failed first in the first batch in which something did."""
        for batch in outcome.batches:
            requests = [self._do(work, change) for change in batch if not self._is_told(change)]
            for failure in await asyncio.gather(*requests, return_exceptions=True):
                if isinstance(failure, BaseException):
                    raise failure

    def _is_told(self, change: Change) -> bool:
        """Do what needs no request of its own; whether it is that."""
        if isinstance(change, Emit):
            about, type_, reason, message, happened = change
            self.recorder.record(Regarding(*about), type_, reason, message, happened=happened)
        elif isinstance(change, Ask):
            self.manager.ask_queue(change.queue, change.action)
        return isinstance(change, Emit | Ask)

    async def _do(self, work: Work, change: Change) -> None:
        try:
            await self._writer.carry_out(change)
        except StromboliError as error:
            self._tell_failure(work, change, error)
            raise

    def _tell_failure(self, work: Work, change: Change, error: StromboliError) -> None:
        failure, about = failure_of(change, error), regarding(work, self.manager.world)
        if failure is not None and about is not None:
            self.recorder.record(Regarding(*about), EVENT_WARNING, failure.reason, failure.text)
            if isinstance(change, Create | Keep):
                self._refused.setdefault(work, (failure.reason, failure.text))
