"""What a proof is bound to, and that nothing else than the scheduler's key makes one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.model.names import PIPELINED_PROOF
from stromboli.model.proof import KEY_BYTES, Proof, is_genuine, read_proof, sign, stated_since
from stromboli.model.reservation import Held

KEYS = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)
TIMES = st.integers(0, 10**15)
TEXTS = st.text(max_size=30)
NODE_ENDS = '","true'


@dataclass(frozen=True)
class Said:
    """All that a proof is of."""

    key: bytes
    uid: str
    node: str
    evicted: bool
    number: int
    since: int

    @property
    def proof(self) -> Proof:
        return sign(self.key, self.uid, Held(self.node, self.evicted), self.number, self.since)


SAID = st.builds(Said, KEYS, TEXTS, TEXTS, st.booleans(), TIMES, TIMES)


@pytest.mark.law("a proof is valid for exactly one statement")
@given(SAID, SAID)
def test_a_proof_is_of_one_statement_alone(one: Said, other: Said) -> None:
    assert is_genuine([one.key], one.uid, Held(one.node, one.evicted), one.proof)
    found = other.proof._replace(key=one.proof.key, code=one.proof.code)
    believed = is_genuine([one.key], other.uid, Held(other.node, other.evicted), found)
    assert believed == (replace(other, key=one.key) == one)


@pytest.mark.parametrize("change", [
    {"uid": "u2"}, {"node": "n2"}, {"evicted": True}, {"number": 2}, {"since": 1}, {"key": b"k" * KEY_BYTES},
    {"node": f"n1{NODE_ENDS}"}, {"uid": f"u1{NODE_ENDS}"},
], ids=str)  # fmt: skip
def test_each_part_of_a_statement_is_bound(change: dict[str, Any]) -> None:
    said = Said(b"j" * KEY_BYTES, "u1", "n1", False, 1, 0)
    other = replace(said, **change)
    found = other.proof._replace(code=said.proof.code, key=said.proof.key)
    assert not is_genuine([said.key], other.uid, Held(other.node, other.evicted), found) or other.key != said.key
    assert not is_genuine([other.key], said.uid, Held(said.node, said.evicted), other.proof._replace(number=9))


def test_the_key_before_is_accepted_and_the_one_before_that_is_not() -> None:
    keys = [bytes([number]) * KEY_BYTES for number in range(3)]
    held = Held("n1")
    proofs = [sign(key, "u", held, 1, 1) for key in keys]
    assert [is_genuine(keys[:2], "u", held, proof) for proof in proofs] == [True, True, False]
    assert not is_genuine([], "u", held, proofs[0])


def test_what_is_written_is_what_is_read() -> None:
    proof = sign(b"k" * KEY_BYTES, "u", Held("n1"), 1_800_000_000_123, 1_800_000_000_000)
    assert read_proof({PIPELINED_PROOF: str(proof)}) == proof
    assert stated_since({PIPELINED_PROOF: str(proof)}) == 1_800_000_000.0
    assert stated_since({}) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v1",
        "true",
        "v1.0.0.0.0",
        "v2." + "a" * 80,
        "x" * 200_000,
        "v1.12345678.1.1." + "g" * 64,
        "v1.12345678." + "9" * 17 + ".1." + "a" * 64,
        "v1.12345678.1.1." + "a" * 64 + "\n",
    ],
)
def test_what_is_no_proof_is_read_as_none(text: str) -> None:
    assert read_proof({PIPELINED_PROOF: text}) is None


def test_a_node_of_impossible_length_is_not_even_hashed() -> None:
    key, held = b"k" * KEY_BYTES, Held("n" * 300)
    assert not is_genuine([key], "u", held, sign(key, "u", held, 1, 1))
