"""Proofs that a reservation was written by the scheduler: an HMAC over all that it states, in an annotation of its own.

A user with permission to change a pod can write its annotations under any field manager; only the scheduler knows the
key.  Here it is an argument: where keys come from is the business of :mod:`stromboli.live.proofs.keys`.

A proof is bound to the pod's uid and the node, and bears two times.  ``since`` says since when the room is held, so
that a statement which comes back does not become younger by it.  ``number`` grows with each statement of a pod, so that
an older one can be told from the newest.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from stromboli.model.names import LONGEST_NAME, PIPELINED_PROOF
from stromboli.model.reservation import Held

KEY_BYTES: Final = 32
"""Length of a key: that of the hash, which RFC 2104 recommends."""

_PURPOSE: Final = "stromboli reservation v1"
_FORM: Final = re.compile(r"v1\.([0-9a-f]{8})\.([0-9]{1,16})\.([0-9]{1,16})\.([0-9a-f]{64})", re.ASCII)
_LONGEST: Final = len("v1....") + 8 + 16 + 16 + 64


class Proof(NamedTuple):
    """A proof as written: which key, the two times in milliseconds since 1970, and the code in hexadecimal."""

    key: str
    number: int
    since: int
    code: str

    def __str__(self) -> str:
        return f"v1.{self.key}.{self.number}.{self.since}.{self.code}"


@lru_cache(maxsize=8)
def name_of(key: bytes) -> str:
    """What proofs call ``key``; it tells nothing of it."""
    return hmac.new(key, b"name", sha256).hexdigest()[:8]


def sign(key: bytes, uid: str, held: Held, number: int, since: int) -> Proof:
    """The proof that pod ``uid`` holds ``held``, ``since`` when and as its ``number``-th statement, in milliseconds."""
    return Proof(name_of(key), number, since, _code(key, uid, held, number, since))


def _code(key: bytes, uid: str, held: Held, number: int, since: int) -> str:
    said = msgspec.json.encode((_PURPOSE, uid, held.node, held.evicted, number, since))  # no two texts encode alike
    return hmac.new(key, said, sha256).hexdigest()


def read_proof(annotations: Mapping[str, str]) -> Proof | None:
    """The proof that ``annotations`` bear, be it genuine or not; None where there is none that could be."""
    text = annotations.get(PIPELINED_PROOF, "")
    found = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    return None if found is None else Proof(found[1], int(found[2]), int(found[3]), found[4])


def is_genuine(keys: Sequence[bytes], uid: str, held: Held, proof: Proof) -> bool:
    """Whether ``proof`` was made with one of ``keys`` for pod ``uid`` holding ``held``."""
    if len(held.node) > LONGEST_NAME:
        return False  # no node is called so, and nothing that long is hashed
    known = [key for key in keys if name_of(key) == proof.key]
    return any(hmac.compare_digest(_code(key, uid, held, proof.number, proof.since), proof.code) for key in known)


def stated_since(annotations: Mapping[str, str]) -> float | None:
    """Since when, in seconds since 1970, a reservation whose proof counts is held; None where no proof says it."""
    proof = read_proof(annotations)
    return None if proof is None else proof.since / 1000
