"""Slow victims are not evicted at once: a job first waits for a part of the time that they would take to end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stromboli.cycle import run_cycle
from stromboli.framework.config.gates import PIPELINED_STATE, switched_on
from stromboli.model.codec import decode_snapshot, encode_snapshot
from stromboli.preemption import eviction_delay
from stromboli.sim.explanation.explain import explain
from stromboli.sim.planning import Planning
from stromboli.testing.builders import pod, pod_group, queue
from tests.acceptance.bench import NOW, conf
from tests.acceptance.fights import evicted, nominated, running, waiting
from tests.acceptance.stories import ALL, TIERS, Story

GRACE = 130
"""Of the victim: 100 s beyond the usual ones, of which half is waited for."""
WAITED = 50.0


def slow(name="a", on="n1", grace=GRACE, **fields):
    """A job whose one pod fills a node and takes so many seconds to end."""
    return running(name, 1, on, cpu=4, terminationGracePeriodSeconds=grace, **fields)


def crowded(*more, grace=GRACE, **fields):
    """A slow victim, and an important job in need of its node."""
    return Story(slow(grace=grace), waiting("h", 1, cpu=4), *more, **fields)


def half(rank=10, least=1):
    """An important job of two pods, one of which has a node."""
    return [
        pod_group("h", min_member=least, phase="Running", priorityClassName="high"),
        pod("h-0", group="h", cpu=4, memory=0, priority=rank, on="n2"),
        pod("h-1", group="h", cpu=4, memory=0, priority=10),
    ]


def goes(story, after=0.0):
    """The pods evicted so many seconds after the first cycle."""
    return evicted(story.cycle(now=NOW + after))


def with_patience(value):
    return f"{ALL}configurations: [{{name: preempt, arguments: {{patience: {value}}}}}]"


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_half_of_what_the_usual_grace_period_is_exceeded_by_is_waited_for(action):
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
    story = crowded(text=with_patience(0.9))
    assert [goes(story, after) for after in (0, 89, 90)] == [[], [], ["a-0"]]


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_the_bounds_of_what_is_a_part(value):
    assert eviction_delay.is_part(value) == ""


@pytest.mark.parametrize(
    ("options", "part", "noted"),
    [
        pytest.param({}, 0.5, 100, id="slow victims"),
        pytest.param({"grace": 30}, 0.5, None, id="usual ones"),
        pytest.param({}, 0.0, None, id="no part is waited for"),
        pytest.param({"compat": True}, 0.5, None, id="in the reference's way"),
    ],
)
def test_nothing_is_noted_of_a_job_that_does_not_wait(options, part, noted):
    with crowded(**options).open() as session, session.statement() as statement:
        job, book = session.jobs["default/h"], session.reservations
        delay = eviction_delay.EvictionDelay(session, part)
        statement.evict(next(iter(session.jobs["default/a"].tasks.values())), "test")
        assert delay.postpones(job, statement) is (noted is not None)
        assert delay.rests(job) is False
        delays = {} if book is None else book.delays
        assert {uid: (each.since, each.excess) for uid, each in delays.items()} == (
            {} if noted is None else {"default/h": (session.now, noted)}
        )


@pytest.mark.parametrize("value", [-1, 1.5, 1e300])
def test_what_is_no_part_is_refused_and_the_default_stays(value):
    story = crowded(text=with_patience(value))
    assert [goes(story), goes(story, WAITED)] == [[], ["a-0"]]


def test_an_eviction_is_delayed_no_longer_than_a_reservation_is_kept():
    """Else a pod that gives itself a year to end could not be evicted."""
    story = crowded(grace=2**63 - 1)
    assert [goes(story, after) for after in (0, 599, 600)] == [[], [], ["a-0"]]
    assert story.told("action_failed") == []


def test_a_job_that_has_its_minimum_waits_no_longer_than_any_other():
    tier = "[{name: conformance}, {name: gang, enableJobStarving: false}, {name: priority}]"
    text = conf(tier, "predicates proportion", actions="allocate, preempt")
    story = Story(slow(), half(), nodes=2, text=text)
    assert [goes(story, after) for after in (0, WAITED - 1, WAITED)] == [[], [], ["a-0"]]


def test_a_job_that_waits_evicts_none_of_its_own_less_important_pods():
    text = conf("conformance priority", "predicates proportion", actions="allocate, preempt")
    story = Story(slow(), half(rank=1, least=2), nodes=2, text=text)
    assert [goes(story, after) for after in (0, WAITED)] == [[], ["a-0"]]


def test_a_job_that_waits_in_one_action_evicts_none_of_its_own_pods_in_the_next():
    others = [slow(name, on, queue="q2") for name, on in (("a", "n1"), ("c", "n3"), ("d", "n4"))]
    own = half(rank=1, least=2)
    own[0]["spec"]["queue"] = "q1"
    text = conf("conformance priority", "predicates proportion", actions="allocate, reclaim, preempt")
    story = Story([queue("q1"), queue("q2")], own, *others, nodes=4, text=text)
    assert [goes(story, after) for after in (0, WAITED - 1, WAITED)] == [[], [], ["a-0"]]


def test_no_node_is_nominated_before_an_eviction():
    story = crowded()
    story.cycle()
    assert nominated(story.plan) == {}
    story.cycle(now=NOW + WAITED)
    assert nominated(story.plan) == {"h-0": "n1"}


def test_of_several_victims_the_slowest_counts():
    story = Story(slow("a", grace=30), slow("b", "n2"), waiting("h", 2, cpu=4), nodes=2)
    assert [goes(story), sorted(goes(story, WAITED))] == [[], ["a-0", "b-0"]]


def test_no_pod_is_evicted_once_room_turns_up_meanwhile():
    story = Story(slow(), slow("b", "n2"), waiting("h", 1, cpu=4), nodes=2)
    assert goes(story) == []
    story.gone("b-0")
    plan = story.cycle(now=NOW + WAITED)
    assert (evicted(plan), [(bind.key, bind.node) for bind in plan.binds]) == ([], [("default/h-0", "n2")])


def test_a_waiting_job_holds_nothing_and_costs_no_other_job_its_turn():
    """The one victim that ends sooner goes for the second job in the very cycle in which the first goes on waiting."""
    story = Story(slow(), slow("b", "n2", grace=30), waiting("h", 2, cpu=4), waiting("l", 1, cls="mid", cpu=4), nodes=2)
    assert goes(story) == ["b-0"]
    assert story.nodes_held() == {"l-0": "n2"}


def test_a_job_that_does_not_ask_for_a_while_has_not_begun_again():
    """The second cycle has no action that evicts."""
    story = crowded()
    assert goes(story) == []
    story.config, config = replace(story.config, actions=("allocate",)), story.config
    assert goes(story, 10) == []
    story.config = config
    assert goes(story, WAITED) == ["a-0"]


def test_a_restart_resets_the_wait():
    story = crowded()
    assert goes(story) == []
    story.restart()
    assert [goes(story, after) for after in (10, 59, 60)] == [[], [], ["a-0"]]


def test_a_clock_that_goes_back_resets_the_wait():
    story = crowded()
    assert [goes(story, after) for after in (0, -1000, -951, -950)] == [[], [], [], ["a-0"]]


def test_a_snapshot_that_was_written_and_read_again_knows_how_long_was_waited():
    story = crowded()
    story.cycle()
    again = decode_snapshot(encode_snapshot(story.snapshot()))
    plans = [run_cycle(again, story.config, story.registry, NOW + after) for after in (WAITED - 1, WAITED)]
    assert [evicted(plan) for plan in plans] == [[], ["a-0"]]


def test_nothing_is_remembered_of_jobs_that_are_gone():
    story = crowded()
    story.cycle()
    assert sorted(story.state.memory["stromboli/reservations"]) == ["asking default/h", "excess default/h"]
    story.tell(*waiting("h", 1, cpu=4), gone=True)
    story.cycle(now=NOW + 1)
    assert not story.state.memory["stromboli/reservations"]


def test_a_job_that_cannot_ask_for_a_while_has_not_begun_again():
    """Its pod is kept back by a gate in the second cycle."""
    story = crowded()
    story.cycle()
    story.tell(*waiting("h", 1, cpu=4, schedulingGates=[{"name": "wait"}]))
    assert goes(story, 10) == []
    story.tell(*waiting("h", 1, cpu=4))
    assert goes(story, WAITED) == ["a-0"]


def test_a_gate_that_was_off_for_a_while_changes_nothing_for_waiting_jobs():
    """Without it the victim would have gone in the second cycle; nothing is to be evicted then."""
    story = crowded()
    story.cycle()
    on, off = story.config, replace(story.config, actions=("allocate",), features=switched_on({PIPELINED_STATE: False}))
    story.config = off
    story.cycle(now=NOW + 10)
    story.config = on
    assert [goes(story, after) for after in (WAITED - 1, WAITED)] == [[], ["a-0"]]


def test_nothing_is_remembered_of_running_jobs():
    story = crowded()
    story.cycle()
    assert story.state.memory["stromboli/reservations"]
    story.gone("a-0")
    story.cycle(now=NOW + 1)
    story.cycle(now=NOW + 2)
    assert not story.state.memory["stromboli/reservations"]


def test_it_is_told_and_explained_until_when():
    story = crowded()
    story.cycle()
    (fields,) = story.told("eviction_postponed")
    assert (fields["victims"], fields["grace"], fields["until"]) == (1, GRACE, "1970-01-12T13:47:30Z")
    found = explained(crowded())
    (step,) = (step for step in found.steps if step.ok is False)
    assert step.name == "patience"
    assert step.text == (
        "waits until 1970-01-12T13:47:30Z at the latest: the slowest of 1 victims takes 130 s to end, "
        "and room may turn up meanwhile"
    )


def explained(story):
    """What is explained of job h."""
    planning = Planning(story.config, story.registry, now=NOW)
    planning.state = story.state
    planning.run()
    return explain(planning, "default/h")


def test_quicker_victims_of_another_action_go_and_are_explained():
    """preempt finds a slow one, reclaim one that isn't."""
    quick = [slow(name, on, grace=30, queue="q2") for name, on in (("b", "n2"), ("c", "n3"), ("d", "n4"))]
    crowd = [slow(queue="q1"), *quick, waiting("h", 1, cpu=4, queue="q1")]
    story = Story([queue("q1"), queue("q2")], *crowd, text=conf(*TIERS, actions="allocate, preempt, reclaim"), nodes=4)
    assert [(step.name, step.text) for step in explained(story).steps[-3:]] == [
        ("node", "1 of its pods could be placed"),
        ("pipelined", "1 wait for room, 0 run, 1 needed"),
        ("evicted", "1 evicted; waits for room on n2"),
    ]
    assert [goes(story), len(story.told("eviction_postponed"))] == [["b-0"], 1]


