"""Leader election by a Lease: of several that want to lead, one at a time may write.

Clocks of two machines are never compared: a candidate takes the Lease over when it has not seen it change for the whole
duration, by its own clock.  A leader that could not renew it for ``renew`` seconds, fewer than that, stops by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from stromboli.errors import ApiError, LostLease, StromboliError, in_words
from stromboli.kube.client import Client
from stromboli.kube.recorder import Recorder, Regarding
from stromboli.kube.resources import LEASES
from stromboli.model.names import EVENT_NORMAL

EVENT_REASON: Final = "LeaderElection"
BEGINS: Final = "became leader"
ENDS: Final = "stopped leading"
"""What events on the Lease say, behind the identity, as those of Kubernetes' own programs do."""

FAREWELL: Final = 2.0
"""Seconds that the last event may take: a process that has lost the Lease may have lost the server too."""


class Terms(NamedTuple):
    """Which Lease, our identity, and the seconds of Kubernetes' ``--leader-elect-*`` flags."""

    namespace: str
    name: str
    identity: str
    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Election:
    """One candidate for a Lease.

    :meth:`win` waits until it is ours, :meth:`hold` keeps it and raises LostLease when that fails, :meth:`release`
    hands it back so that the next one need not wait.  :attr:`leads` may be asked from any thread.  ``clock`` gives
    seconds since 1970 for what the Lease shows.  ``troubled`` hears of failed attempts; ``recorder`` writes events on
    the Lease.
    """

    def __init__(
        self,
        client: Client,
        terms: Terms,
        *,
        clock: Callable[[], float] = time.time,
        troubled: Callable[[StromboliError], None] = lambda _: None,
        recorder: Recorder | None = None,
    ) -> None:
        self._client, self.terms = client, terms
        self._clock, self._troubled = clock, troubled
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seen: tuple[str, str] = ("", "")
        self._seen_at = float("-inf")
        self._renewed = float("-inf")
        self._recorder, self._uid, self._begun = recorder, "", False
        self.leader = ""

    @property
    def leads(self) -> bool:
        """Whether we may write now."""
        return self._now() < self._renewed + self.terms.renew

    def _now(self) -> float:
        """Seconds that never jump."""
        return self._loop.time() if self._loop else float("-inf")

    # ------------------------------------------------------------------ the life of a candidate

    async def win(self) -> None:
        """Return when the Lease is ours."""
        self._loop = asyncio.get_running_loop()
        while not await self._try():
            await asyncio.sleep(self.terms.retry * self._client.dice.uniform(1.0, 1.2))
        self._begun = True
        if self._recorder is not None:
            self._recorder.record(*self._event(BEGINS))

    async def hold(self) -> None:
        """Renew the Lease for as long as that succeeds; then raise LostLease.

        That happens at the very moment at which :attr:`leads` ends: a process that stops with it has nothing under way
        any more by the time when another may lead.
        """
        while self.leads and await self._renewed_in_time():
            pass
        self._renewed = float("-inf")
        raise LostLease("leaderelection lost")

    async def _renewed_in_time(self) -> bool:
        """Wait, then renew the Lease; False when another has it, or time is over."""
        try:
            async with asyncio.timeout(self._renewed + self.terms.renew - self._now()):
                await asyncio.sleep(self.terms.retry)
                return await self._try() or self.leader == self.terms.identity
        except TimeoutError:
            return False

    async def release(self) -> None:
        """Hand the Lease back, if it is ours; if it ever was, an event says that this is over."""
        if self.leads:
            self._renewed = float("-inf")
            await self._hand_back()
        if self._begun and self._recorder is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL):
                    await self._recorder.write(*self._event(ENDS))

    async def _hand_back(self) -> None:
        try:
            lease = await self._get()
            if lease is not None and _holder(lease) == self.terms.identity:
                await self._write(lease, holder="", duration=1)
        except Exception as error:  # noqa: BLE001  # as in every attempt
            self._troubled(LostLease(in_words(error)))

    def _event(self, what: str) -> tuple[Regarding, str, str, str]:
        about = Regarding(LEASES.api_version, LEASES.kind, self.terms.namespace, self.terms.name, self._uid)
        return about, EVENT_NORMAL, EVENT_REASON, f"{self.terms.identity} {what}"

    # ------------------------------------------------------------------ one attempt

    async def _try(self) -> bool:
        """Take or renew the Lease; what goes wrong counts as no."""
        began = self._now()
        try:
            async with asyncio.timeout(max(self.terms.renew / 2, self.terms.retry)):
                done = await self._take()
        except TimeoutError:
            self._troubled(LostLease("no answer about the Lease"))
            return False
        except Exception as error:  # noqa: BLE001  # whatever is wrong with an answer, another one may be asked for
            self._troubled(LostLease(in_words(error)))
            return False
        if done:
            self.leader, self._renewed = self.terms.identity, began
        return done

    async def _take(self) -> bool:
        lease = await self._get()
        if lease is None:
            await self._create()
            return True
        self._look(lease)
        holder = _holder(lease)
        if holder and holder != self.terms.identity and not self._expired(lease):
            self.leader = holder
            return False
        try:
            await self._write(lease, holder=self.terms.identity, duration=self.terms.duration)
        except ApiError as error:
            if error.conflict:
                return False
            raise
        return True

    def _look(self, lease: dict[str, Any]) -> None:
        """Note which object the Lease is, and when it was seen to change."""
        self._uid = str(lease["metadata"].get("uid", ""))
        seen = (_holder(lease), str(lease["metadata"].get("resourceVersion", "")))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._now()

    def _expired(self, lease: dict[str, Any]) -> bool:
        stated = (lease.get("spec") or {}).get("leaseDurationSeconds") or self.terms.duration
        return self._now() >= self._seen_at + float(stated)

    async def _get(self) -> dict[str, Any] | None:
        try:
            return await self._client.get(LEASES, self.terms.name, self.terms.namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def _create(self) -> None:
        now = self._time()
        metadata = {"name": self.terms.name, "namespace": self.terms.namespace}
        spec = self._spec(self.terms.identity, self.terms.duration) | {"acquireTime": now, "leaseTransitions": 0}
        body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": spec}
        self._look(await self._client.create(LEASES, body, self.terms.namespace))

    async def _write(self, lease: dict[str, Any], holder: str, duration: float) -> None:
        """Replace the Lease as it was read: the resource version lets only one of two writers through."""
        old = lease.get("spec") or {}
        spec = {**old, **self._spec(holder, duration)}
        if _holder(lease) != self.terms.identity:
            spec["acquireTime"] = self._time()
            spec["leaseTransitions"] = int(old.get("leaseTransitions") or 0) + 1
        await self._client.replace(LEASES, self.terms.name, self.terms.namespace, {**lease, "spec": spec})

    def _spec(self, holder: str, duration: float) -> dict[str, Any]:
        return {"holderIdentity": holder, "leaseDurationSeconds": int(duration), "renewTime": self._time()}

    def _time(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _holder(lease: dict[str, Any]) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
