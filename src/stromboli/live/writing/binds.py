"""Binding pods: each until the cluster has said yes or no."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from stromboli.errors import ApiError, StromboliError, Unreachable
from stromboli.framework.books.plan import Bind
from stromboli.live.scheduler.context import Attempts, Context, pod_of
from stromboli.live.writing.claims import ClaimWriter
from stromboli.live.writing.locks import NodeLocks
from stromboli.live.writing.pool import Pool
from stromboli.live.writing.volumes import PAUSE, PAUSE_FOR_EACH, VolumeWriter
from stromboli.model import names

FIRST_GUESS: Final = 0.1
"""Seconds that a binding is taken to need before the first one has been answered."""
NEWEST_COUNTS: Final = 0.125
"""Weight of the newest answer in the average of how long they take."""
MORE_COME: Final = 2.0
"""Seconds after an answer in which more bindings are expected: two cycles of the usual length."""


class Binder:
    """Takes binds over: the pod stands on its node at once, and the request goes out when its turn comes.

    Binding is idempotent: a pod that is found on the intended node counts as bound.  A bind that fails gives its room
    back before anything else happens.  ``ended`` is called with each bind whose end is known, and the
    error or None.  ``bound`` and ``failed`` count.
    """

    def __init__(self, context: Context, size: int, ended: Callable[[Bind, Exception | None], None]) -> None:
        self._context, self._ended = context, ended
        self.pool = Pool(size, context.tell)
        self._waiting: dict[str, Bind] = {}
        self.bound = self.failed = 0
        self._volumes, self._claims, self._locks = VolumeWriter(context), ClaimWriter(context), NodeLocks(context)
        self._taken: dict[str, Bind] = {}
        """The newest bind of each pod, by uid: later cycles see what its claims get."""
        self._answer_takes, self._answered = FIRST_GUESS, float("-inf")

    @property
    def urgency(self) -> float:
        """Seconds that the API server takes for a binding at present; 0 while there is none, nor one expected soon."""
        lately = asyncio.get_running_loop().time() < self._answered + MORE_COME
        return self._answer_takes if lately or self.pool.is_busy else 0.0

    def take(self, bind: Bind) -> None:
        """Carry ``bind`` out, unless its pod is gone or has a node by now."""
        if self._context.mirror.assume_bound(bind):
            self._taken[bind.uid] = bind
            self._volumes.assume(bind)
            self._claims.assume(bind)
            self._put(bind)

    def _put(self, bind: Bind) -> None:
        self._waiting[bind.uid] = bind
        self.pool.put(f"Pod:binding {bind.key}", partial(self._carry_out, bind), partial(self._fail, bind))

    def hand_back(self) -> int:
        """Let go of binds that have not been sent: their pods wait again.  Returns how many there were."""
        self.pool.clear()
        handed, self._waiting = self._waiting, {}
        for bind in handed.values():
            self._forget(bind)
        return len(handed)

    # ------------------------------------------------------------------ one bind

    async def _carry_out(self, bind: Bind) -> None:
        """Try until it is known how it ends; while claims wait for volumes and devices, others have their turn."""
        if self._waiting.get(bind.uid) is not bind:
            return
        del self._waiting[bind.uid]
        began = asyncio.get_running_loop().time()
        attempts = Attempts()
        while self._still_wanted(bind):
            try:
                if not await self._volumes.ready(bind) or not await self._claims.ready(bind):
                    self._wait_for_claims(bind)
                    return
                await self._locks.take(bind)
                if await self._attempt(bind):
                    self._succeeded(bind, asyncio.get_running_loop().time() - began)
                return
            except StromboliError as error:
                if attempts.are_over(error):
                    await self._give_up(bind, error)
                    return
                self._context.tell("bind_retried", task=bind.key, node=bind.node, error=error)
                await self._context.pause(attempts.made, error)
        if attempts.made and self._is_confirmed(bind):
            self._succeeded(bind, asyncio.get_running_loop().time() - began)
        else:
            await self._leave(bind)

    def _wait_for_claims(self, bind: Bind) -> None:
        """Let the bind come again in a moment; the more of them wait, the longer that is."""
        self._waiting[bind.uid] = bind
        pause = max(PAUSE, len(self._waiting) * PAUSE_FOR_EACH)
        asyncio.get_running_loop().call_later(pause, self._again, bind)

    async def _give_up(self, bind: Bind, error: StromboliError) -> None:
        """The pod waits again; first its claims get back what was written, so that it may go elsewhere."""
        await self._take_back(bind)
        self._fail(bind, error)

    async def _leave(self, bind: Bind) -> None:
        """The bind is not wanted any more, as its pod or node is gone, or another scheduler leads."""
        await self._take_back(bind)
        self._forget(bind)

    async def _take_back(self, bind: Bind) -> None:
        """Give back what claims were given; not those of a pod that has a node, as it may use them."""
        task = self._context.mirror.state.tasks.get(bind.key)
        if task is None or task.uid != bind.uid or self._stands(bind) or not task.own_node:
            await self._locks.give_back(bind)
            await self._claims.take_back(bind)
            await self._volumes.take_back(bind)

    def _again(self, bind: Bind) -> None:
        if self._waiting.get(bind.uid) is bind:
            self._put(bind)

    def _forget(self, bind: Bind) -> None:
        """The pod stands as the cluster last said, unless another bind of it has been taken over meanwhile."""
        if self._taken.get(bind.uid) is bind and self._stands(bind):
            self._context.mirror.forget(bind.key, bind.uid)
        self._ended_for_claims(bind)

    def _ended_for_claims(self, bind: Bind) -> None:
        """What objects say of the pod's claims counts from now on."""
        if self._taken.get(bind.uid) is bind:
            del self._taken[bind.uid]
            self._volumes.forget(bind)
            self._claims.forget(bind)
            self._locks.keep(bind)

    def _stands(self, bind: Bind) -> bool:
        """Whether the decision does: nothing else is known, or has been decided, of the pod."""
        assumed = self._context.mirror.assumed.get(bind.key)
        return assumed is not None and (assumed.uid, assumed.node) == (bind.uid, bind.node)

    def _still_wanted(self, bind: Bind) -> bool:
        """Whether we lead, and the decision and the node still stand."""
        return self._stands(bind) and self._context.mirror.state.nodes.has(bind.node) and self._context.may_write()

    def _is_confirmed(self, bind: Bind) -> bool:
        """Whether the cluster has told meanwhile that an attempt got through whose answer was lost."""
        mirror = self._context.mirror
        task = mirror.state.tasks.get(bind.key)
        stands = task is not None and (task.uid, task.own_node) == (bind.uid, bind.node)
        return stands and bind.key not in mirror.assumed and self._context.may_write()

    async def _attempt(self, bind: Bind) -> bool:
        """Bind the pod: True when it is bound, False when nothing is left to do.

        Raises what the server said, or Unreachable, when it may be tried again.
        """
        try:
            await self._request(bind)
        except ApiError as error:
            if error.code != 409 and error.code < 500 and not error.not_found:
                raise
            return await self._as_it_stands(bind, error)
        except Unreachable as error:
            return await self._as_it_stands(bind, error)
        return True

    async def _request(self, bind: Bind) -> None:
        """Send the binding, and note how long it took until it was accepted: a refusal may come sooner."""
        loop, (namespace, _, name) = asyncio.get_running_loop(), bind.key.partition("/")
        began = loop.time()
        try:
            await self._context.client.bind(namespace, name, bind.uid, bind.node, dict(bind.annotations))
            self._answer_takes += NEWEST_COUNTS * (loop.time() - began - self._answer_takes)
        finally:
            self._answered = loop.time()

    async def _as_it_stands(self, bind: Bind, error: StromboliError) -> bool:
        """What has become of a pod whose binding was answered by ``error``: one that still waits may be tried again."""
        pod = await self._context.look(bind.key)
        if pod is None or pod.metadata.uid != bind.uid:
            await self._leave(bind)
            return False
        if pod.spec.node_name == bind.node:
            self._context.tell("metric.bind_already_bound", result="same_node")
            return True
        if pod.spec.node_name:
            self._context.tell("metric.bind_already_bound", result="other_node")
            text = names.POD_ALREADY_BOUND.format(pod=bind.key, node=pod.spec.node_name, expected=bind.node)
            await self._give_up(bind, ApiError(409, "Conflict", text))
            return False
        if pod.metadata.deletion_timestamp:
            await self._give_up(bind, error)
            return False
        raise error

    # ------------------------------------------------------------------ outcomes

    def _succeeded(self, bind: Bind, took: float) -> None:
        context = self._context
        self.bound += 1
        context.mirror.carried_out(bind.key, bind.uid, context.clock())
        self._ended_for_claims(bind)
        text = names.SUCCESSFULLY_ASSIGNED.format(pod=bind.key, node=bind.node)
        context.recorder.record_once(pod_of(bind.key, bind.uid), names.EVENT_NORMAL, names.EVENT_SCHEDULED, text)
        context.tell("bind_ok", latency=f"{took * 1000:.3f}ms")
        context.tell("metric.stage_duration", stage="Bind", seconds=took)
        if (task := context.mirror.state.tasks.get(bind.key)) is not None:
            context.tell("metric.task_latency", stage="Bound", created=[float(task.created)])
        self._ended(bind, None)

    def _fail(self, bind: Bind, error: Exception) -> None:
        self.failed += 1
        self._forget(bind)
        self._context.tell("bind_failed", task=bind.key, node=bind.node, error=error)
        self._ended(bind, error)
