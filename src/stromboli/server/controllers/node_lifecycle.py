"""What happens in a cluster because time goes by, as Kubernetes' own controllers see to it.

Nodes whose kubelets are heard of no more become unknown; pods leave tainted nodes when their tolerance is over, and
nodes that are gone; events and changes are forgotten.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

from stromboli.cluster.body import Body, Key, changed, meta, part, stamp
from stromboli.errors import ApiFailure
from stromboli.server.controllers.controller_loop import delete_if_possible, one_by_one
from stromboli.server.controllers.outages import Expulsion, expulsions, leaves_at, silenced
from stromboli.server.print.conditions import condition_of, readiness, with_condition
from stromboli.server.schema.resources import Catalogue, Resource
from stromboli.server.storage.store import Entry, Store
from stromboli.server.verbs.writing import Deletion, Options, Writer

TICK: Final = 2.0
"""Seconds between two ticks."""
GRACE: Final = 50.0
"""Seconds of silence, or a Lease's length if that is more, after which a node's state is unknown."""
ORPHANED: Final = 40.0
"""Seconds after which pods of a node that is gone are deleted."""
FORGOTTEN: Final = 3600.0
"""Seconds that an event is kept after it was told last."""
MOST_EVENTS: Final = 5_000
"""Events that are kept at most, the newest."""
HEAVIEST_EVENTS: Final = 16 << 20
"""Bytes of the events that are kept, however few these are then: a kilobyte each is usual, 1.5 MiB the most."""
_NAME: Final = 220
"""Characters of an object's name that an event's own begins with: some have to be left for the rest."""
COMPACTED: Final = 300.0
"""Seconds after which changes are forgotten, as those of etcd are at kube-apiserver's --etcd-compaction-interval."""
_COLLECT_EVERY: Final = 20.0
_FORGET_EVERY: Final = 60.0
_NODES: Final = ("", "nodes")
_PODS: Final = ("", "pods")
_EVENTS: Final = ("", "events")
_LEASES: Final = ("coordination.k8s.io", "leases")
_OF_NODES: Final = "kube-node-lease"
_ENDED: Final = ("Succeeded", "Failed")
_TAINTED: Final = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
_LOST: Final = ("DeletionByPodGC", "PodGC: node no longer exists")


class _Sign(NamedTuple):
    """A sign of a kubelet's life: versions of its Lease and its node, the node's heartbeat, and when it was seen."""

    lease: int
    node: int
    beat: object
    since: float


def _heard(known: _Sign | None, lease: int, node: Entry, now: float) -> _Sign:
    """The last sign of life, which is new if the Lease or the heartbeat is."""
    if known is not None and (known.lease, known.node) == (lease, node.version):
        return known
    beat = condition_of(node.body, "Ready").get("lastHeartbeatTime")
    new = known is None or known.lease != lease or known.beat != beat
    return _Sign(lease, node.version, beat, now if new or known is None else known.since)


