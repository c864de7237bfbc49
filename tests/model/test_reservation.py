"""Reservations in annotations: what states one, what is written, and that nothing else is touched."""

from __future__ import annotations

import pytest

from stromboli.model.names import EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_PROOF, PIPELINED_STATUS
from stromboli.model.reservation import KEYS, Held, mentioned, patch, read, restated, stated, written

FOREIGN = {"example.com/note": "kept"}
ON_N1 = {PIPELINED_STATUS: "true", PIPELINED_NODE: "n1"}


@pytest.mark.parametrize("held", [Held("n1"), Held("n1", evicted=True)])
def test_what_is_written_is_what_is_read(held: Held) -> None:
    notes = restated({**FOREIGN, EVICTION_OCCURRED: "true", PIPELINED_NODE: "n9"}, held)
    assert read(notes) == held
    assert notes == {**FOREIGN, **stated(held)}
    assert restated(notes, None) == FOREIGN


@pytest.mark.parametrize(
    "notes",
    [{}, {PIPELINED_NODE: "n1"}, {PIPELINED_STATUS: "true"}, {**ON_N1, PIPELINED_STATUS: "yes"},
     {**ON_N1, PIPELINED_NODE: ""}, {EVICTION_OCCURRED: "true"}],
)  # fmt: skip
def test_half_a_reservation_is_none(notes: dict[str, str]) -> None:
    assert read(notes) is None
    assert mentioned(notes) is bool(notes)
    assert written({**FOREIGN, **notes}) == notes


def test_a_patch_names_all_keys_and_deletes_what_is_not_stated() -> None:
    assert patch(None) == dict.fromkeys((*KEYS, PIPELINED_PROOF))
    assert patch(Held("n1")) == {**ON_N1, EVICTION_OCCURRED: None, PIPELINED_PROOF: None}
    assert patch(Held("n1", evicted=True), "p") == {**ON_N1, EVICTION_OCCURRED: "true", PIPELINED_PROOF: "p"}