# ---------------------------------------------------------------------- very many waiting jobs


def many(count, **fields):
    """As many slow victims as important jobs that need their nodes."""
    crowd = [(slow(f"a{i}", f"n{i + 1}"), waiting(f"h{i}", 1, cpu=4)) for i in range(count)]
    return Story(*(each for pair in crowd for each in pair), nodes=count, **fields)


def test_of_very_many_waiting_jobs_some_look_for_quicker_victims(monkeypatch):
    monkeypatch.setattr(eviction_delay, "MAX_RECHECKS", 2)
    story = many(4, text=conf(*TIERS, actions="allocate, preempt"))
    assert [goes(story), len(story.told("eviction_postponed"))] == [[], 4]  # each waiting job has looked once
    assert [goes(story, 10), len(story.told("eviction_postponed"))] == [[], 4 + 2]
    assert [str(each["job"].name) for each in story.told("eviction_not_sought")] == ["h2", "h3"]
    assert len(goes(story, WAITED)) == 4


def test_a_job_that_skips_its_recheck_evicts_none_of_its_own_pods_either(monkeypatch):
    monkeypatch.setattr(eviction_delay, "MAX_RECHECKS", 0)
    text = conf("conformance priority", "predicates proportion", actions="allocate, preempt")
    story = Story(slow(), half(rank=1, least=2), nodes=2, text=text)
    assert [goes(story, after) for after in (0, 10, WAITED)] == [[], [], ["a-0"]]


