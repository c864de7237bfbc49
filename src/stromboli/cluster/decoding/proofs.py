"""Which reservations count: those that the scheduler itself has written, each until it is replaced or has ended.

A user with permission to write a pod's annotations can also restore older ones, proof included.  So the scheduler
remembers a pod's newest reservation and whether it still exists: an older one, or one that was removed, does not count
again.  A restart loses this memory; a reservation restored then has the age that it states, and expires by it
(docs/pipelined.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from stromboli.cluster import kinds
from stromboli.model.proof import Proof, is_genuine, read_proof, sign
from stromboli.model.reservation import Held, mentioned, read, without

UNDECIDED: Final = "undecided"
UNSIGNED: Final = "unsigned"
FORGED: Final = "forged"
REPLAYED: Final = "replayed"
"""Why a statement does not count; the first says that there is no key to judge it by, and that it may be genuine."""


class Newest(NamedTuple):
    """The newest statement that is known of a pod: its number, what it holds since when, and whether it stands."""

    number: int
    node: str
    since: int
    stands: bool


class Unproven(NamedTuple):
    """A statement that does not count: the pod's uid, all its annotations, and why."""

    uid: str
    annotations: Mapping[str, str]
    reason: str


class Proofs:
    """Judges statements by ``keys``, of which the first signs; without any nothing counts, and nothing is refused.

    ``unproven`` are the statements that stand on pods and do not count, by the pods' names; of these ``untold`` are
    those that have been refused and not been dealt with.
    """

    def __init__(self) -> None:
        self.keys: tuple[bytes, ...] = ()
        self.unproven: dict[str, Unproven] = {}
        self.untold: dict[str, None] = {}
        self._newest: dict[str, Newest] = {}

    def judged(self, key: str, pod: kinds.Pod) -> kinds.Pod:
        """News of a waiting pod, without a reservation that does not count."""
        uid, annotations = pod.metadata.uid, pod.metadata.annotations
        reason = self.trouble(uid, annotations)
        self.drop(key)
        if not reason:
            return pod
        self.refuse(key, Unproven(uid, annotations, reason))
        return replace(pod, metadata=replace(pod.metadata, annotations=without(annotations)))

    def refuse(self, key: str, found: Unproven) -> None:
        """Note a statement that does not count."""
        self.unproven[key] = found
        if found.reason != UNDECIDED:
            self.untold[key] = None

    def drop(self, key: str) -> None:
        """What was refused of a pod does not stand there any more."""
        self.unproven.pop(key, None)
        self.untold.pop(key, None)

    def accept(self, key: str) -> Unproven | None:
        """Judge a refused statement by the keys of now; returned if it counts, which it does from then on."""
        found = self.unproven[key]
        reason = self.trouble(found.uid, found.annotations)
        self.drop(key)
        if not reason:
            return found
        self.refuse(key, found._replace(reason=reason))
        return None

    def trouble(self, uid: str, annotations: Mapping[str, str]) -> str:
        """Why what ``annotations`` of pod ``uid`` state does not count; empty if it does, or they state nothing.

        To be asked of each news of a pod, in order.
        """
        if not mentioned(annotations):
            self._ended(uid)
            return ""
        if not self.keys:
            return UNDECIDED
        held, proof = read(annotations), read_proof(annotations)
        if held is None or proof is None:
            self._ended(uid)
            return UNSIGNED
        if not is_genuine(self.keys, uid, held, proof):
            self._ended(uid)
            return FORGED
        return "" if self._is_newest(uid, held, proof) else REPLAYED

    def _is_newest(self, uid: str, held: Held, proof: Proof) -> bool:
        known = self._newest.get(uid)
        if known is not None and (proof.number < known.number or (proof.number == known.number and not known.stands)):
            self._ended(uid)
            return False
        self._newest[uid] = Newest(proof.number, held.node, proof.since, True)
        return True

    def _ended(self, uid: str) -> None:
        if (known := self._newest.get(uid)) is not None:
            self._newest[uid] = known._replace(stands=False)

    def sign(self, uid: str, held: Held, now: float) -> Proof | None:
        """The proof of a new statement at ``now``, in seconds since 1970; None without a key.

        On the node where it holds room already a pod has held it since then.
        """
        if not self.keys:
            return None
        known, number = self._newest.get(uid), round(now * 1000)
        since = number
        if known is not None:
            number = max(number, known.number + 1)
            since = min(since, known.since) if known.stands and known.node == held.node else since
        return sign(self.keys[0], uid, held, number, since)

    def wrote(self, uid: str, held: Held | None, proof: Proof | None) -> None:
        """It is written that pod ``uid`` holds ``held``, or nothing: what was stated before does not count again."""
        if held is None or proof is None:
            self._ended(uid)
        elif (known := self._newest.get(uid)) is None or known.number < proof.number:
            self._newest[uid] = Newest(proof.number, held.node, proof.since, True)

    def forget(self, key: str, uid: str) -> None:
        """The pod is gone, or has a node: what it states means nothing any more."""
        self.drop(key)
        self._newest.pop(uid, None)
