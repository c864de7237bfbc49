"""Idle room is used, not reserved, where actions that evict come before allocate: in default mode, as users run it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.session.session import Session
from stromboli.kube.transport import Request
from stromboli.model.job import Job
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.subjobs import SubJob
from stromboli.narration.observe import Counting
from stromboli.plugin import Plugin, hyper_node_gradient_for_job, hyper_node_gradient_for_sub_job
from stromboli.preemption.idle_room import IdleRoom
from stromboli.sim.runner import run_scenario
from stromboli.testing.builders import hyper_node, node, pod, pod_group, queue
from tests.acceptance.bench import binds, conf
from tests.acceptance.fights import evicted, reserved, running, waiting
from tests.acceptance.stories import TIERS, Story, ending, held_on
from tests.support.live_world import LiveWorld, gang
from tests.support.virtual import run

QUEUES = [queue("q1"), queue("q2", weight=3)]
EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
EARLY = {action: conf(*TIERS, actions=f"{action}, allocate, backfill") for action in EVICTING}


class Racks(Plugin):
    """Offers each rack by itself."""

    name = "racks"

    def on_session_open(self, session: ClusterView) -> None:
        self.racks = [session.hyper_nodes[name] for name in ("r1", "r2")]

    @hyper_node_gradient_for_job
    def offer(self, _job: Job, _hyper_node: HyperNodeInfo, _purpose: str) -> list[list[HyperNodeInfo]]:
        return [[rack] for rack in self.racks]

    @hyper_node_gradient_for_sub_job
    def stay(self, _sub_job: SubJob, hyper_node: HyperNodeInfo, _purpose: str) -> list[list[HyperNodeInfo]]:
        return [[hyper_node]]


def home(action: str) -> str:
    """The queue of the pods that the action evicts for a job of q2."""
    return "q2" if action.endswith("preempt") else "q1"


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("action", EVICTING)
def test_a_gang_for_which_there_is_idle_room_is_bound_in_the_same_cycle_without_evictions(action: str, gate: bool):
    crowd = running("a", 4, "n1", queue=home(action)), waiting("h", 2, queue="q2")
    story = Story(QUEUES, *crowd, text=EARLY[action], nodes=2, gate=gate)
    plan = story.cycle()
    assert binds(plan) == {"h-0": "n2", "h-1": "n2"}
    assert (evicted(plan), reserved(plan), plan.annotations) == ([], {}, [])


@pytest.mark.parametrize("action", EVICTING)
def test_a_job_that_comes_later_does_not_count_on_room_that_is_left_for_another(action: str):
    crowd = running("a", 4, "n1", queue=home(action)), waiting("h", 4, queue="q2"), waiting("k", 1, queue="q2")
    plan = Story(QUEUES, *crowd, text=EARLY[action], nodes=2).cycle()
    assert set(binds(plan)) == {"h-0", "h-1", "h-2", "h-3"}
    assert (len(evicted(plan)), reserved(plan)) == (1, {"k-0": "n1"})


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_idle_room_is_reserved_for_a_gang_that_cannot_run_without_an_eviction(action: str):
    """A gang is held whole: if its part of the idle room were lost, the eviction would have been in vain."""
    crowd = running("a", 4, "n1", queue=home(action)), waiting("h", 5, queue="q2")
    story = Story(QUEUES, *crowd, text=EARLY[action], nodes=2)
    plan = story.cycle()
    assert (binds(plan), len(evicted(plan)), len(reserved(plan))) == ({}, 1, 5)
    story.gone(*evicted(plan))
    assert set(binds(story.cycle())) >= {f"h-{i}" for i in range(5)}


def test_without_a_plugin_that_keeps_gangs_together_what_has_room_is_bound_and_the_rest_evicts():
    tier = "[{name: conformance}, {name: gang, enableJobReady: false, enableJobPipelined: false}, {name: priority}]"
    text = conf(tier, "predicates proportion", actions="preempt, allocate")
    story = Story(running("a", 4), running("b", 3, "n2"), waiting("h", 2), text=text, nodes=2)
    plan = story.cycle()
    assert (binds(plan), len(evicted(plan)), len(reserved(plan))) == ({"h-0": "n2"}, 1, 1)


def test_what_asks_for_nothing_is_left_to_backfill():
    crowd = running("a", 4), waiting("h", 1, cpu=0, least=1)
    plan = Story(*crowd, text=EARLY["preempt"]).cycle()
    assert (binds(plan), evicted(plan), reserved(plan)) == ({"h-0": "n1"}, [], {})


def test_within_a_job_a_task_that_has_idle_room_takes_nothing_from_others_and_holds_nothing():
    own = [
        pod_group("h", min_member=4, phase="Running", priorityClassName="high"),
        *(pod(f"h-{i}", group="h", cpu=1, memory=0, priority=1, on="n1") for i in range(2)),
        *(pod(f"h-{i}", group="h", cpu=1, memory=0, priority=10) for i in (2, 3)),
    ]
    text = conf("conformance priority", "predicates", "[{name: gang, enablePreemptable: false}]", actions="preempt")
    for actions in ("preempt, allocate", "allocate, preempt"):
        story = Story(own, text=text.replace('preempt"', f'{actions}"'), nodes=2, cpu=2)
        story.tell(node("n2", cpu=1))
        plan = story.cycle()
        assert (evicted(plan), reserved(plan)) == (["h-1"], {"h-3": "n1"})


def test_after_allocate_idle_room_is_not_reserved_either():
    """Allocate gives q1 nothing, which has all it may; then a pod of it goes for k, and h may take idle room."""
    queues = [queue("q1", deserved={"cpu": 3}, capability={"cpu": 3}), queue("q2", deserved={"cpu": 2})]
    crowd = running("a", 2, queue="q1", cpu=2), waiting("h", 1, queue="q1"), waiting("k", 1, queue="q2", cpu=2)
    for gate in (True, False):
        text = conf(TIERS[0], "predicates capacity", actions="allocate, reclaim")
        story = Story(queues, *crowd, text=text, nodes=2, gate=gate)
        story.tell(node("n2", cpu=1))
        plan = story.cycle()
        assert (len(evicted(plan)), reserved(plan), binds(plan)) == (1, {"k-0": "n1"}, {})
        assert binds(story.cycle()) == {"h-0": "n2"}


def test_idle_room_is_not_reserved_for_a_gang_whose_victims_are_spared():
    """As above; h could take from q3, but needs no room of other jobs."""
    queues = [queue("q1", deserved={"cpu": 3}, capability={"cpu": 3}), queue("q2", deserved={"cpu": 2}), queue("q3")]
    crowd = running("a", 2, queue="q1", cpu=2), waiting("h", 1, queue="q1"), waiting("k", 1, queue="q2", cpu=2)
    text = conf(TIERS[0], "predicates capacity", actions="allocate, gangreclaim")
    story = Story(queues, *crowd, running("c", 1, "n3", queue="q3"), text=text, nodes=3)
    story.tell(node("n2", cpu=1), node("n3", cpu=1))
    plan = story.cycle()
    assert (evicted(plan), reserved(plan), binds(plan)) == (["a-0"], {"k-0": "n1"}, {})
    assert binds(story.cycle()) == {"h-0": "n2"}


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_idle_room_that_a_lower_job_holds_is_claimed_and_used_in_the_same_cycle(action: str):
    """A victim of the lower job has left by now; another lower job keeps what is of no use to the higher one."""
    held = [
        (
            pod_group(name, priorityClassName="low"),
            pod(f"{name}-0", group=name, cpu=4, memory=0, annotations=held_on(on)),
        )
        for name, on in (("l", "n1"), ("m", "n2"))
    ]
    story = Story(*held, waiting("h", 1, cls="high", cpu=4), text=EARLY[action], nodes=1)
    story.tell(node("n2", cpu=4, labels={"zone": "b"}))
    plan = story.cycle()
    assert (evicted(plan), reserved(plan)) == ([], {})
    assert sorted(binds(plan).values()) == ["n1", "n2"]
    assert "h-0" in binds(plan)


HELD_BY_LOWER = (
    pod_group("l", priorityClassName="low"),
    pod("l-0", group="l", cpu=4, memory=0, annotations=held_on("n1")),
)


def test_a_ready_job_reserves_what_a_lower_job_holds_since_allocate_claims_nothing_for_it():
    """It would wait for ever if the room were left to allocate; the lower gang waits for a pod on n3."""
    tier = "[{name: priority}, {name: gang, enableJobStarving: false}, {name: conformance}]"
    gang_of_two = (
        pod_group("l", min_member=2, priorityClassName="low"),
        *(pod(f"l-{i}", group="l", cpu=4, memory=0, annotations=held_on(on)) for i, on in enumerate(("n1", "n3"))),
    )
    own = [
        pod_group("h", min_member=1, phase="Running", priorityClassName="high"),
        pod("h-0", group="h", cpu=4, memory=0, priority=10, on="n2"),
        pod("h-1", group="h", cpu=4, memory=0, priority=10),
    ]
    text = conf(tier, "drf predicates proportion nodeorder", actions="enqueue, preempt, allocate, backfill")
    story = Story(gang_of_two, own, ending("e", "n3"), text=text, nodes=3)
    assert reserved(story.cycle()) == {"h-1": "n1"}
    assert binds(story.cycle()) == {"h-1": "n1"}


def test_idle_room_of_a_lower_job_is_reserved_where_allocate_would_wait_for_a_terminating_pod_elsewhere():
    story = Story(HELD_BY_LOWER, ending("e", "n2"), waiting("h", 1, cls="high", cpu=4), text=EARLY["preempt"], nodes=2)
    assert reserved(story.cycle())["h-0"] == "n1"
    assert binds(story.cycle()) == {"h-0": "n1"}


@pytest.mark.parametrize("gate", [True, False])
def test_a_gang_that_evicts_because_its_queue_is_full_holds_idle_room_for_one_cycle(gate: bool):
    """Its victims make way in the share of the queue, not on their node, so it need not wait until they have left."""
    queues = [queue("q1", capability={"cpu": 2})]
    crowd = running("a", 2, "n1", queue="q1"), waiting("h", 2, queue="q1")
    story = Story(queues, *crowd, text=EARLY["gangpreempt"], nodes=2, cpu=2, gate=gate)
    plan = story.cycle()
    assert (evicted(plan), reserved(plan), binds(plan)) == (["a-0", "a-1"], {"h-0": "n2", "h-1": "n2"}, {})
    plan = story.cycle()
    assert (evicted(plan), binds(plan)) == ([], {"h-0": "n2", "h-1": "n2"})


@pytest.mark.parametrize(("close", "gone"), [("n2", 0), ("n1", 1)], ids=["in one rack", "in two"])
def test_idle_room_in_several_hypernodes_is_none_for_a_job_that_must_stay_in_one(close: str, gone: int):
    """As allocate sees it, which would not place the job there."""
    other = "n1" if close == "n2" else "n2"
    racks = [hyper_node("r1", 1, "n3", close), hyper_node("r2", 1, other)]
    topology = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    crowd = running("a", 4, "n1"), waiting("h", 2, group=topology)
    text = conf(TIERS[0], "predicates proportion racks", actions="gangpreempt, allocate")
    story = Story(racks, *crowd, text=text, nodes=3, extra=[Racks])
    story.tell(node("n2", cpu=1), node("n3", cpu=1))
    plan = story.cycle()
    assert (len(evicted(plan)), len(binds(plan))) == (gone, 0 if gone else 2)


def test_a_gang_takes_what_it_was_nominated_for_and_evicts_no_more_pods():
    """Without the gate only the nomination says for which job the room was made."""
    crowd = running("a", 4, "n1"), waiting("h", 2)
    story = Story(*crowd, text=EARLY["gangpreempt"], gate=False)
    first = story.cycle()
    assert len(evicted(first)) == 2
    story.gone(*evicted(first))
    second = story.cycle()
    assert (evicted(second), binds(second)) == ([], {"h-0": "n1", "h-1": "n1"})


def test_compat_mode_reserves_as_the_reference_does():
    crowd = running("a", 4, "n1", queue="q1"), waiting("h", 2, queue="q2")
    plan = Story(QUEUES, *crowd, text=EARLY["reclaim"], nodes=2, compat=True, gate=False).cycle()
    assert (len(evicted(plan)), len(reserved(plan))) == (2, 2)


def test_what_is_left_is_told_once_and_counted_once():
    crowd = running("a", 4, "n1", queue="q1"), waiting("h", 2, queue="q2")
    story = Story(QUEUES, *crowd, text=EARLY["reclaim"], nodes=2)
    story.cycle()
    told: dict[str, Any] = {key: story.told(key) for key in ("idle_room_left", "binding", "metric.e2e_job")}
    assert [fields["job"].name for fields in told["idle_room_left"]] == ["h"]
    assert len(told["binding"]) == 2
    assert sum(each.tasks for fields in told["metric.e2e_job"] for each in fields["placed"]) == 2


def test_a_try_that_is_taken_back_tells_nothing():
    """But that idle room is left, once; what the plugins, statements and placements say comes with allocate."""
    crowd = running("a", 4, "n1", queue="q1"), waiting("h", 2, queue="q2"), waiting("k", 9, queue="q2")
    story = Story(QUEUES, *crowd, text=EARLY["reclaim"], nodes=2)
    told = Counting()
    with story.open(observer=told) as session:
        session.to_come = ("allocate", "backfill")
        before = told.counts.copy()
        with IdleRoom(session) as idle:
            assert idle.serves(session.jobs["default/h"])
            assert not idle.serves(session.jobs["default/k"])
            assert not idle.takes((session.jobs["default/k"].tasks["default/k-8"], session.table.mask([0])))
        assert told.counts - before == {"idle_room_left": 1}
        assert told.counts["metric.e2e_job"] == 0


@pytest.mark.parametrize("action", EVICTING)
def test_why_a_node_is_refused_is_told_though_a_try_was_the_first_to_ask(action: str):
    """What all tasks of a kind are told is worked out once, so allocate would not tell it again."""
    crowd = running("a", 4, "n1", queue=home(action)), waiting("h", 2, queue="q2")
    story = Story(QUEUES, *crowd, text=EARLY[action], nodes=2)
    story.tell(node("full", cpu=9, pods=0))
    plan = story.cycle()
    assert binds(plan) == {"h-0": "n2", "h-1": "n2"}
    assert {fields["node"] for fields in story.told("predicate_pod_number")} == {"full"}


def test_room_is_left_to_all_of_some_tasks_or_to_none():
    story = Story(QUEUES, waiting("h", 1, queue="q2"), waiting("k", 1, queue="q2", cpu=9), text=EARLY["reclaim"])
    with story.open() as session, IdleRoom(session) as idle:
        small, large = (session.jobs[f"default/{name}"].tasks[f"default/{name}-0"] for name in "hk")
        assert not idle.takes((small, None), (large, None))
        assert (used(session), small.status.name) == (0, "Pending")
        assert idle.takes((small, None))
        assert (used(session), small.status.name) == (1000, "Allocated")


@pytest.mark.parametrize(("most", "takes"), [(2, True), (1, False)])
def test_idle_room_is_left_to_no_task_that_its_queue_may_not_have(most: int, takes: bool):
    queues = [queue("q1"), queue("q2", capability={"cpu": most})]
    story = Story(queues, running("a", 1, queue="q2"), waiting("h", 1, queue="q2"), text=EARLY["reclaim"])
    with story.open() as session, IdleRoom(session) as idle:
        assert idle.takes((session.jobs["default/h"].tasks["default/h-0"], None)) is takes
        assert used(session) == 1000 + 1000 * takes


@pytest.mark.parametrize(
    ("to_come", "gates", "status"),
    [
        pytest.param(("backfill",), [], "Allocated", id="backfill is to come"),
        pytest.param((), [], "Pending", id="backfill has been"),
        pytest.param(("backfill",), [{"name": "later"}], "Pending", id="it has a gate"),
    ],
)
def test_a_pod_that_asks_for_nothing_is_left_to_backfill_where_it_is_to_come(to_come: Any, gates: Any, status: str):
    job = [*running("h", 1, queue="q2", least=2, cls="high"),
           pod("h-1", group="h", cpu=0, memory=0, schedulingGates=gates)]  # fmt: skip
    with Story(QUEUES, job, text=EARLY["reclaim"]).open() as session:
        session.to_come = to_come
        with IdleRoom(session) as idle:
            served = idle.serves(session.jobs["default/h"])
            assert session.jobs["default/h"].tasks["default/h-1"].status.name == status
        assert served is (status == "Allocated")


def test_reservations_of_idle_room_alone_are_replaced():
    story = Story(QUEUES, waiting("h", 2, queue="q2"), text=EARLY["reclaim"])
    with story.open(observer=story.counts) as session, IdleRoom(session) as idle, session.statement() as statement:
        tasks = [*session.jobs["default/h"].tasks.values()]
        for task in tasks:
            statement.pipeline(task, "n1")
        assert idle.replaces(statement)
        assert [fields["job"] for fields in story.told("idle_room_left")] == [session.jobs["default/h"]]
        assert (statement.operations, [task.status.name for task in tasks]) == ([], ["Allocated"] * 2)


def test_reservations_stand_as_before_where_one_is_of_room_that_is_not_idle_yet():
    story = Story(QUEUES, ending("a", "n2"), waiting("h", 2, queue="q2"), text=EARLY["reclaim"], nodes=2)
    with story.open() as session, IdleRoom(session) as idle, session.statement() as statement:
        tasks = [*session.jobs["default/h"].tasks.values()]
        for task, name in zip(tasks, ("n1", "n2"), strict=True):
            statement.pipeline(task, name)
        assert not idle.replaces(statement)
        assert [(task.status.name, task.node_name) for task in tasks] == [("Pipelined", "n1"), ("Pipelined", "n2")]


def test_nothing_of_it_stands_when_the_action_has_ended_whatever_ends_it():
    story = Story(QUEUES, waiting("h", 2, queue="q2"), text=EARLY["reclaim"], nodes=1)
    with story.open() as session:
        session.to_come = ("allocate",)
        with pytest.raises(ZeroDivisionError):
            fail_once_served(session)
        assert used(session) == 0
        assert session.jobs["default/h"].ready_task_num() == 0


def fail_once_served(session: Session) -> None:
    with IdleRoom(session) as idle:
        assert idle.serves(session.jobs["default/h"])
        assert used(session) == 2000
        raise ZeroDivisionError


def used(session: Session) -> int:
    return int(session.table.used[0].sum())


# ---------------------------------------------------------------------- what is recorded of the reference

CASES = Path(__file__).parents[3] / "shared/cases"
NAMED = (
    "generated/pdb/005", "generated/reclaim/137", "generated/reclaim/143",
    (
        "unit/capacity/-capacityplugin-onsessionopenwithhierarchy-func1"
        "--case2-pod-allocatable-when-queue-has-not-exceed-capability"
    ),
)  # fmt: skip

if CASES.is_dir():

    @pytest.mark.parametrize("name", NAMED)
    def test_at_least_as_many_are_bound_as_by_the_reference_and_no_more_go(name: str) -> None:
        packed = CASES / f"{name}.json.gz"
        case = json.loads(
            gzip.decompress(packed.read_bytes()) if packed.exists() else packed.with_suffix("").read_bytes()
        )
        ours = run_scenario(json.dumps({**(case.get("scenario") or case), "name": name}))["outcome"]
        theirs = [entry["outcome"] for entry in case["oracle"]["outcomes"]]
        assert len(ours["binds"]) >= max(len(each["binds"]) for each in theirs)
        assert len(ours["evictions"]) <= min(len(each["evictions"]) for each in theirs)


# ---------------------------------------------------------------------- what it costs to write

RECLAIM_FIRST = """actions: "enqueue, reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def test_a_pod_that_has_room_costs_its_binding_and_no_patch_of_a_reservation(tmp_path: Path) -> None:
    """When such room was reserved first, these pods cost sixteen patches more to hold it and sixteen to let go."""

    async def story() -> Counter[str]:
        world = LiveWorld(nodes=4)
        gang(world.server, "work", 16)
        (tmp_path / "conf").write_text(RECLAIM_FIRST)
        scheduler = world.scheduler(str(tmp_path / "conf"))
        world.start(scheduler)
        await world.settled(scheduler)
        world.check(scheduler)
        await world.end()
        return Counter(kind(request) for request in world.server.requests)

    sent = run(story())
    assert {what: sent[what] for what in ("bind", "patch a pod")} == {"bind": 16, "patch a pod": 0}


def kind(request: Request) -> str:
    """What a request does, where that is to bind a pod or to patch one, its status left out."""
    path = request.path.partition("/pods/")[2]
    if request.method == "POST" and path.endswith("/binding"):
        return "bind"
    return "patch a pod" if request.method == "PATCH" and path and "/" not in path else ""


def test_a_try_that_failed_leaves_nothing_that_messages_would_speak_of():
    story = Story(waiting("h", 3), text=EARLY["reclaim"], cpu=1)
    with story.open() as session:
        session.to_come = ("allocate",)
        job = session.jobs["default/h"]
        with IdleRoom(session) as idle:
            assert not idle.serves(job)
        assert (job.fits, [task.last for task in job.tasks.values()]) == ({}, [None] * 3)
