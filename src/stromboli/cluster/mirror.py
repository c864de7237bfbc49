"""The state of a live cluster: what its events say, in whatever order they come, and what has been decided meanwhile.

A :class:`Mirror` keeps a :class:`~stromboli.cluster.state.ClusterState` up to date.  It leaves out what does not count
here, drops what is older than what is known already, and lets decisions stand until the cluster confirms them or they
are taken back.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from stromboli.cluster import kinds
from stromboli.cluster.charges import Charges
from stromboli.cluster.decoding.ours import Ours, everything, node_labels
from stromboli.cluster.decoding.proofs import REPLAYED, Proofs, Unproven
from stromboli.cluster.events import Deleted, Event
from stromboli.cluster.kinds import Metadata
from stromboli.cluster.rim import Applied, Decided, Emptied, Gone, Reserved, Rim
from stromboli.cluster.state import ClusterState
from stromboli.framework.books.plan import Bind, Eviction
from stromboli.model.names import PIPELINED_PROOF, SCHEDULER_NAME
from stromboli.model.reservation import Held, read, stated, with_reservation, written
from stromboli.model.status import COMPLETED_STATUS, TaskStatus
from stromboli.model.task import Task, twin

REMEMBERED: Final = 5_000
"""Deleted objects that are remembered, so that late news of them does not bring them back; each takes half a KiB."""

CONFIRMED_WITHIN: Final = 30.0
"""Seconds after which the news of a bound or evicted pod is asked for if it has not come."""

WAITING: Final = frozenset({TaskStatus.Pending, TaskStatus.Pipelined})
"""States of a pod that may be bound: it has no node yet, perhaps a reservation on one."""

Name = tuple[str, str, str]
"""Kind, namespace and name."""


class Version(msgspec.Struct, frozen=True, gc=False):
    """Which object it is, and how often the cluster had changed at its last event (0: changes are not counted)."""

    uid: str
    number: int


class Assumed:
    """What was decided about a pod and is not confirmed yet.

    ``node`` is where it is being bound to, with ``annotations``; empty for an eviction.  ``until`` is when the
    decision's result should have been seen, None while it is being carried out.
    """

    __slots__ = ("annotations", "node", "uid", "until")

    def __init__(self, uid: str, node: str = "", annotations: Mapping[str, str] | None = None) -> None:
        self.uid, self.node, self.annotations = uid, node, annotations or {}
        self.until: float | None = None


class Unwritten(NamedTuple):
    """A reservation that was decided for a pod and is not written yet: ``held``, or None for none any more.

    ``states`` is what the pod's annotations say until then.
    """

    uid: str
    held: Held | None
    states: Mapping[str, str]


def version_of(metadata: Metadata) -> Version:
    """The version of an object; resource versions of one kind are numbers that grow."""
    text = metadata.resource_version
    return Version(metadata.uid, int(text) if text.isdecimal() else 0)


def name_of(event: Event) -> Name:
    """The name of the object that an event is about."""
    metadata = event.object.metadata
    return event.kind, metadata.namespace, metadata.name


class Mirror:
    """The live cluster's state.

    ``schedulers`` are the names whose pods are ours.  Pods of others count once they have a node.  ``node_selector``
    are entries ``label:value``, of which a node must match one; none at all match every node.  ``versions`` of objects
    stand by kind, then by namespace and name.  ``stale`` counts events that brought nothing new.

    ``owns`` says which of the names of nodes and of owners are ours, where several schedulers divide them.
    ``proofs`` judges what pods state of reservations; without it all of that counts, as in a file that is trusted.
    """

    def __init__(
        self,
        state: ClusterState,
        schedulers: Collection[str] = (SCHEDULER_NAME,),
        node_selector: Iterable[str] = (),
        proofs: Proofs | None = None,
        owns: Callable[[str], bool] = everything,
    ) -> None:
        self.rim, self.proofs = Rim(state), proofs
        self.ours = Ours(frozenset(schedulers), node_labels(node_selector), owns)
        self.versions: defaultdict[str, dict[tuple[str, str], Version]] = defaultdict(dict)
        self._gone: OrderedDict[Name, Version] = OrderedDict()
        self.assumed: dict[str, Assumed] = {}
        self._real: dict[str, Task] = {}
        self.unwritten: dict[str, Unwritten] = {}
        self._charges = Charges(self.rim)
        self.stale = 0

    @property
    def state(self) -> ClusterState:
        """The cluster as known; only to look at, as it changes through ``rim`` alone."""
        return self.rim.state

    # ------------------------------------------------------------------ events

    def take(self, event: Event, *, force: bool = False) -> bool:
        """Take an event in; False when it is old news.  Raises ManifestError, nothing changed.

        ``force`` believes the event even if the version is known already: what was assumed on top of it is dropped.
        """
        name, version = name_of(event), version_of(event.object.metadata)
        if self.rim.scrub is not None and (scrubbed := self.rim.scrub(event.object)) is not event.object:
            event = replace(event, object=scrubbed)
        if isinstance(event, Deleted):
            return self._deleted(event, name, version)
        if not force and self._is_old(name, version):
            self.stale += 1
            return False
        self.versions[name[0]][name[1:]] = version  # also of what cannot be used: it will not get better
        self._apply(event)
        return True

    def _known(self, name: Name) -> Version | None:
        return self.versions[name[0]].get(name[1:])

    def _is_old(self, name: Name, version: Version) -> bool:
        """Whether this very object is gone, or something newer of its name is known: an object, or a deletion."""
        known, gone = self._known(name), self._gone.get(name)
        if gone is not None and gone.uid and gone.uid == version.uid:
            return True
        return any(0 < version.number <= each.number for each in (known, gone) if each is not None)

    def _deleted(self, event: Event, name: Name, version: Version) -> bool:
        known = self._known(name)
        if known is not None and known.uid != version.uid and version.number <= known.number:
            self.stale += 1
            return False
        self._gone[name] = version if version.number or known is None else known
        if len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)
        if known is None:
            return False
        del self.versions[name[0]][name[1:]]
        self._apply(event)
        return True

    def _apply(self, event: Event) -> None:
        if isinstance(event.object, kinds.Pod):
            self._pod(event, event.object)
        elif not self.ours.matches(event.object):
            self.rim.do(Applied(event.kind, False, event.object))
        else:
            self.rim.do(Applied(event.kind, not isinstance(event, Deleted), event.object))
            if isinstance(event.object, kinds.PodDisruptionBudget):
                self._charges.heard(f"{event.object.metadata.namespace}/{event.object.metadata.name}")

    # ------------------------------------------------------------------ pods

    def _pod(self, event: Event, pod: kinds.Pod) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if isinstance(event, Deleted) or not self.ours.counts(pod):
            self._forget_pod(key)
            return
        self.rim.do(Applied(event.kind, True, self._judged(key, pod)))
        self._real.pop(key, None)
        self._restate(key)
        assumed = self.assumed.get(key)
        if assumed is not None:
            self._still(key, assumed, self.state.tasks[key])

    def _judged(self, key: str, pod: kinds.Pod) -> kinds.Pod:
        """The pod without a reservation that does not count; what one that has a node states means nothing anyway."""
        if self.proofs is None or not self.state.reserving:
            return pod
        if pod.spec.node_name:
            self.proofs.forget(key, pod.metadata.uid)
            return pod
        return self.proofs.judged(key, pod)

    def _forget_pod(self, key: str) -> None:
        if self.proofs is not None and (known := self.state.tasks.get(key)) is not None:
            self.proofs.forget(key, known.uid)
        self.assumed.pop(key, None)
        self._real.pop(key, None)
        self.unwritten.pop(key, None)
        self._charges.gone(key)
        if key in self.state.tasks:
            self.rim.do(Gone(key))

    def _still(self, key: str, assumed: Assumed, task: Task) -> None:
        """After news of a pod: what was assumed is confirmed, overtaken, or stands."""
        over = assumed.uid != task.uid or task.status in COMPLETED_STATUS
        confirmed = bool(task.own_node) if assumed.node else task.status is TaskStatus.Releasing
        if over or confirmed:
            del self.assumed[key]
            self._charges.gone(key)
        else:
            self._put_on_top(key, assumed, task)

    def _put_on_top(self, key: str, assumed: Assumed, task: Task) -> None:
        decided = twin(task)
        if assumed.node:
            decided.node_name = assumed.node
            if assumed.annotations:
                decided.annotations = {**task.annotations, **assumed.annotations}
            if task.status in WAITING:
                decided.status = TaskStatus.Binding
        else:
            decided.status = TaskStatus.Releasing
        self.rim.do(Decided.to(decided))
        self._real.setdefault(key, task)  # what a decision is taken upon may be one itself

    # ------------------------------------------------------------------ decisions

    def assume_bound(self, bind: Bind) -> bool:
        """Let a pod stand on the node it is to be bound to; False when it is gone or has a node already.

        Raises ManifestError, nothing changed, when the node's sums would leave 64 bits.
        """
        task = self.state.tasks.get(bind.key)
        if task is None or task.uid != bind.uid or task.status not in WAITING:
            return False
        self._assume(bind.key, Assumed(bind.uid, bind.node, bind.annotations), task)
        return True

    def assume_evicted(self, eviction: Eviction) -> bool:
        """Let a pod be on its way out; False when it is gone or going already."""
        task = self.state.tasks.get(eviction.key)
        if task is None or task.uid != eviction.uid or task.status in (TaskStatus.Releasing, *COMPLETED_STATUS):
            return False
        self._assume(eviction.key, Assumed(eviction.uid), task)
        self._charges.charge(task)
        return True

    def _assume(self, key: str, assumed: Assumed, task: Task) -> None:
        self._put_on_top(key, assumed, task)
        self.assumed[key] = assumed

    def carried_out(self, key: str, uid: str, now: float) -> None:
        """The cluster has accepted at ``now``, in seconds since 1970, what was assumed; news of it should come."""
        assumed = self.assumed.get(key)
        if assumed is not None and assumed.uid == uid:
            assumed.until = now + CONFIRMED_WITHIN

    def forget(self, key: str, uid: str) -> None:
        """What was assumed has failed: the pod stands as the cluster last said."""
        assumed = self.assumed.get(key)
        if assumed is None or assumed.uid != uid:
            return
        del self.assumed[key]
        self._charges.failed(key)
        if (real := self._real.pop(key, None)) is not None:
            self.rim.do(Decided.to(real))

    def overdue(self, now: float) -> list[tuple[str, str]]:
        """Key and uid of assumed pods whose event is overdue; the caller should read them from the API server."""
        return [
            (key, assumed.uid)
            for key, assumed in self.assumed.items()
            if assumed.until is not None and assumed.until <= now
        ]

    # ------------------------------------------------------------------ reservations

    def assume_reserved(self, key: str, uid: str, held: Held | None) -> bool:
        """Let a pod hold ``held`` before its annotations say so; False when it is gone.  Raises ManifestError."""
        task = self.state.tasks.get(key)
        if task is None or task.uid != uid:
            return False
        known = self.unwritten.get(key)
        self.unwritten[key] = Unwritten(uid, held, self._states(task) if known is None else known.states)
        self._hold(task, held)
        return True

    def _states(self, task: Task) -> Mapping[str, str]:
        """What the pod's annotations say of a reservation, whether it counts or not."""
        found = None if self.proofs is None else self.proofs.unproven.get(task.key)
        return written(task.annotations if found is None else found.annotations)

    def is_stated(self, key: str, held: Held | None) -> bool:
        """Whether a pod with an unwritten reservation states ``held``, and what it states counts."""
        proven = self.proofs is None or key not in self.proofs.unproven
        return proven and self.unwritten[key].states == stated(held)

    def _hold(self, task: Task, held: Held | None) -> None:
        if written(task.annotations) != stated(held):
            self.rim.do(Reserved(task.key, task.uid, held))
        if (real := self._real.get(task.key)) is not None:
            self._real[task.key] = with_reservation(real, held)

    def _restate(self, key: str) -> None:
        """After news of a pod: what it holds stands until it is written."""
        task, known = self.state.tasks[key], self.unwritten.get(key)
        if known is None:
            return
        if known.uid != task.uid:
            del self.unwritten[key]
            return
        self.unwritten[key] = known._replace(states=self._states(task))
        self._hold(task, known.held)

    def reserved(self, key: str, uid: str, held: Held | None) -> None:
        """It is written that the pod holds ``held``; whatever else stands there by now has been put back."""
        known = self.unwritten.get(key)
        if known is not None and known[:2] == (uid, held):
            del self.unwritten[key]
            if self.proofs is not None and held is None and known.states and key not in self.proofs.unproven:
                self.proofs.refuse(key, Unproven(uid, known.states, REPLAYED))

    def forget_reservation(self, key: str, uid: str, held: Held | None) -> None:
        """It will not be written that the pod holds ``held``: what its annotations say counts again."""
        known = self.unwritten.get(key)
        if known is not None and known[:2] == (uid, held):
            del self.unwritten[key]
            if (task := self.state.tasks.get(key)) is not None:
                unproven = self.proofs is not None and key in self.proofs.unproven
                self._hold(task, None if unproven else read(known.states))

    def forget_reservations(self) -> None:
        """Forget all reservations that are not written yet: another scheduler may have decided meanwhile."""
        for key, known in list(self.unwritten.items()):
            self.forget_reservation(key, known.uid, known.held)

    def judge_anew(self, key: str) -> None:
        """Judge what was refused of a pod by the keys of now.  Raises ManifestError, as news of it would."""
        found = None if self.proofs is None else self.proofs.accept(key)
        if found is not None and key not in self.unwritten:
            proof = found.annotations.get(PIPELINED_PROOF, "")
            self.rim.do(Reserved(key, found.uid, read(found.annotations), proof))

    # ------------------------------------------------------------------ starting over

    def begin_anew(self) -> None:
        """Forget all that events have brought, but not what has been decided: all events are to come once more."""
        self.rim.do(Emptied())
        self._real.clear()
        if self.proofs is not None:
            self.proofs.unproven.clear()
            self.proofs.untold.clear()
        self.versions.clear()

    def all_told(self) -> None:
        """Everything has been told: what was decided about pods of which nothing was is void."""
        for key in {*self.assumed, *self.unwritten} - self.state.tasks.keys():
            self._forget_pod(key)

    # ------------------------------------------------------------------ audit

    def known(self, kind: str) -> Mapping[tuple[str, str], Version]:
        """Versions of all objects of ``kind`` at this moment, by namespace and name."""
        return self.versions[kind].copy()

    @property
    def objects(self) -> int:
        """How many objects are known."""
        return sum(map(len, self.versions.values()))

    def was_deleted(self, name: Name, version: Version) -> bool:
        """Whether that object was deleted after it had been at ``version``."""
        found = self._gone.get(name)
        return found is not None and (found.number >= version.number or found.uid == version.uid)

    def uid_of(self, name: Name) -> str:
        """The uid of a known object; empty for another one."""
        found = self._known(name)
        return "" if found is None else found.uid
