"""capacity from objects to decisions: shares by amount, trees, admission, what may be taken, moves only tried."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.books.cycle_state import CycleState
from stromboli.model.resources.resource import INFINITE, Resource
from stromboli.narration.observe import Counting
from stromboli.plugins.capacity import Capacity
from stromboli.testing.builders import node, pod_group, queue
from tests.acceptance.bench import GPU, Bench, binds, conf, messages, task_of
from tests.plugins.queue_jobs import TAKING, evicted, job, many

FLAT = conf("gang", "predicates capacity", actions="enqueue, allocate")


def tree(level=0, actions="enqueue, allocate", compat=False):
    """A configuration with queues below one another."""
    arguments = f", arguments: {{ancestorReclaimLevel: {level}}}" if level else ""
    capacity = f"{{name: capacity, enableHierarchy: true{arguments}}}"
    more = "compat: volcano" if compat else ""
    return conf(f"[{{name: gang}}, {{name: predicates}}, {capacity}]", actions=actions, more=more)


def root(**fields):
    return queue("root", **fields)


def bound(*objects, text=FLAT, **options):
    """How many pods of each queue are bound."""
    bench = Bench([*objects], text, **options)
    plan = bench.cycle()
    found: dict[str, int] = {}
    for bind in plan.binds:
        name = bench.state.jobs[bind.job].queue
        found[name] = found.get(name, 0) + 1
    return found


def figures(text, *objects):
    """Of each queue the cpu of every figure, in cores; None where there is no limit."""
    with Bench([*objects], text).open() as session:
        found: dict[str, dict[str, Any]] = {}
        for name, info in session.queues.items():
            amounts = {k: v for k, v in info.figures.items() if isinstance(v, Resource)}
            found[name] = {k: None if v.milli_cpu >= INFINITE else v.milli_cpu / 1000 for k, v in amounts.items()}
            found[name]["share"] = info.figures.get("share")
        return found


# ---------------------------------------------------------------------- amounts


@pytest.mark.parametrize(
    ("spec", "deserved", "limit"),
    [
        pytest.param({}, 0, 20, id="nothing-written"),
        pytest.param({"deserved": {"cpu": 6}}, 6, 20, id="as-written"),
        pytest.param({"deserved": {"cpu": 6}, "capability": {"cpu": 4}}, 4, 4, id="cut-by-capability"),
        pytest.param({"deserved": {"cpu": 60}}, 20, 20, id="cut-by-what-others-are-guaranteed"),
        pytest.param({"deserved": {"cpu": 2}, "guarantee": {"resource": {"cpu": 5}}}, 5, 20, id="at-least-guaranteed"),
        pytest.param({"capability": {"cpu": 0, "memory": "1Gi"}}, 0, 20, id="cpu-of-0-is-no-limit"),
    ],
)
def test_amounts_of_a_queue_by_itself(spec, deserved, limit):
    other = queue("other", guarantee={"resource": {"cpu": 10}})
    found = figures(FLAT, node("n1", cpu=30), queue("q", **spec), other, *job("j", "q"))["q"]
    assert (found["deserved"], found["realCapability"]) == (deserved, limit)


def test_amounts_in_a_tree():
    """Worked example: A has 60 and guarantees A1 10; A2 may have 30."""
    found = figures(
        tree(), root(), queue("A", capability={"cpu": 60}, guarantee={"resource": {"cpu": 20}}),
        queue("A1", parent="A", guarantee={"resource": {"cpu": 10}}),
        queue("A2", parent="A", capability={"cpu": 30}), queue("open"),
    )  # fmt: skip
    limits = {name: one["realCapability"] for name, one in found.items()}
    assert limits == {"root": None, "A": 60, "A1": 60, "A2": 30, "open": None, "default": None}
    assert found["A1"]["capability"] == 60  # inherited
    assert [found["root"][name] for name in ("guarantee", "deserved")] == [20, 20]


def test_a_queue_above_others_counts_what_is_below_it():
    objects = [node("n1", cpu=9), root(), queue("A", deserved={"cpu": 8}), queue("A1", parent="A"),
               queue("A2", parent="A"), *job("j", "A1", 3, running=2), *job("k", "A2", 1, running=1)]  # fmt: skip
    found = figures(tree(), *objects)
    assert [found[name]["allocated"] for name in ("A1", "A2", "A", "root")] == [2, 1, 3, 3]
    assert found["A"]["request"] == 4
    assert found["A"]["share"] == 3 / 8


def test_what_is_above_keeps_up_with_placements():
    objects = [node("n1", cpu=9), root(), queue("A"), queue("A1", parent="A"), *job("j", "A1", 3, running=1)]
    with Bench(objects, tree()).open() as session:
        with session.statement() as statement:
            statement.allocate(task_of(session, "j-1"), session.nodes["n1"])
            assert session.queues["A"].branch[0] == session.queues["root"].branch[0] == 2000
            statement.evict(task_of(session, "j-0"), "test")
            assert session.queues["A"].branch[0] == 1000
            statement.discard()
        assert session.queues["A"].branch[0] == session.queues["A1"].branch[0] == 1000


# ---------------------------------------------------------------------- placing


def test_a_queue_may_have_more_than_it_deserves_up_to_its_capability():
    queues = [queue("q", deserved={"cpu": 1}, capability={"cpu": 3})]
    assert bound(node("n1", cpu=9), *queues, *job("j", "q", 5)) == {"q": 3}


def test_only_what_is_asked_for_is_compared():
    full = [queue("q", capability={"memory": "1Gi"}), *job("old", "q", 1, running=1, requests={"memory": "2Gi"})]
    assert bound(node("n1", cpu=9), *full, *job("j", "q", 2)) == {"q": 2}


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown"])
def test_a_queue_that_is_not_open_gets_nothing(state):
    assert bound(node("n1"), queue("q", state=state), *job("j", "q")) == {}


def test_every_queue_above_must_have_room():
    queues = [root(), queue("A", capability={"cpu": 3}), queue("A1", parent="A"), queue("A2", parent="A")]
    found = bound(node("n1", cpu=9), *queues, *job("j", "A1", 4), *job("k", "A2", 4), text=tree())
    assert sum(found.values()) == 3


@pytest.mark.parametrize(
    ("compat", "expected"), [pytest.param(False, {"A": 4, "B": 4}, id="S4-23"), pytest.param(True, 4, id="compat")]
)
def test_S4_23_the_limit_of_root_is_inherited_and_not_enforced(compat, expected):
    """root 4; A and B inherit 4 each and run 8 together; a limit of a queue below root holds."""
    queues = [root(capability={"cpu": 4}), queue("A"), queue("B")]
    jobs = [*job("j", "A", 6), *job("k", "B", 6)]
    found = bound(node("n1", cpu=20), *queues, *jobs, text=tree(compat=compat), compat=compat)
    assert found == expected if not compat else sum(found.values()) == expected
    lower = [root(capability={"cpu": 4}), queue("A", capability={"cpu": 2})]
    assert bound(node("n1", cpu=20), *lower, *job("j", "A", 6), text=tree(compat=compat), compat=compat) == {"A": 2}


@pytest.mark.parametrize(("limit", "expected"), [({}, {"a", "b"}), ({"capability": {"cpu": 2}}, set())])
def test_S4_23_root_limits_no_admission_and_other_queues_do(limit, expected):
    queues = [root(capability={"cpu": 4}), *(queue(name, **limit) for name in "AB")]
    assert entering(node("n1", cpu=20), *queues, asking("a", "A", 4), asking("b", "B", 4), text=tree())[0] == expected


@pytest.mark.parametrize(("limit", "expected"), [({}, True), ({"capability": {"cpu": 0.5}}, False)])
def test_S4_23_root_limits_nothing_that_is_tried_and_other_queues_do(limit, expected):
    """A holds all that root may have."""
    queues = [root(capability={"cpu": 4}), queue("A"), queue("B", **limit)]
    objects = [node("n1", cpu=20), *queues, *job("a", "A", 4, running=4), *job("b", "B")]
    with Bench(objects, tree()).open() as session:
        waiting, where = task_of(session, "b-0"), session.queues["B"]
        assert session.ask.simulate_allocatable(CycleState(), where, waiting) is expected


@pytest.mark.parametrize("text", [FLAT, tree()])
def test_S4_21_what_a_queue_leaves_out_does_not_limit_it(text):
    """A queue without GPU figures in a cluster with GPUs: its cpu pods run, and so does one with a GPU."""
    objects = [node("n1", cpu=9, resources={GPU: 4}), root(), queue("q", capability={"cpu": 8}, deserved={"cpu": 4})]
    jobs = [*job("cpu", "q", 2), *job("gpu", "q", 1, requests={GPU: 1})]
    assert bound(*objects, *jobs, text=text) == {"q": 3}


@pytest.mark.parametrize("text", [FLAT, tree()])
def test_S4_22_a_written_0_limits(text):
    objects = [node("n1", cpu=9, resources={GPU: 4}), root(), queue("q", capability={"cpu": 8, GPU: 0})]
    jobs = [*job("cpu", "q", 2), *job("gpu", "q", 1, requests={GPU: 1})]
    assert bound(*objects, *jobs, text=text) == {"q": 2}


def test_many_placements_at_once_are_those_of_one_by_one():
    objects = [node(f"n{i}", cpu=7) for i in range(3)]
    queues = [root(), queue("A", capability={"cpu": 13}), queue("A1", parent="A", capability={"cpu": 9})]
    assert bound(*objects, *queues, *job("j", "A1", 20), text=tree()) == {"A1": 9}
    assert bound(*objects, *queues, *job("j", "A1", 5), *job("k", "A1", 20, cpu="500m"), text=tree()) == {"A1": 13}


# ---------------------------------------------------------------------- the order of queues


def placed_first(text, *objects):
    return Bench([*objects], text).cycle().binds[0].job.partition("/")[2]


def test_priority_then_share_then_deserved():
    jobs = [*job("r", "rich", 4, running=3), *job("p", "poor", 4, running=1)]
    both: dict[str, Any] = {"deserved": {"cpu": 4}}
    plain = [node("n1", cpu=9), queue("rich", **both), queue("poor", **both)]
    assert placed_first(FLAT, *plain, *jobs) == "p"
    ranked = [node("n1", cpu=9), queue("rich", priority=1, **both), queue("poor", **both)]
    assert placed_first(FLAT, *ranked, *jobs) == "r"
    even = [node("n1", cpu=9), queue("rich"), queue("poor", deserved={"cpu": 1})]  # shares of 1 both
    assert placed_first(FLAT, *even, *jobs) == "p"


def test_in_a_tree_the_queues_below_the_last_common_one_are_compared():
    """A1 has less than B1, yet its parent A has a greater part of what it deserves than B."""
    four: dict[str, Any] = {"deserved": {"cpu": 4}}
    queues = [root(), queue("A", **four), queue("B", **four), queue("A1", parent="A", **four),
              queue("A2", parent="A", **four), queue("B1", parent="B", **four)]  # fmt: skip
    jobs = [*job("a1", "A1", 1), *job("a2", "A2", 3, running=3), *job("b1", "B1", 2, running=1)]
    assert placed_first(tree(), node("n1", cpu=9), *queues, *jobs) == "b1"


def test_victims_of_the_nearest_queue_go_first():
    queues = [root(), queue("A"), queue("A1", parent="A"), queue("A2", parent="A"), queue("B")]
    with Bench([node("n1"), *queues], tree()).open() as session:
        near, far, own = (session.queues[name] for name in ("A2", "B", "A1"))
        assert session.ask.victim_queue_order(near, far, own) < 0 < session.ask.victim_queue_order(far, near, own)


# ---------------------------------------------------------------------- admission


def entering(*objects, text=FLAT):
    bench = Bench([*objects], text)
    plan = bench.cycle()
    return {u.key.partition("/")[2] for u in plan.pod_groups if u.phase == "Inqueue"} | set(binds(plan)), plan


def asking(name, queue_, cpu, **fields):
    return pod_group(name, queue=queue_, phase="Pending", minResources={"cpu": cpu}, **fields)


@pytest.mark.parametrize(("cpu", "enters"), [(3, True), (4, False)])
def test_minimums_must_fit_with_what_is_held_and_admitted(cpu, enters):
    """10; 6 held, 2 admitted, 1 beyond minimums: 3 fit."""
    q = queue("q", capability={"cpu": 10})
    old = job("old", "q", 6, running=6, minResources={"cpu": 5})
    held = [*old, pod_group("in", queue="q", minResources={"cpu": 2})]
    found, plan = entering(node("n1", cpu=40), q, *held, asking("g", "q", cpu, created=9))
    assert ("g" in found) is enters
    refusals = [text for text in messages(plan, "default/g") if text.startswith("queue resource quota")]
    assert refusals == ([] if enters else ["queue resource quota insufficient: insufficient cpu"])


def test_admission_looks_at_all_queues_above_and_counts_there():
    queues = [root(), queue("A", capability={"cpu": 5}), queue("A1", parent="A"), queue("A2", parent="A")]
    asked = [asking("g", "A1", 3, created=1), asking("h", "A2", 3, created=2), asking("i", "A2", 2, created=3)]
    assert entering(node("n1", cpu=40), *queues, *asked, text=tree())[0] == {"g", "i"}


def test_without_minimum_every_job_enters_an_open_leaf():
    queues = [root(), queue("A"), queue("A1", parent="A"), queue("shut", state="Closed")]
    groups = [pod_group(f"g-{name}", queue=name, phase="Pending", minResources={}) for name in ("A1", "shut")]
    assert entering(node("n1"), *queues, *groups, text=tree())[0] == {"g-A1"}


# ---------------------------------------------------------------------- queues that cannot be used

CIRCLE = [queue("x", parent="y"), queue("y", parent="x")]


@pytest.mark.parametrize(
    ("bad", "names", "text"),
    [
        pytest.param([queue("x", parent="gone")], ["x"], "the queue x has invalid parent queue gone", id="parent"),
        pytest.param(
            [queue("x", parent="gone"), queue("z", parent="x")], ["x", "z"],
            "the queue x has invalid parent queue gone", id="below-it",
        ),
        pytest.param(CIRCLE, ["x", "y"], "cycle detected in queue hierarchy for queue x", id="circle"),
        pytest.param(
            [queue("x", guarantee={"resource": {"cpu": 1}}),
             queue("z", parent="x", guarantee={"resource": {"cpu": 2}})], ["x", "z"],
            "guarantee of the children of queue x is beyond its own in cpu", id="sums",
        ),
    ],
)  # fmt: skip
def test_a_bad_queue_takes_out_its_own_subtree_and_no_other_queue(bad, names, text):
    """Each with a reason; in compat mode nothing at all is scheduled, sums aside."""
    good = [node("n1", cpu=9), root(), queue("ok"), *job("fine", "ok", 2)]
    jobs = [each for name in names for each in job(f"j-{name}", name)]
    bench = Bench([*good, *bad, *jobs], tree())
    plan = bench.cycle()
    assert {bind.job for bind in plan.binds} == {"default/fine"}
    assert {event.key: event.message for event in plan.events if event.kind == "Queue"} == dict.fromkeys(names, text)
    assert [line for line in plan.inconsistencies if text in line]
    if "sums" not in text and "guarantee" not in text:
        assert bound(*good, *bad, *jobs, text=tree(compat=True), compat=True) == {}


def test_a_job_in_a_queue_with_others_below_it_waits_alone():
    objects = [node("n1", cpu=9), root(), queue("A"), queue("A1", parent="A"), queue("B"),
               *job("inner", "A"), *job("leaf", "A1"), *job("other", "B")]  # fmt: skip
    assert bound(*objects, text=tree()) == {"A1": 1, "B": 1}
    assert bound(*objects, text=tree(compat=True), compat=True) == {}


def test_without_a_root_nothing_is_placed():
    assert bound(node("n1", cpu=9), queue("A"), *job("j", "A"), text=tree()) == {}


# ---------------------------------------------------------------------- taking back


def test_worked_example_of_reclaim():
    """8 cores; q1 deserves 2 and has all 8; q2 deserves 6 and asks for 8: it gets 6."""
    queues = [queue("q1", deserved={"cpu": 2}), queue("q2", deserved={"cpu": 6})]
    asks = [each for i in range(8) for each in job(f"new-{i}", "q2", created=i + 1)]
    assert len(evicted(node("n1", cpu=8), *queues, *many(8, "q1"), *asks)) == 6


@pytest.mark.parametrize(
    ("mine", "theirs", "victims"),
    [
        pytest.param({"deserved": {"cpu": 2}}, {"deserved": {"cpu": 4}}, 0, id="within-what-it-deserves"),
        pytest.param({"deserved": {"cpu": 2}}, {"deserved": {"cpu": 3}}, 1, id="beyond"),
        pytest.param({"deserved": {"cpu": 2}}, {}, 2, id="deserves-nothing"),
        pytest.param({"deserved": {"cpu": 2}}, {"guarantee": {"resource": {"cpu": 3}}}, 1, id="guaranteed"),
        pytest.param({}, {"deserved": {"cpu": 1}}, 0, id="a-queue-that-deserves-nothing-takes-nothing"),
        pytest.param({"deserved": {"cpu": 2}, "capability": {"cpu": 1}}, {}, 1, id="not-beyond-its-limit"),
        pytest.param({"deserved": {"memory": "1Gi"}}, {}, 0, id="not-for-what-it-does-not-deserve"),
        pytest.param({"deserved": {"cpu": 2}, "state": "Closed"}, {}, 0, id="not-open"),
        pytest.param({"deserved": {"cpu": 2}}, {"reclaimable": False}, 0, id="others-keep-it"),
        pytest.param({"deserved": {"cpu": 2}}, {"deserved": {"cpu": 0}}, 2, id="a-written-0"),
        pytest.param({"deserved": {"cpu": 2}}, {"deserved": {"cpu": 4, GPU: 1}}, 0, id="what-no-job-asks-for"),
    ],
)  # fmt: skip
def test_which_queues_give_and_which_take(mine, theirs, victims):
    """Four jobs run in the other queue; two pods ask."""
    queues = [queue("mine", **mine), queue("theirs", **theirs)]
    asks = [each for i in range(2) for each in job(f"new-{i}", "mine")]
    assert len(evicted(node("n1", cpu=4, resources={GPU: 2}), *queues, *many(4, "theirs"), *asks)) == victims


@pytest.mark.parametrize(
    ("deserved", "victims"), [({"cpu": 4}, 0), ({GPU: 4}, 0), ({"cpu": 4, GPU: 0}, 2), ({"cpu": 0, GPU: 4}, 2)]
)
def test_S4_21_S4_22_no_excess_of_what_is_left_out_and_any_of_a_written_0(deserved, victims):
    """Four jobs with a core and a GPU each run in the other queue."""
    queues = [queue("mine", deserved={"cpu": 2}), queue("theirs", deserved=deserved)]
    asks = [each for i in range(2) for each in job(f"new-{i}", "mine")]
    theirs = many(4, "theirs", requests={GPU: 1})
    assert len(evicted(node("n1", cpu=4, resources={GPU: 4}), *queues, *theirs, *asks)) == victims


def test_nothing_in_common_nothing_taken():
    queues = [queue("mine", deserved={GPU: 2}), queue("theirs")]
    objects = [node("n1", cpu=4, resources={GPU: 1}), *queues, *many(4, "theirs")]
    ask = job("new", "mine", cpu=0, requests={GPU: 2})
    with Bench([*objects, *ask], TAKING).open() as session:
        candidates = [task_of(session, f"theirs-{i}-0") for i in range(4)]
        assert session.ask.reclaimable(task_of(session, "new-0"), candidates) == []


FAMILY = [root(), queue("A", deserved={"cpu": 4}), queue("B", deserved={"cpu": 4}), queue("A1", parent="A"),
          queue("A2", parent="A", deserved={"cpu": 1}), queue("B1", parent="B", deserved={"cpu": 2})]  # fmt: skip


@pytest.mark.parametrize(
    ("level", "queue_", "others", "victims"),
    [
        pytest.param(0, "B1", {"A1": 4}, 1, id="leaf-alone"),
        pytest.param(1, "B1", {"A1": 4}, 0, id="its-parent-has-no-more-than-it-deserves"),
        pytest.param(1, "B1", {"A1": 3, "A2": 2}, 1, id="its-parent-has"),
        pytest.param(0, "A1", {"A2": 4}, 0, id="deserves-nothing-itself"),
        pytest.param(1, "A1", {"A2": 3}, 1, id="its-parent-deserves-it"),
    ],
)
def test_levels_of_the_tree_that_count(level, queue_, others, victims):
    running = [each for name, count in others.items() for each in many(count, name)]
    cores = sum(others.values())
    found = evicted(node("n1", cpu=cores), *FAMILY, *running, *job("new", queue_), text=tree(level, "reclaim"))
    assert len(found) == victims


@pytest.mark.parametrize("bad", [[], [queue("x", parent="gone")], job("g", "A", phase="Pending")])
def test_in_compat_mode_a_bad_queue_keeps_all_queues_from_taking_back(bad):
    objects = [node("n1", cpu=4), *FAMILY, *many(4, "A1"), *job("new", "B1"), *bad]
    assert len(evicted(*objects, text=tree(0, "reclaim", compat=True), compat=True)) == (0 if bad else 1)


@pytest.mark.parametrize(("level", "victims"), [(0, 1), (1, 1), (2, 0), (9, 0)])
def test_two_levels_up_the_queues_count_too(level, victims):
    """C holds 3 and deserves 1, as does the parent; only A, above both, has no more than it deserves."""
    deep = [root(), queue("A", deserved={"cpu": 3}), queue("B", deserved={"cpu": 1}),
            queue("AA", parent="A", deserved={"cpu": 1}), queue("C", parent="AA", deserved={"cpu": 1}),
            queue("BB", parent="B", deserved={"cpu": 1}), queue("D", parent="BB", deserved={"cpu": 1})]  # fmt: skip
    objects = [node("n1", cpu=3), *deep, *many(3, "C"), *job("new", "D")]
    assert len(evicted(*objects, text=tree(level, "reclaim"))) == victims


def test_siblings_that_deserve_nothing_leave_each_other_alone():
    queues = [root(), queue("A", deserved={"cpu": 9}), queue("A1", parent="A"), queue("A2", parent="A")]
    for level in (0, 1):
        text = tree(level, "reclaim")
        assert evicted(node("n1", cpu=3), *queues, *many(3, "A2"), *job("new", "A1"), text=text) == []


@pytest.mark.parametrize(
    ("theirs", "key"),
    [
        pytest.param({"deserved": {"cpu": 2}}, "capacity_spared_deserved", id="deserved"),
        pytest.param({"guarantee": {"resource": {"cpu": 2}}}, "capacity_spared_guarantee", id="guaranteed"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_why_a_candidate_is_spared(theirs, key):
    observer = Counting(("capacity_spared_deserved", "capacity_spared_guarantee", "capacity_spared_family"))
    queues = [queue("mine", deserved={"cpu": 2}), queue("theirs", **theirs)]
    bench = Bench([node("n1"), *queues, *many(2, "theirs"), *job("new", "mine")], conf("capacity"))
    with bench.open(observer) as session:
        candidates = [task_of(session, f"theirs-{i}-0") for i in range(2)]
        assert len(session.ask.reclaimable(task_of(session, "new-0"), candidates)) == (0 if key else 2)
    assert observer.counts == ({key: 2} if key else {})


@pytest.mark.parametrize(
    ("mine", "key", "limit"),
    [
        ({"capability": {"cpu": 2}, "deserved": {"cpu": 9}}, "capacity_above_capability", "real_capability"),
        ({"deserved": {"cpu": 1}}, "capacity_above_deserved", "deserved"),
        ({"deserved": {"cpu": 3}}, "", ""),
    ],
)
def test_why_a_queue_may_not_take_back_so_much_is_told(mine, key, limit):
    """It holds one core and asks for two."""
    observer = Counting(("capacity_above_capability", "capacity_above_deserved"))
    objects = [node("n1"), queue("mine", **mine), *job("old", "mine", running=1), *job("new", "mine", 2)]
    with Bench(objects, conf("capacity")).open(observer) as session:
        asks = [task_of(session, f"new-{i}") for i in range(2)]
        assert session.ask.preemptive(session.queues["mine"], asks) is not bool(key)
    assert observer.counts == ({key: 1} if key else {})
    told: list[dict[str, Any]] = [fields for _, fields in observer.told]
    assert [(fields["queue"], fields["future_used"].milli_cpu) for fields in told] == [("mine", 3000)] * bool(key)
    assert all(fields[limit].milli_cpu < 3000 for fields in told)


def test_the_victims_that_a_queue_may_take_are_logged():
    observer = Counting(("capacity_victims",))
    objects = [node("n1"), queue("mine", deserved={"cpu": 2}), queue("theirs"), *many(2, "theirs"), *job("new", "mine")]
    with Bench(objects, conf("capacity")).open(observer) as session:
        session.ask.reclaimable(task_of(session, "new-0"), [task_of(session, f"theirs-{i}-0") for i in range(2)])
    ((_, fields),) = observer.told
    assert fields == {"victims": ["default/theirs-1-0", "default/theirs-0-0"], "task": "default/new-0"}


@pytest.mark.parametrize("bad", [False, True])
def test_in_compat_mode_a_bad_queue_protects_all_pods_from_gangs(bad):
    class Context:
        kind = "GangReclaim"

    more = [queue("x", parent="gone")] if bad else []
    with Bench([node("n1"), *FAMILY, *many(2, "A1"), *more], tree(compat=True), compat=True).open() as session:
        candidates = [task_of(session, f"A1-{i}-0") for i in range(2)]
        assert session.ask.unified_evictable(Context(), candidates) == ([] if bad else candidates)


def test_relatives_that_deserve_nothing_say_so():
    observer = Counting(("capacity_spared_family",))
    queues = [root(), queue("A"), queue("A1", parent="A"), queue("A2", parent="A")]
    with Bench([node("n1"), *queues, *many(1, "A2"), *job("new", "A1")], tree(1)).open(observer) as session:
        assert session.ask.reclaimable(task_of(session, "new-0"), [task_of(session, "A2-0-0")]) == []
    assert observer.counts == {"capacity_spared_family": 1}


def test_a_gang_takes_what_is_beyond_whatever_it_asks_for():
    class Context:
        kind = "GangReclaim"

    queues = [queue("mine", deserved={"cpu": 2}), queue("theirs", deserved={"cpu": 1})]
    with Bench([node("n1"), *queues, *many(3, "theirs"), *job("new", "mine")], conf("capacity")).open() as session:
        candidates = [task_of(session, f"theirs-{i}-0") for i in range(3)]
        assert session.ask.unified_evictable(Context(), candidates) == candidates[:2]
        Context.kind = "GangPreempt"
        assert session.ask.unified_evictable(Context(), candidates) == candidates


@pytest.mark.parametrize(("compat", "victims"), [(False, 2), (True, 0)])
def test_a_guarantee_of_devices_protects_no_cores(compat, victims):
    """In the reference a guarantee of a device class keeps everything."""
    queues = [queue("mine", deserved={"cpu": 2}), queue("theirs", guarantee={"resource": {"deviceclass/gpu": 1}})]
    text = conf("gang predicates capacity", actions="reclaim", more="compat: volcano" if compat else "")
    asks = [each for i in range(2) for each in job(f"new-{i}", "mine")]
    assert len(evicted(node("n1", cpu=4), *queues, *many(4, "theirs"), *asks, text=text)) == victims


# ---------------------------------------------------------------------- tried moves, telling


@pytest.mark.parametrize("text", [FLAT, tree()])
def test_tried_moves_count_and_leave_no_trace(text):
    objects = [node("n1", cpu=9), root(), queue("A", capability={"cpu": 3}), *job("j", "A", 4, running=3)]
    with Bench(objects, text).open() as session:
        state, info = CycleState(), session.queues["A"]
        waiting, held = task_of(session, "j-3"), task_of(session, "j-0")
        where = session.nodes["n1"]
        assert not session.ask.simulate_allocatable(state, info, waiting)
        assert session.ask.simulate_remove_task(state, waiting, held, where) is None
        clone = state.clone()
        assert session.ask.simulate_allocatable(clone, info, waiting)
        assert session.ask.simulate_add_task(clone, waiting, held, where) is None
        assert not session.ask.simulate_allocatable(clone, info, waiting)
        assert session.ask.simulate_allocatable(state, info, waiting)
        assert not session.ask.allocatable(info, waiting)


def test_what_is_told():
    observer = Counting()
    objects = [node("n1", cpu=2), queue("q", capability={"cpu": 1}), *job("j", "q", 2)]
    Bench(objects, FLAT).cycle(observer)
    told: dict[str, Any] = dict(observer.told)
    assert told["capacity_refused"]["queue"] == "q"
    assert observer.counts["queue_event_allocated"] == 1
    shown = told["metric.queue_figures"]["figures"]["q"]
    assert (shown.allocated.resource().milli_cpu, shown.real_capacity.milli_cpu, shown.overused) == (1000, 1000, False)


def test_a_negative_level_is_refused_with_the_references_words():
    plugin = Capacity({"ancestorReclaimLevel": -1})
    assert plugin.ancestor_level == 0
    assert [one.text for one in plugin.complaints] == [
        "ancestorReclaimLevel should be non-negative, got -1. Falling back to 0."
    ]
