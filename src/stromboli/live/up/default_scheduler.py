"""The embedded cluster's default scheduler: our core with a plain configuration, one pod at a time.

It stands in for kube-scheduler, for pods whose schedulerName is ``default-scheduler``.  They are placed, no more: it
knows no queues, no gangs and no evictions.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from stromboli.builtin import builtin_registry
from stromboli.cluster.body import Body, key_of, meta, part
from stromboli.cycle import run_cycle
from stromboli.errors import ApiFailure, ManifestError
from stromboli.framework.books.plan import Bind, Plan, PodConditionUpdate
from stromboli.framework.config.config import load_config
from stromboli.kube.recorder import Recorder
from stromboli.live.scheduler.context import pod_of
from stromboli.live.up.placing_state import DEFAULT_SCHEDULER, PODS, PlacingState
from stromboli.model import names
from stromboli.server.api import Api
from stromboli.server.print.conditions import with_condition
from stromboli.server.verbs.writing import Options

CONFIGURATION: Final = """\
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: predicates}, {name: nodeorder}]
"""
LOOK_EVERY: Final = 0.1
"""Seconds between two looks for pods that wait."""
AGAIN_AFTER: Final = 2.0
"""Seconds after which pods that found no room are tried again."""
_LOG: Final = logging.getLogger(__name__)


class DefaultScheduler:
    """Places such pods until it is cancelled."""

    def __init__(self, api: Api, recorder: Recorder) -> None:
        self._api, self._recorder = api, recorder
        self._registry = builtin_registry()
        known = (self._registry.plugin_names, self._registry.action_names)
        self._config = load_config(
            CONFIGURATION, source=DEFAULT_SCHEDULER, known_plugins=known[0], known_actions=known[1]
        )
        self._registry.resolve(self._config)
        self._cluster = PlacingState(api, self._leave_out)
        self._tried: tuple[frozenset[str], float] = (frozenset(), 0.0)

    async def run(self) -> None:
        """Look again and again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            while True:
                try:
                    self.look()
                except Exception:  # noqa: BLE001  # one object's trouble must not end the cluster
                    _LOG.exception("default scheduler")
                    self._cluster.begin_anew()
                await asyncio.sleep(LOOK_EVERY)

    def look(self) -> None:
        """Place the pods that wait; those that found no room a moment ago are left alone for a while."""
        uids, now = frozenset(str(meta(pod)["uid"]) for pod in self._cluster.waiting.values()), self._api.clock()
        tried, at = self._tried
        if not uids or (uids <= tried and 0 <= now - at < AGAIN_AFTER):
            return
        self._tried = (uids, now)
        plan = run_cycle(self._cluster.caught_up().snapshot(), self._config, self._registry, now)
        for bind in plan.binds:
            self._bind(bind)
        self._tell(plan)

    def _leave_out(self, kind: str, body: Body, error: ManifestError) -> None:
        """What cannot be read keeps no pod but itself from a node."""
        key = "/".join(key_of(body))
        _LOG.debug("default scheduler: %s %s: %s", kind, key, error)
        if kind == "Pod" and not part(body, "spec", "nodeName"):
            about = pod_of(key, str(meta(body)["uid"]))
            self._recorder.record(about, names.EVENT_WARNING, names.EVENT_FAILED_SCHEDULING, str(error)[:1024])

    def _bind(self, bind: Bind) -> None:
        namespace, _, name = bind.key.partition("/")
        binding = {"metadata": {"uid": bind.uid}, "target": {"kind": "Node", "name": bind.node}}
        try:
            self._api.pods.bind((namespace, name), binding, Options())
        except ApiFailure as failure:
            _LOG.debug("default scheduler: %s: %s", bind.key, failure)
            return
        text = f"Successfully assigned {bind.key} to {bind.node}"
        self._recorder.record(pod_of(bind.key, bind.uid), names.EVENT_NORMAL, "Scheduled", text)

    def _tell(self, plan: Plan) -> None:
        for update in plan.pod_conditions:
            self._say(update)

    def _say(self, update: PodConditionUpdate) -> None:
        namespace, _, name = update.key.partition("/")
        pod = self._api.body(*PODS, namespace, name)
        if pod is None:
            return
        said = {"type": names.POD_SCHEDULED, "status": "False", "reason": update.reason, "message": update.message}
        self._api.store.put(PODS, {**pod, "status": with_condition(pod, said)})
        about = pod_of(update.key, update.uid)
        self._recorder.record(about, names.EVENT_WARNING, names.EVENT_FAILED_SCHEDULING, update.message)