@dataclass
class Clockwork:
    """Looks after what is due; ``clock`` gives seconds since 1970.

    A kubelet is heard when its Lease or its node's Ready condition is renewed, whatever time they bear: clocks differ,
    and after a start of the server every kubelet has the whole grace again.
    """

    store: Store
    catalogue: Catalogue
    writer: Writer
    clock: Callable[[], float]
    _heard: dict[str, _Sign] = field(default_factory=dict)
    _tainted: dict[tuple[str, str, str], float] = field(default_factory=dict)
    _lost: dict[str, float] = field(default_factory=dict)
    _done: dict[str, float] = field(default_factory=dict)
    """When what is done every so many seconds was done last."""
    _versions: deque[tuple[float, int]] = field(default_factory=deque)
    """Resource versions, oldest first, and when the store had them."""

    def tick(self) -> None:
        """Do what is due by now; one object's trouble keeps no other waiting."""
        now = self.clock()
        self._listen(now)
        self._expel(now)
        one_by_one("event", _surplus(self.store.of(_EVENTS).entries), partial(self.store.drop, _EVENTS))
        for work, seconds in (
            (self._collect, _COLLECT_EVERY),
            (self._forget, _FORGET_EVERY),
            (self._compact, _FORGET_EVERY),
        ):
            if now - self._done.get(work.__name__, 0.0) >= seconds:
                self._done[work.__name__] = now
                work(now)

    # ---------------------------------------------------------------------------------------------------- silent nodes

    def _listen(self, now: float) -> None:
        nodes = [key[1] for key in self.store.of(_NODES).entries]
        self._heard = {name: self._heard[name] for name in nodes if name in self._heard}
        one_by_one("node", nodes, partial(self._listen_to, now))

    def _listen_to(self, now: float, name: str) -> None:
        """A node without a Lease has no kubelet; its status stays as its creator wrote it."""
        node, lease = self.store.get(_NODES, ("", name)), self.store.get(_LEASES, (_OF_NODES, name))
        if node is None or lease is None:
            self._heard.pop(name, None)
            return
        self._heard[name] = sign = _heard(self._heard.get(name), lease.version, node, now)
        patience = max(GRACE, part(lease.body, "spec", "leaseDurationSeconds") or 0)
        if now - sign.since > patience and readiness(node.body) in ("True", "False"):
            self.store.put(_NODES, silenced(node.body, now))
            told = f"Node {name} status is now: NodeNotReady"
            self._tell(node.body, "NodeNotReady", told, "node-controller", now)

    # ------------------------------------------------------------------------------------------------ pods that must go

    def _expel(self, now: float) -> None:
        entries = self.store.of(_NODES).entries.items()
        nodes = {key[1]: entry.body for key, entry in entries if (entry.body.get("spec") or {}).get("taints")}
        found = one_by_one("node", nodes, lambda name: expulsions(nodes[name], self._tainted, now))
        driving = {name: taints for name, taints in found if taints}
        self._tainted = {
            (meta(nodes[name]).get("uid", ""), one.taint.key, one.taint.effect): one.since
            for name, taints in driving.items()
            for one in taints
        }
        if driving:
            one_by_one("pod", list(self.store.of(_PODS).entries), partial(self._let_leave, driving, now))

    def _let_leave(self, driving: Mapping[str, Sequence[Expulsion]], now: float, key: Key) -> None:
        pod = self.store.of(_PODS).entries[key].body
        if "deletionTimestamp" in meta(pod) or part(pod, "status", "phase") in _ENDED:
            return
        due = leaves_at(pod, driving.get(part(pod, "spec", "nodeName"), ()))
        if due is not None and due <= now:
            why = f"Marking for deletion Pod {'/'.join(key)}"
            self._tell(pod, "TaintManagerEviction", why, "taint-eviction-controller", now)
            self._remove(_TAINTED, Deletion(), now, key)

    def _collect(self, now: float) -> None:
        """No kubelet ends pods of a node that is gone: they are deleted at once."""
        nodes, pods = self.store.of(_NODES).entries, self.store.of(_PODS).entries
        homes = {key: part(entry.body, "spec", "nodeName") for key, entry in pods.items()}
        gone = {
            name
            for name in homes.values()
            if name and ("", name) not in nodes and not self.store.aside.holds(_NODES, ("", name))
        }
        lost = {meta(pods[key].body)["uid"]: key for key, name in homes.items() if name in gone}
        self._lost = {uid: self._lost.get(uid, now) for uid in lost}
        due = [lost[uid] for uid, since in self._lost.items() if now - since >= ORPHANED]
        one_by_one("pod", due, partial(self._remove, _LOST, Deletion(grace=0), now))

    def _remove(self, why: tuple[str, str], how: Deletion, now: float, key: Key) -> None:
        reason, message = why
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        pod = self.store.of(_PODS).entries[key].body
        if "deletionTimestamp" not in meta(pod):
            self.store.put(
                _PODS, changed(pod, status=with_condition(pod, {**condition, "lastTransitionTime": stamp(now)}))
            )
        delete_if_possible(self.writer, self._kind(_PODS), key, how)

    # ---------------------------------------------------------------------------------------------- events and changes

    def _compact(self, now: float) -> None:
        self._versions.append((now, self.store.version))
        while self._versions[0][0] <= now - COMPACTED:
            self.store.compact(self._versions.popleft()[1])

    def _forget(self, now: float) -> None:
        end = stamp(now - FORGOTTEN)
        old = [key for key, entry in self.store.of(_EVENTS).entries.items() if _last_told(entry.body) < end]
        one_by_one("event", old, partial(self.store.drop, _EVENTS))

    def _tell(self, about: Body, reason: str, message: str, component: str, now: float) -> None:
        """An event about an object, if it may be written; those of nodes stand in the namespace default."""
        found = meta(about)
        namespace, at = found.get("namespace") or "default", stamp(now)
        involved = {"apiVersion": "v1", "kind": about["kind"], "name": found["name"], "uid": found.get("uid", "")}
        event = {
            "metadata": {"name": f"{found['name'][:_NAME].rstrip('.-')}.{secrets.token_hex(8)}"},
            "involvedObject": {**involved, "namespace": found.get("namespace", "")},
            "reason": reason, "message": message, "type": "Normal", "count": 1, "firstTimestamp": at,
            "lastTimestamp": at, "source": {"component": component}, "reportingComponent": component,
            "reportingInstance": "",
        }  # fmt: skip
        with suppress(ApiFailure):  # a quota may forbid it: what it tells happens all the same
            self.writer.create(self._kind(_EVENTS), namespace, event, Options())

    def _kind(self, collection: Key) -> Resource:
        return self.catalogue.stored()[collection]


def _surplus(events: Mapping[Key, Entry]) -> Sequence[Key]:
    """Events beyond the number and the bytes that are kept, the oldest first."""
    if len(events) <= MOST_EVENTS and sum(len(event.encoded) for event in events.values()) <= HEAVIEST_EVENTS:
        return ()
    newest = sorted(events, key=lambda key: events[key].version, reverse=True)
    weights = list(accumulate(len(events[key].encoded) for key in newest))
    return newest[min(MOST_EVENTS, bisect_right(weights, HEAVIEST_EVENTS)) :][::-1]


def _last_told(event: Body) -> str:
    """When an event was told last; RFC 3339 texts of UTC are in the order of their times."""
    times = (part(event, "series", "lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max(str(one or "") for one in (*times, meta(event).get("creationTimestamp")))
