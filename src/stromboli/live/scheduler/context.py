"""What all parts of the executor share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, TypeVar

from stromboli.cluster import kinds
from stromboli.cluster.events import Deleted
from stromboli.cluster.kinds import Object
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.objects import absent
from stromboli.errors import ApiError, StromboliError, Unreachable, in_words
from stromboli.framework.books.plan import Bind
from stromboli.kube.client import Client
from stromboli.kube.recorder import Recorder, Regarding
from stromboli.live.process.events import Telling
from stromboli.live.scheduler.feed import Feed
from stromboli.model.podgroup import UPSTREAM, is_upstream
from stromboli.model.task import Task

D = TypeVar("D")

HOPELESS: Final = frozenset({400, 401, 403, 405, 406, 413, 415, 422})
"""Answers that another attempt would get again."""

UNWELCOME: Final = frozenset({401, 403})
"""Those of them that a server gives, too, which has just begun and does not know yet what each account may do."""

LONGEST_PAUSE: Final = 2.0
"""Seconds between attempts at most: when the server is back, what waits should go on soon."""

ATTEMPTS: Final = 12
"""Attempts that a server which answers, but with errors, is given."""

CONFLICTS: Final = 5
"""Attempts of a write that meets another one."""

CONFLICT_PAUSE: Final = (0.010, 0.011)
"""Seconds between those, drawn from this span."""


class Context:
    """Client, mirror and the rest.  ``may_write`` says whether we lead; ``clock`` gives seconds since 1970."""

    def __init__(
        self,
        client: Client,
        feed: Feed,
        recorder: Recorder,
        *,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.client, self.feed, self.recorder = client, feed, recorder
        self.may_write, self.clock = may_write, clock

    @property
    def mirror(self) -> Mirror:
        """The cluster's mirror."""
        return self.feed.mirror

    @property
    def tell(self) -> Telling:
        """Tells observers."""
        return self.feed.tell

    async def ask(self, kind: str, key: str, *, force: bool = False) -> Object:
        """Ask the server for an object and take in what it says.  Raises ApiError, Unreachable."""
        namespace, _, name = key.rpartition("/")
        found: Object = await self.client.get(self.feed.resource(kind), name, namespace)
        self.feed.answer(found, force=force)
        return found

    async def look(self, key: str, *, force: bool = False) -> kinds.Pod | None:
        """Ask the server for a pod and take in what it says; None when there is none.  Raises ApiError, Unreachable."""
        try:
            found = await self.ask("Pod", key, force=force)
        except ApiError as error:
            if not error.not_found:
                raise
            self._is_gone(key)
            return None
        return found if isinstance(found, kinds.Pod) else None

    def _is_gone(self, key: str) -> None:
        task = self.mirror.state.tasks.get(key)
        if task is not None:
            self.feed.take(Deleted("Pod", absent("Pod", (task.namespace, task.name), task.uid)))

    def waiting(self, key: str, uid: str) -> Task | None:
        """The task of pod ``key``; None if that of ``uid`` is gone, or has a node or is about to get one."""
        task = self.mirror.state.tasks.get(key)
        return None if task is None or task.uid != uid or task.own_node else task

    async def pause(self, attempt: int, error: StromboliError) -> None:
        """Wait before the attempt after ``attempt``, which ended in ``error``; at least as long as the server asks."""
        if isinstance(error, ApiError) and error.conflict:
            await asyncio.sleep(self.client.dice.uniform(*CONFLICT_PAUSE))
            return
        asked = error.retry_after if isinstance(error, ApiError) else None
        await asyncio.sleep(max(asked or 0.0, self.client.backoff(attempt, longest=LONGEST_PAUSE)))

    async def until_known(self, write: Callable[[], Awaitable[None]], bind: Bind) -> None:
        """Do what must not be left undone of ``bind`` until it is done, hopeless or no longer ours; the end is told."""
        attempts = Attempts()
        while self.may_write():
            try:
                await write()
                return
            except StromboliError as error:
                self.tell("bind_retried", task=bind.key, node=bind.node, error=error)
                if attempts.are_over(error):
                    return
                await self.pause(attempts.made, error)

    def each(self, decisions: Iterable[D], take: Callable[[D], None]) -> Iterator[None]:
        """Take decisions over one by one; one that cannot be is told, and leaves all others as they are."""
        for decision in decisions:
            try:
                take(decision)
            except Exception as error:  # noqa: BLE001  # one object's trouble must not be all others'
                self.tell("decision_failed", what=_subject(decision), error=in_words(error))
            yield

    def group_of(self, key: str, uid: str) -> Regarding:
        """The PodGroup of job ``namespace/name`` as events name it, ours or Kubernetes' own."""
        namespace, _, name = key.partition("/")
        version = self.feed.resource("UpstreamPodGroup" if is_upstream(name) else "PodGroup").api_version
        return Regarding(version, "PodGroup", namespace, name.removesuffix(UPSTREAM), uid)

    def pod_event(self, key: str, uid: str, type: str, reason: str, message: str) -> None:  # noqa: A002 - the API's word
        """An event on a pod."""
        self.recorder.record(pod_of(key, uid), type, reason, message)


def _subject(decision: object) -> str:
    """What a decision is about: the key or name that all of them bear."""
    return str(getattr(decision, "key", "") or getattr(decision, "name", decision))


class Attempts:
    """The attempts of one write, counted by what they met; ``made`` counts them all.

    An unreachable server is waited for: attempts without an answer count neither as conflicts nor as errors.
    After an answer in ``hopeless`` there is no other attempt.
    """

    def __init__(self, hopeless: frozenset[int] = HOPELESS) -> None:
        self.made, self._hopeless = 0, hopeless
        self._conflicts = self._errors = 0

    def are_over(self, error: StromboliError) -> bool:
        """Whether to give up after one more, which ended in ``error``."""
        self.made += 1
        if isinstance(error, Unreachable):
            return False
        if isinstance(error, ApiError) and error.conflict:
            self._conflicts += 1
        else:
            self._errors += 1
        is_hopeless = isinstance(error, ApiError) and error.code in self._hopeless
        return is_hopeless or self._conflicts >= CONFLICTS or self._errors >= ATTEMPTS


def is_other(error: StromboliError) -> bool:
    """Whether a write was refused because it met another one, or the name is another object's by now.

    For a patch that names the uid an API server says of the latter that the uid cannot be changed.
    """
    return isinstance(error, ApiError) and (error.conflict or (error.code == 422 and "metadata.uid" in error.problem))


def pod_of(key: str, uid: str) -> Regarding:
    """The pod ``namespace/name`` as events name it."""
    namespace, _, name = key.partition("/")
    return Regarding("v1", "Pod", namespace, name, uid)
