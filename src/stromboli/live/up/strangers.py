"""Pods on the embedded cluster that name a scheduler which does not run there: they would wait without a word."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.kube.recorder import Recorder, Regarding
from stromboli.model import names
from stromboli.server.api import Api

LOOK_EVERY: Final = 2.0
"""Seconds between two looks; a pod is told at the second one that finds it, as another scheduler may take it."""

MOST: Final = 100
"""Pods that are told in one look; the others are told in the next ones."""

TEXT: Final = "no scheduler {name} runs on this cluster, so the pod waits for ever; set spec.schedulerName to {ours}"


class Strangers:
    """Looks for such pods; ``ours`` are the names of the schedulers that run."""

    def __init__(self, api: Api, recorder: Recorder, ours: tuple[str, ...]) -> None:
        self._api, self._recorder, self._ours = api, recorder, ours
        self._before: set[str] = set()
        self._told: set[str] = set()

    async def run(self) -> None:
        """Look again and again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            while True:
                self.look()
                await asyncio.sleep(LOOK_EVERY)

    def look(self) -> None:
        """Tell pods that were found by the last look, too, each once."""
        found = {str(meta(pod).get("uid")): pod for pod in self._waiting()}
        self._told &= found.keys()
        late = [uid for uid in found if uid in self._before and uid not in self._told]
        for uid in late[:MOST]:
            self._told.add(uid)
            self._tell(uid, found[uid])
        self._before = set(found)

    def _waiting(self) -> Iterator[Body]:
        for pod in self._api.bodies("", "pods"):
            if part(pod, "spec", "schedulerName") not in self._ours and not part(pod, "spec", "nodeName"):
                yield pod

    def _tell(self, uid: str, pod: Body) -> None:
        name, ours = part(pod, "spec", "schedulerName"), " or ".join(self._ours)
        about = Regarding("v1", "Pod", meta(pod)["namespace"], meta(pod)["name"], uid)
        text = TEXT.format(name=name, ours=ours)
        self._recorder.record(about, names.EVENT_WARNING, names.EVENT_FAILED_SCHEDULING, text)
