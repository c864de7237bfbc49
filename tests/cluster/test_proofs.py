"""Which statements of pods count: those with a proof, each until a newer one is known or it has ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stromboli.cluster.decoding.proofs import FORGED, REPLAYED, UNDECIDED, UNSIGNED, Proofs, Unproven
from stromboli.model.names import PIPELINED_PROOF
from stromboli.model.proof import sign
from stromboli.model.reservation import KEYS, Held, restated
from tests.cluster.objects import pod

KEY, OLD_KEY = b"k" * 32, b"o" * 32
N1, N2 = Held("n1"), Held("n2", True)
MINE = {"mine": "1"}


def stating(held: Held, number: int, key: bytes = KEY, since: int = 1000) -> dict[str, str]:
    """Annotations of the pod u that state so."""
    return restated(MINE, held, str(sign(key, "u", held, number, since)))


def proofs(*keys: bytes) -> Proofs:
    found = Proofs()
    found.keys = keys or (KEY, OLD_KEY)
    return found


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        (MINE, ""),
        (stating(N1, 1), ""),
        (stating(N1, 1, OLD_KEY), ""),
        (stating(N1, 1, b"x" * 32), FORGED),
        (stating(N1, 1) | {"volcano.sh/pipelined-node": "n2"}, FORGED),
        (restated(MINE, N1), UNSIGNED),
        (restated(MINE, N1, "v1.nonsense"), UNSIGNED),
        ({key: text for key, text in stating(N1, 1).items() if key != "volcano.sh/pipelined-node"}, UNSIGNED),
    ],
)
def test_what_counts_of_news_of_a_pod(notes: dict[str, str], reason: str) -> None:
    found = proofs()
    news = pod("p", uid="u", annotations=notes)
    left = found.judged("ns/p", news)
    refused = Unproven("u", notes, reason)
    assert found.unproven == ({"ns/p": refused} if reason else {})
    assert found.untold == ({"ns/p": None} if reason else {})
    assert left.metadata.annotations == (MINE if reason else notes)
    assert found.trouble("u", notes) == reason


def test_without_a_key_nothing_counts_and_nothing_is_refused() -> None:
    found = Proofs()
    left = found.judged("ns/p", pod("p", uid="u", annotations=stating(N1, 1)))
    assert left.metadata.annotations == MINE
    assert (found.unproven["ns/p"].reason, found.untold) == (UNDECIDED, {})
    assert found.sign("u", N1, 1.0) is None


def test_what_waited_for_a_key_counts_once_there_is_one_and_what_does_not_is_refused() -> None:
    found = Proofs()
    rows = {"genuine": stating(N1, 1), "forged": stating(N1, 1, b"x" * 32)}
    for name, notes in rows.items():
        found.judged(name, pod(name, uid="u", annotations=notes))
    assert found.accept("genuine") is None
    assert (found.unproven["genuine"].reason, found.untold) == (UNDECIDED, {})
    found.keys = (KEY,)
    assert found.accept("genuine") == Unproven("u", rows["genuine"], UNDECIDED)
    assert found.accept("forged") is None
    assert found.unproven == {"forged": Unproven("u", rows["forged"], FORGED)}
    assert found.untold == {"forged": None}


def test_later_news_of_a_pod_lifts_what_was_refused() -> None:
    found = proofs()
    found.judged("ns/p", pod("p", uid="u", annotations=restated(MINE, N1)))
    found.judged("ns/q", pod("q", uid="v", annotations=restated(MINE, N1)))
    found.judged("ns/p", pod("p", uid="u", annotations=MINE))
    assert (list(found.unproven), list(found.untold)) == (["ns/q"], ["ns/q"])
    found.forget("ns/q", "v")
    assert (found.unproven, found.untold) == ({}, {})


@pytest.mark.parametrize(
    ("ends", "again"),
    [
        (lambda found: found.trouble("u", MINE), REPLAYED),
        (lambda found: found.trouble("u", restated(MINE, N1)), REPLAYED),
        (lambda found: found.trouble("u", stating(N1, 6, b"x" * 32)), REPLAYED),
        (lambda found: found.trouble("u", stating(N1, 4)), REPLAYED),
        (lambda found: found.trouble("u", stating(N1, 6)), REPLAYED),
        (lambda found: found.wrote("u", None, None), REPLAYED),
        (lambda found: found.wrote("u", N1, None), REPLAYED),
        (lambda found: found.wrote("u", N2, sign(KEY, "u", N2, 6, 1)), REPLAYED),
        (lambda found: found.wrote("u", N2, sign(KEY, "u", N2, 5, 1)), ""),
        (lambda found: found.trouble("u", stating(N1, 5)), ""),
        (lambda found: found.trouble("v", MINE), ""),
        (lambda found: found.forget("ns/p", "u"), ""),
    ],
)
def test_what_has_ended_or_been_replaced_does_not_count_again(ends: Callable[[Proofs], object], again: str) -> None:
    found = proofs()
    assert found.trouble("u", stating(N1, 5)) == ""
    ends(found)
    assert found.trouble("u", stating(N1, 5)) == again
    assert found.trouble("u", stating(N1, 7)) == "", "a newer one does"


@pytest.mark.parametrize(
    ("known", "held", "now", "number", "since"),
    [
        (None, N1, 2.0, 2000, 2000),
        ((N1, 1500, 1000), N1, 2.0, 2000, 1000),
        ((N1, 1500, 1000), N2, 2.0, 2000, 2000),
        ((N1, 2500, 1000), N1, 2.0, 2501, 1000),
        ((N1, 2500, 2200), N1, 2.0, 2501, 2000),
        ((N1, 2000, 1000), N2, 2.0, 2001, 2000),
    ],
)
def test_a_statement_is_newer_than_the_one_before_and_as_old_as_the_room_is_held(
    known: tuple[Held, int, int] | None, held: Held, now: float, number: int, since: int
) -> None:
    found = proofs()
    if known is not None:
        found.wrote("u", known[0], sign(KEY, "u", *known))
    assert found.sign("u", held, now) == sign(KEY, "u", held, number, since)


def test_a_statement_that_has_ended_holds_nothing_for_the_next() -> None:
    found = proofs()
    found.wrote("u", N1, sign(KEY, "u", N1, 1500, 1000))
    found.wrote("u", None, None)
    assert found.sign("u", N1, 2.0) == sign(KEY, "u", N1, 2000, 2000)


def test_what_is_written_late_replaces_nothing_of_its_number() -> None:
    found = proofs()
    found.trouble("u", stating(N1, 1500))
    found.wrote("u", N2, sign(KEY, "u", N2, 1500, 1))
    assert found.sign("u", N1, 2.0) == sign(KEY, "u", N1, 2000, 1000)


def test_nothing_is_remembered_of_a_pod_that_is_gone() -> None:
    found = proofs()
    found.wrote("u", N1, sign(KEY, "u", N1, 1500, 1000))
    found.wrote("u", None, None)
    found.forget("ns/p", "u")
    assert found.trouble("u", stating(N1, 1500)) == ""


def test_the_words_of_a_reservation_are_taken_off_and_no_others() -> None:
    assert {*stating(N2, 1)} == {*KEYS, PIPELINED_PROOF, "mine"}
