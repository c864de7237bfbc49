"""Which workloads have to be looked at, and the looks: one object's trouble keeps no other waiting."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from stromboli.cluster.body import Body, Key
from stromboli.errors import ApiFailure
from stromboli.server.admission.registered import Answers, Question, Unanswered
from stromboli.server.api import Api
from stromboli.server.controllers.workloads import (
    claims,
    daemon_sets,
    deployments,
    jobs,
    replica_sets,
    stateful_sets,
    volumes,
)
from stromboli.server.controllers.workloads.job_counts import JOBS, is_tracked
from stromboli.server.controllers.workloads.objects import PODS, Objects, controller_of, is_ending
from stromboli.server.http.asking import ask
from stromboli.server.storage.aside import Place
from stromboli.server.storage.store import Change, CollectionName

_LOG: Final = logging.getLogger(__name__)
AGAIN_AFTER: Final = 1.0
"""Seconds before an object is looked at again whose wishes were refused, by a quota for example."""
CONTROLLER: Final = {"username": "system:kube-controller-manager", "groups": ["system:authenticated"]}
"""The user in admission requests that the controllers cause."""

Sync = Callable[[Objects, Body], None]


def _sync_pod(objects: Objects, pod: Body) -> None:
    if is_ending(pod):
        jobs.release_orphan(objects, pod)
        return
    volumes.make_claims(objects, pod)
    claims.make_claims(objects, pod)


SYNCS: Final[Mapping[CollectionName, Sync]] = {
    deployments.DEPLOYMENTS: deployments.sync,
    replica_sets.REPLICA_SETS: replica_sets.sync,
    stateful_sets.STATEFUL_SETS: stateful_sets.sync,
    daemon_sets.DAEMON_SETS: daemon_sets.sync,
    JOBS: jobs.sync,
    **volumes.SYNCS,
    claims.CLAIMS: claims.sync,
    claims.GROUPS: claims.make_shared_claims,
    PODS: _sync_pod,
}
"""What a look at an object of each kind does."""


def _is_looked_at(name: CollectionName, body: Body) -> bool:
    """Whether an object is one that needs looks.

    Of pods those with claims of their own, and those of Jobs that go; of PodGroups those with claims.
    """
    if name == PODS and is_ending(body):
        return is_tracked(body)
    if name == claims.GROUPS:
        return any(claims.templated(body))
    return name != PODS or any(volumes.ephemeral(body)) or any(claims.templated(body))


class Workloads:
    """The controllers of workloads over the embedded server's objects."""

    def __init__(self, api: Api) -> None:
        self._objects = Objects(api.store, api.catalogue, api.writer, api.clock)
        self._store = api.store
        self._due: dict[Place, None] = {}
        self._refused: dict[Place, str] = {}
        self._answers: dict[Place, Answers] = {}
        self._asking: dict[Place, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._members = claims.Members()
        for entry in api.store.of(PODS).entries.values():
            self._members.note(entry.body, is_gone=False)
        for name in SYNCS:
            entries = api.store.of(name).entries
            self._due |= {(name, key): None for key, entry in entries.items() if _is_looked_at(name, entry.body)}
        api.store.listeners.append(self.note)

    async def run(self) -> None:
        """Look at what has changed, until cancelled."""
        try:
            await self._look_on()
        finally:
            for task in list(self._asking.values()):
                task.cancel()
            await asyncio.gather(*self._asking.values(), return_exceptions=True)

    async def _look_on(self) -> None:
        loop = asyncio.get_running_loop()
        again = loop.time() + AGAIN_AFTER
        while True:
            if loop.time() >= again:
                self._due |= dict.fromkeys(self._refused)
                again = loop.time() + AGAIN_AFTER
            if self.look():
                await asyncio.sleep(0)  # others have their turn, however much there is to do
                continue
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._seconds_left(again - loop.time()))

    def _seconds_left(self, until_again: float) -> float | None:
        """How long nothing is to be done, None for ever, unless something changes."""
        left = self._objects.soonest - self._objects.clock()
        left = min(left, until_again) if self._refused else left
        return None if left == math.inf else left

    def note(self, name: CollectionName, change: Change) -> None:
        """Remember what a change may call for."""
        body = change.entry.body
        if name == PODS:
            self._members.note(body, is_gone=change.type == "DELETED")
        if name in SYNCS and _is_looked_at(name, body):
            self._ask((name, change.entry.key))
        for place in volumes.related(self._store, name, body):
            self._ask(place)
        for place in claims.related(self._store, self._members, name, change):
            self._ask(place)
        if name == daemon_sets.NODES:
            for key in self._store.of(daemon_sets.DAEMON_SETS).entries:
                self._ask((daemon_sets.DAEMON_SETS, key))
        if name == PODS or name in SYNCS:
            owner = self._store.places.get(controller_of(body))
            if owner is not None and owner[0] in SYNCS:
                self._ask(owner)

    def _ask(self, place: Place) -> None:
        self._due[place] = None
        self._wake.set()

    def look(self) -> bool:
        """Look at one object that is due; whether there was one."""
        self._due |= dict.fromkeys(self._objects.due())
        place = next(iter(self._due), None)
        if place is None:
            return False
        del self._due[place]
        self._look(*place)
        return True

    def _look(self, collection: CollectionName, key: Key) -> None:
        place = (collection, key)
        body = self._objects.get(collection, *key)
        if body is None:
            self._refused.pop(place, None)
            self._answers.pop(place, None)
            self._objects.moments.pop(place, None)
            return
        answers = self._answers.setdefault(place, Answers(CONTROLLER))
        try:
            with answers.used():
                SYNCS[collection](self._objects, body)
            self._refused.pop(place, None)
            del self._answers[place]
        except Unanswered as asked:
            self._put_question(place, answers, asked.question)
        except ApiFailure as failure:
            if self._refused.get(place) != failure.reason:  # texts name a pod, which is another one each time
                _LOG.warning("%s %s: %s", body["kind"], "/".join(key), failure)
                self._objects.tell(body, "FailedCreate", f"Error creating: {failure}")
            self._refused[place] = failure.reason
            del self._answers[place]
        except Exception:  # noqa: BLE001  # one object's trouble must not be all others'
            _LOG.exception("%s %s", collection[1], "/".join(key))

    def _put_question(self, place: Place, answers: Answers, question: Question) -> None:
        """Have a webhook asked, once at a time for each object, and look again when it has answered."""
        if place in self._asking:
            return

        async def put() -> None:
            try:
                answers.known[question.key] = await ask(question)
            finally:
                del self._asking[place]
            self._ask(place)

        self._asking[place] = asyncio.create_task(put())
