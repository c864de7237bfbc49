"""Acceptance rows S4: what is the same with reservations that outlive a session and without them, and what is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from stromboli.testing.builders import pod, pod_group, queue
from tests.acceptance.bench import binds, phases
from tests.acceptance.fights import evicted, running, waiting
from tests.acceptance.stories import ALLOCATE, NO_QUEUES, Story, ending, gang, half_free, with_port

ROOT = Path(__file__).parents[2]

# ---------------------------------------------------------------------- evictions


def spread_out(gate: bool) -> Story:
    """R1, a pod to a node: while a victim ends its port is taken, so that in the next session nothing is promised."""
    run = [running(f"a{i}", 1, f"n{i}", queue="q1", cpu=4, **with_port()) for i in range(1, 7)]
    queues = [queue("q1"), queue("q2", weight=2)]
    return Story(queues, *run, waiting("b", 6, least=2, queue="q2", cpu=4, **with_port()), nodes=6, gate=gate)


@pytest.mark.parametrize(("gate", "in_all"), [(True, 2), (False, 4)])
def test_S4_09_without_the_gate_there_are_more_evictions(gate: bool, in_all: int) -> None:
    """The queue may have more than its gang needs: only what was promised keeps it from taking more victims."""
    story = spread_out(gate)
    victims = [name for _ in range(6) for name in evicted(story.cycle())]
    assert len(set(victims)) == len(victims) == in_all


# ---------------------------------------------------------------------- gangs

FOUR = {"g-0", "g-1", "g-2", "g-3"}
TWO = {"h-0", "h-1"}


def mixed(gate: bool) -> Story:
    """One ps and two workers are the least; of three nodes one is still taken."""
    group = pod_group("g", min_member=3, minTaskMember={"ps": 1, "worker": 2})
    pods = [pod(f"g-{i}", group="g", cpu=4, memory=0, role=role) for i, role in enumerate(("worker", "worker", "ps"))]
    return Story([group, *pods], ending("a", "n3"), nodes=3, text=ALLOCATE, gate=gate)


def against(least: int) -> Callable[[bool], Story]:
    """A gang of two that needs half a node, all of which a job has that needs ``least`` of its own."""
    return lambda gate: Story(running("l", 4, least=least), waiting("h", 2), text=NO_QUEUES, gate=gate)


GANGS: dict[str, tuple[Callable[[bool], Story], list[str], list[set[str]], list[str]]] = {
    "room for all": (lambda gate: Story(gang(), nodes=4, text=ALLOCATE, gate=gate), [], [FOUR], []),
    "room for three": (lambda gate: Story(gang(), nodes=3, text=ALLOCATE, gate=gate), [], [set()], []),
    "room that comes": (lambda gate: half_free(gate=gate), ["a-0", "b-0"], [set(), set(), FOUR], []),
    "roles": (mixed, ["a-0"], [set(), {"g-0", "g-1", "g-2"}], []),
    "more than the least": (
        lambda gate: Story(waiting("g", 4, least=2, cpu=4), nodes=3, text=ALLOCATE, gate=gate),
        [], [{"g-0", "g-1", "g-2"}], [],
    ),
    "room for one of two": (
        lambda gate: Story(waiting("g", 2, cpu=4), waiting("h", 2, cpu=4), nodes=3, text=ALLOCATE, gate=gate),
        [], [{"g-0", "g-1"}], [],
    ),
    "that evicts": (against(1), ["l-3", "l-2"], [set(), set(), TWO], ["l-2", "l-3"]),
    "that may not break another": (against(4), [], [set()], []),
}  # fmt: skip
"""Stories: the room that becomes free before each cycle, the pods bound in each, and the pods evicted."""


@pytest.mark.parametrize("scene", GANGS)
def test_S4_36_with_and_without_the_gate_a_gang_is_placed_whole_or_not_at_all(scene: str) -> None:
    make, ends, bound, victims = GANGS[scene]
    decisions = [decided(make(gate), ends) for gate in (True, False)]
    assert decisions[0] == decisions[1]
    assert [set(each) for each, _, _ in decisions[0]] == [*bound, *[set()] * (len(ends) + 3 - len(bound))]
    assert [name for _, went, _ in decisions[0] for name in went] == victims


GANG_TESTS = ("tests/acceptance/test_s2_preempt.py", "tests/acceptance/test_s2_search.py", "tests/plugins/test_gang.py")


def test_S4_36_what_is_tested_of_gangs_holds_without_the_gate_too() -> None:
    """With it these tests run by themselves."""
    plugins = ("-p", "tests.support.without_reservations", "-p", "no:cacheprovider", "-p", "no:xdist")
    command = (sys.executable, "-m", "pytest", "-q", *plugins, "-k", "gang", *GANG_TESTS)
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert found.returncode == 0, found.stdout


def decided(story: Story, ends: Sequence[str]) -> list[Decisions]:
    """What each cycle decides; before each but the first one pod of ``ends`` is gone, before the last two none."""
    return [after(story, *gone) for gone in ([], *([name] for name in ends), [], [])]


Decisions = tuple[dict[str, str], list[str], Mapping[str, str]]


def after(story: Story, *gone: str) -> Decisions:
    """The node of each bound pod, the evicted pods, and the phases of the groups."""
    story.gone(*gone)
    plan = story.cycle()
    return binds(plan), sorted(evicted(plan)), phases(plan)