def test_a_clock_that_goes_back_has_jobs_that_do_not_look_wait_again(monkeypatch):
    monkeypatch.setattr(eviction_delay, "MAX_RECHECKS", 0)
    story = crowded()
    assert [goes(story, after) for after in (0, -1000, -951, -950)] == [[], [], [], ["a-0"]]
    assert len(story.told("eviction_postponed")) == 1


@pytest.mark.parametrize(("value", "then"), [(0, ["a-0"]), (0.1, ["a-0"]), (0.9, [])])
def test_a_job_that_skips_its_recheck_waits_by_the_present_setting(monkeypatch, value, then):
    monkeypatch.setattr(eviction_delay, "MAX_RECHECKS", 0)
    story = crowded()
    story.cycle()
    story.config = crowded(text=with_patience(value)).config
    assert [goes(story, 10), len(story.told("eviction_postponed"))] == [then, 1]


@pytest.mark.parametrize("looks", [0, 1])
def test_of_two_actions_the_one_with_the_quicker_victims_says_for_how_long_no_job_looks(monkeypatch, looks):
    """preempt finds victims worth a wait of 50 s; reclaim, whether preempt rests or not, some worth one of 135 s."""
    monkeypatch.setattr(eviction_delay, "MAX_RECHECKS", looks)
    others = [slow(name, on, grace=300, queue="q2") for name, on in (("b", "n2"), ("c", "n3"), ("d", "n4"))]
    crowd = [slow(queue="q1"), *others, waiting("h", 1, cpu=4, queue="q1")]
    story = Story([queue("q1"), queue("q2")], *crowd, text=conf(*TIERS, actions="allocate, preempt, reclaim"), nodes=4)
    assert [goes(story, after) for after in (0, 10, WAITED - 1)] == [[], [], []]
    monkeypatch.setattr(eviction_delay, "MAX_RECHECKS", 0)
    assert goes(story, WAITED) == ["a-0"]


def test_it_is_explained_of_a_job_that_does_not_look(monkeypatch):
    monkeypatch.setattr(eviction_delay, "MAX_RECHECKS", 0)
    story = crowded()
    story.cycle()
    (step,) = (step for step in explained(story).steps if step.ok is False)
    assert step.name == "patience"
    assert step.text == (
        "waits until 1970-01-12T13:47:30Z at the latest: the victims that it found earlier are slow to end, "
        "and room may turn up meanwhile"
    )
