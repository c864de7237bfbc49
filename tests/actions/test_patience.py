"""Slow victims are not told to go at once: a job goes on waiting for a part of the time that they would take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stromboli.sim.explain import explain
from stromboli.sim.planning import Planning
from stromboli.testing.builders import queue
from tests.acceptance.bench import NOW, conf
from tests.acceptance.fights import evicted, running, waiting
from tests.acceptance.stories import ALL, TIERS, Story

GRACE = 130
"""Of the victim: 100 s beyond the usual ones, of which a fifth is waited for."""
WAITED = 20.0


def slow(name="a", on="n1", grace=GRACE, **fields):
    """A job whose one pod fills a node and takes so many seconds to end."""
    return running(name, 1, on, cpu=4, terminationGracePeriodSeconds=grace, **fields)


def crowded(*more, grace=GRACE, **fields):
    """A slow victim, and an important job in need of its node."""
    return Story(slow(grace=grace), waiting("h", 1, cpu=4), *more, **fields)


def goes(story, after=0.0):
    """Who is evicted so many seconds after the first cycle."""
    return evicted(story.cycle(now=NOW + after))


def with_patience(value):
    return f"{ALL}configurations: [{{name: preempt, arguments: {{patience: {value}}}}}]"


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_a_fifth_of_what_the_usual_grace_period_is_exceeded_by_is_waited_for(action):
    queues = [queue("q1"), queue("q2")]
    own = "q1" if action == "preempt" else "q2"
    crowd = [slow(queue="q1"), slow("b", "n2", queue="q1"), waiting("h", 1, cpu=4, queue=own)]
    story = Story(queues, *crowd, text=conf(*TIERS, actions=f"allocate, {action}"), nodes=2)
    assert [len(goes(story, after)) for after in (0, WAITED - 1, WAITED)] == [0, 0, 1]


@pytest.mark.parametrize(
    "story",
    [
        crowded(grace=30),
        crowded(gate=False),
        crowded(text=with_patience(0)),
        crowded(compat=True, gate=False),
    ],
    ids=["usual grace", "gate off", "no patience", "compat"],
)
def test_nothing_is_waited_for(story):
    assert goes(story) == ["a-0"]


def test_more_may_be_waited_for():
    story = crowded(text=with_patience(0.5))
    assert [goes(story, after) for after in (0, 49, 50)] == [[], [], ["a-0"]]


def test_a_negative_patience_is_refused_and_the_default_stays():
    story = crowded(text=with_patience(-1))
    assert [goes(story), goes(story, WAITED)] == [[], ["a-0"]]


def test_of_several_victims_the_slowest_counts():
    story = Story(slow("a", grace=30), slow("b", "n2"), waiting("h", 2, cpu=4), nodes=2)
    assert [goes(story), sorted(goes(story, WAITED))] == [[], ["a-0", "b-0"]]


def test_nobody_goes_where_room_turns_up_meanwhile():
    story = Story(slow(), slow("b", "n2"), waiting("h", 1, cpu=4), nodes=2)
    assert goes(story) == []
    story.gone("b-0")
    plan = story.cycle(now=NOW + WAITED)
    assert (evicted(plan), [(bind.key, bind.node) for bind in plan.binds]) == ([], [("default/h-0", "n2")])


def test_who_waits_holds_nothing_and_costs_nobody_else_their_turn():
    """The one victim who ends sooner goes for the second job in the very cycle in which the first goes on waiting."""
    story = Story(slow(), slow("b", "n2", grace=30), waiting("h", 2, cpu=4), waiting("l", 1, cls="mid", cpu=4), nodes=2)
    assert goes(story) == ["b-0"]
    assert story.nodes_held() == {"l-0": "n2"}


def test_a_job_that_does_not_ask_for_a_while_has_not_begun_anew():
    """The second cycle has no action that evicts."""
    story = crowded()
    assert goes(story) == []
    story.config, config = replace(story.config, actions=("allocate",)), story.config
    assert goes(story, 10) == []
    story.config = config
    assert goes(story, WAITED) == ["a-0"]


def test_a_restart_begins_anew():
    story = crowded()
    assert goes(story) == []
    story.restart()
    assert [goes(story, after) for after in (10, 29, 30)] == [[], [], ["a-0"]]


def test_a_clock_that_goes_back_begins_anew():
    story = crowded()
    assert [goes(story, after) for after in (0, -1000, -981, -980)] == [[], [], [], ["a-0"]]


def test_nothing_is_remembered_of_who_runs_or_is_gone():
    story = crowded()
    story.cycle()
    assert story.state.memory["reservations"]
    story.gone("a-0")
    story.cycle(now=NOW + 1)
    story.cycle(now=NOW + 2)
    assert not story.state.memory["reservations"]


def test_it_is_told_and_explained_until_when():
    story = crowded()
    story.cycle()
    (fields,) = story.told("eviction_postponed")
    assert (fields["victims"], fields["grace"], fields["until"]) == (1, GRACE, "1970-01-12T13:47:00Z")
    planning = Planning(story.config, story.registry, now=NOW)
    planning.state = crowded().state
    planning.run()
    found = explain(planning, "default/h")
    (step,) = (step for step in found.steps if step.ok is False)
    assert step.name == "patience"
    assert step.text == (
        "nobody is evicted before 1970-01-12T13:47:00Z: the slowest of 1 victims takes 130 s to end, "
        "and room may turn up meanwhile"
    )
