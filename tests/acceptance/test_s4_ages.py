"""The age of reservations: time in which pods on their nodes terminate does not count."""

from __future__ import annotations

import pytest

from stromboli.cluster.body import stamp
from stromboli.model.names import PIPELINED_PROOF
from stromboli.model.proof import KEY_BYTES, sign
from stromboli.model.reservation import Held
from stromboli.testing.builders import pod, pod_group
from tests.acceptance.bench import NOW, conf
from tests.acceptance.fights import waiting
from tests.acceptance.stories import ALLOCATE, MINUTE, TIERS, Story, ending, holder, written

GRACE = "1970-01-12T14:16:40Z"  # NOW + 30 minutes


def slow_victim() -> Story:
    victim = pod("a-0", group="a", on="n1", cpu=4, memory=0, deleting=True)
    victim["metadata"]["deletionTimestamp"] = GRACE
    return Story([pod_group("a", phase="Running"), victim], waiting("h", 1, cpu=4), text=ALLOCATE)


def test_age_does_not_run_while_a_victim_may_still_be_there() -> None:
    story = slow_victim()
    story.cycle()
    for minutes in (11, 29, 39.9):
        assert written(story.cycle(now=NOW + minutes * MINUTE)) == {}
    assert written(story.cycle(now=NOW + 40 * MINUTE)) == {"h-0": None}
    assert story.told("metric.pipelined_given_up") == [{"reason": "timeout"}]


def test_age_of_a_gang_does_not_run_while_a_victim_may_still_be_on_any_of_its_nodes() -> None:
    """n1 is idle from the start: given up after ten minutes, it would be lost and need another eviction."""
    slow = pod("a-0", group="a", on="n2", cpu=4, memory=0, deleting=True)
    slow["metadata"]["deletionTimestamp"] = GRACE
    story = Story([pod_group("a", phase="Running"), slow], waiting("h", 2, cpu=4), text=ALLOCATE, nodes=2)
    assert written(story.cycle()) == {"h-0": Held("n1"), "h-1": Held("n2")}
    for minutes in (11, 29, 39.9):
        assert written(story.cycle(now=NOW + minutes * MINUTE)) == {}
    assert written(story.cycle(now=NOW + 40 * MINUTE)) == {"h-0": None, "h-1": None}


@pytest.mark.parametrize(("gone", "until"), [(31, 40), (15, 25), (35, 40)], ids=["in time", "early", "too late"])
def test_the_time_that_a_victim_had_does_not_count_once_it_has_gone_either(gone: int, until: int) -> None:
    """It had until 30, on n1, and has gone by ``gone``; that on n2 stays for ever."""
    slow = pod("a-0", group="a", on="n1", cpu=4, memory=0, deleting=True)
    slow["metadata"]["deletionTimestamp"] = GRACE
    left = [pod_group("a", phase="Running"), slow]
    story = Story(left, ending("b", "n2"), waiting("h", 2, cpu=4), text=ALLOCATE, nodes=2)
    assert written(story.cycle()) == {"h-0": Held("n1"), "h-1": Held("n2")}
    assert written(story.cycle(now=NOW + (gone - 0.1) * MINUTE)) == {}
    story.gone("a-0")
    for minutes in (gone, until - 0.1):
        assert written(story.cycle(now=NOW + minutes * MINUTE)) == {}
    assert written(story.cycle(now=NOW + until * MINUTE)) == {"h-0": None, "h-1": None}


def test_pods_that_end_beside_a_reservation_take_their_own_grace_period_off_its_age_and_no_more() -> None:
    """A stuck node is not kept for ever: every three minutes a pod starts to terminate and is gone in half a minute."""
    story = Story(ending("a", "n1"), ending("b", "n2"), waiting("h", 2, cpu=4), text=ALLOCATE, nodes=2)
    assert written(story.cycle()) == {"h-0": Held("n1"), "h-1": Held("n2")}
    assert written(story.cycle(now=NOW + 0.1 * MINUTE)) == {}
    for minutes in (1, 4, 7, 10):
        short = pod("x-0", on="n1", cpu=0, memory=0, deleting=True)
        short["metadata"]["deletionTimestamp"] = stamp(NOW + (minutes + 0.5) * MINUTE)
        story.tell(short)
        assert written(story.cycle(now=NOW + minutes * MINUTE)) == {}
        story.gone("x-0")
        assert written(story.cycle(now=NOW + (minutes + 0.5) * MINUTE)) == {}
    assert written(story.cycle(now=NOW + 11.9 * MINUTE)) == {}
    assert written(story.cycle(now=NOW + 12 * MINUTE)) == {"h-0": None, "h-1": None}


def test_a_reservation_that_is_given_up_and_taken_again_in_a_session_goes_on_ageing_as_it_did() -> None:
    slow = pod("a-0", group="a", on="n1", cpu=4, memory=0, deleting=True)
    slow["metadata"]["deletionTimestamp"] = GRACE
    gang = waiting("h", 2, cpu=4)
    story = Story(
        [pod_group("a", phase="Running"), slow],
        ending("b", "n2"),
        gang,
        text=conf(*TIERS, actions="enqueue, allocate"),
        nodes=2,
    )
    held = {"h-0": Held("n1"), "h-1": Held("n2")}
    assert written(story.cycle()) == held
    assert written(story.cycle(now=NOW + MINUTE)) == {}
    story.gone("a-0")
    assert written(story.cycle(now=NOW + 15 * MINUTE)) == {}
    story.tell(pod_group("h", min_member=2, phase="Pending", priorityClassName="high"))
    assert written(story.cycle(now=NOW + 16 * MINUTE)) == {}
    assert story.told("metric.pipelined_given_up") == [{"reason": "job"}] * 2
    assert written(story.cycle(now=NOW + 24.9 * MINUTE)) == {}
    assert written(story.cycle(now=NOW + 25 * MINUTE)) == {"h-0": None, "h-1": None}


@pytest.mark.parametrize(("minutes", "change"), [(59.9, {}), (60, {"h-0": None})])
def test_after_a_restart_room_is_held_no_longer_than_an_hour_after_what_its_proof_says(
    minutes: float, change: dict[str, None]
) -> None:
    proof = sign(b"k" * KEY_BYTES, "default/h-0", Held("n1"), 1, int(1000 * (NOW - minutes * MINUTE)))
    held = holder()
    held[1]["metadata"]["annotations"][PIPELINED_PROOF] = str(proof)
    assert written(Story(ending("a", "n1"), held, text=ALLOCATE).cycle()) == change


@pytest.mark.parametrize(("until", "change"), [(NOW + 1, {}), (NOW, {"h-0": Held("n1")})])
def test_a_job_cools_down_until_the_very_moment_that_is_noted_and_that_is_forgotten_then(
    until: float, change: dict[str, Held]
) -> None:
    story = Story(ending("a", "n1"), waiting("h", 1, cpu=4), text=ALLOCATE)
    story.state.memory["stromboli/reservations"] = {"cooling default/h": until}
    plan = story.cycle()
    assert written(plan) == change
    assert "cooling default/h" not in plan.memory.get("stromboli/reservations", {})


def test_in_the_first_second_of_time_room_is_held_as_ever() -> None:
    story = Story(ending("a", "n1"), waiting("h", 1, cpu=4), text=ALLOCATE)
    assert written(story.cycle(now=0.0)) == {"h-0": Held("n1")}
