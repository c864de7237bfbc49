"""When jobs will start: by hand-made examples, calibrated, and without an answer where there is no basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.builtin import full_registry
from stromboli.cli.main import main
from stromboli.cluster.events import Deleted
from stromboli.cluster.objects import from_value
from stromboli.fairness.waterfill import Claim, pour
from stromboli.model.values.times import stamp
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.simulation.workload import Pods, SimJob, Workload, nodes_of
from stromboli.study.calibration import (
    ENOUGH,
    Calibration,
)  # fmt: skip
from stromboli.study.eta import Forecaster, Rules, Scene, rules_of, scene_of, sort_of
from stromboli.study.forecast import FAR, MOST_KINDS, Holding, Sharing, Situation, Waiting, deserved, starts
from stromboli.study.learning import Learner
from stromboli.study.runtimes import EXPECTED, LEAST, Floats, Runtimes, Sort, expected
from stromboli.testing.builders import node, pod, pod_group, queue, state
from tests.support.filled_record import filled_record as filled_record

SORT = Sort("default", "ns/train", 1)


def situation(*waiting: Waiting, most: float = FAR) -> Situation:
    """Two nodes of four cores, both full: a job of four cores on each."""
    running = [Holding((node,), np.array([[4.0]]), 0) for node in range(2)]
    return Situation(np.zeros((2, 1)), running, waiting, np.array([[8.0]]), np.array([[most]]))


@pytest.mark.parametrize(
    ("waiting", "target", "most", "expected_start"),
    [
        ([(1, 4)], 0, FAR, 10.0),  # the first end makes room
        ([(2, 4)], 0, FAR, 30.0),  # a gang needs both
        ([(1, 4), (1, 4)], 1, FAR, 30.0),  # the second in the order has the second end
        ([(1, 4), (1, 4), (1, 4)], 2, FAR, 60.0),  # the third has the end of the first that waited, 10 + 50
        ([(2, 4), (1, 2)], 1, FAR, 10.0),  # a smaller job passes a gang that waits
        ([(1, 8)], 0, FAR, np.inf),  # no node is so large
        ([(1, 4)], 0, 4.0, 30.0),  # its queue may have four cores only
    ],
)
def test_starts_on_paper(
    waiting: list[tuple[int, float]], target: int, most: float, expected_start: float
) -> None:  # fmt: skip
    found = situation(*(Waiting(np.array([each]), count, count, 0) for count, each in waiting), most=most)
    left, runtimes = np.array([[10.0, 30.0]]), np.full((1, len(waiting)), 50.0)
    assert starts(found, [target], left, runtimes).tolist() == [[expected_start]]


@pytest.mark.parametrize("count", [1, 2])
def test_a_gang_that_waits_for_quota_starts_on_any_node_once_a_pod_of_its_queue_ends(count: int) -> None:
    """The pod that ends is on the second node, the room on the first; before, a pod of another queue ends."""
    running = [Holding((1,), np.array([[1.0]]), queue) for queue in (0, 1)]
    waiting = [Waiting(np.array([4.0 / count]), count, count, 0)]
    found = Situation(np.array([[8.0], [0.0]]), running, waiting, np.ones((2, 1)), np.array([[4.0], [FAR]]))
    assert starts(found, [0], np.array([[10.0, 5.0]]), np.full((1, 1), 50.0)).tolist() == [[10.0]]


def cpu(*amounts: float) -> Floats:
    """Amounts of CPU, a row each; the other columns, memory and pods, are empty."""
    return np.array([[amount, 0.0, 0.0] for amount in amounts])


def shared(
    free: Sequence[float], running: Sequence[tuple[int, float, int]], waiting: Sequence[tuple[float, int, bool]],
    factor: float | None = None,
) -> Situation:  # fmt: skip
    """Nodes with so much ``free``; jobs that hold (node, amount, queue); pods that ask (amount, queue, admitted)."""
    used = [sum(amount for _, amount, of in running if of == queue) for queue in (0, 1)]
    total = sum(free) + sum(used)
    return Situation(
        cpu(*free),
        [Holding((node,), cpu(amount), queue) for node, amount, queue in running],
        [Waiting(cpu(amount)[0], 1, 1, queue, admitted) for amount, queue, admitted in waiting],
        cpu(*used),
        np.full((2, 3), FAR),
        Sharing(np.ones(2), np.zeros(2), cpu(total)[0], factor),
    )


def started(found: Situation, left: Sequence[float], runtime: float = 1000.0) -> list[float]:
    """When the waiting jobs start if those that run go on for so long."""
    count = len(found.waiting)
    return starts(found, range(count), np.array([left]), np.full((1, count), runtime))[:, 0].tolist()  # type: ignore[no-any-return]


def test_the_queue_that_holds_the_least_of_what_it_deserves_is_the_next() -> None:
    """Each deserves three of six cores: whenever two come free, the queue that holds less has its turn."""
    running = [(0, 2.0, 0), (1, 2.0, 0), (2, 2.0, 1)]
    found = shared([0.0] * 3, running, [(1.0, queue, True) for queue in (0, 0, 0, 0, 1, 1, 1, 1)])
    left = [10.0, 20.0, 30.0]
    assert started(found, left) == [10.0, 20.0, 20.0, 1010.0, 10.0, 30.0, 30.0, 1010.0]
    assert started(replace(found, sharing=None), left) == [10.0, 10.0, 20.0, 20.0, 30.0, 30.0, 1010.0, 1010.0]


def test_shares_count_what_queues_hold_and_what_they_are_given_at_the_moment() -> None:
    """There is room for few, less than what queues deserve, as the rest is in pieces."""
    holds = shared([0.0, 2.0, 0.5, 0.5, 0.5, 0.5], [(0, 1.0, 0)], [(2.0, 0, True), (2.0, 1, True)])
    assert started(holds, [5000.0], runtime=100.0) == [100.0, 0.0]
    given = shared([1.0, 1.0, 0.5, 0.5], [], [(1.0, 0, True), (1.0, 0, True), (1.0, 1, True)])
    assert started(given, [], runtime=100.0) == [0.0, 100.0, 0.0]


@pytest.mark.parametrize(("ranks", "expected_starts"), [((0.0, 0.0), [0.0, 100.0]), ((0.0, -1.0), [100.0, 0.0])])
def test_the_rank_of_queues_comes_before_their_share(ranks: tuple[float, float], expected_starts: list[float]) -> None:
    """Only the first node is large enough."""
    found = shared([2.0, 0.5, 0.5, 0.5, 0.5], [], [(2.0, 0, True), (2.0, 1, True)])
    assert found.sharing is not None
    ranked = replace(found, sharing=replace(found.sharing, ranks=np.array(ranks)))
    assert started(ranked, [], runtime=100.0) == expected_starts


def test_no_queue_gets_more_than_it_deserves_while_others_ask() -> None:
    """The large pod of the second queue cannot start yet; what it deserves stays free for it."""
    found = shared([0.0, 1.0], [(0, 2.0, 0), (1, 1.0, 0)], [(1.0, 0, True), (2.0, 1, True)])
    assert started(found, [50.0, 60.0]) == [50.0, 50.0]
    assert started(replace(found, sharing=None), [50.0, 60.0]) == [0.0, 50.0]


@pytest.mark.parametrize(("factor", "expected_start"), [(1.5, 0.0), (1.4, 70.0), (None, 0.0)])
def test_jobs_are_admitted_before_they_start(factor: float | None, expected_start: float) -> None:
    """A large pod that was admitted leaves, of 6 cores times the factor, no room for a small one to be."""
    found = shared([0.0, 2.0], [(0, 4.0, 0)], [(4.0, 0, True), (1.0, 0, False)], factor)
    assert started(found, [70.0]) == [70.0, expected_start]


def test_what_is_admitted_leaves_less_for_the_next() -> None:
    """Of 9 cores, 1.5 times 6, one is left."""
    found = shared([0.0, 2.0], [(0, 4.0, 0)], [(4.0, 0, True), (0.75, 0, False), (0.5, 0, False)], 1.5)
    assert started(found, [70.0]) == [70.0, 0.0, 70.0]


def test_what_a_queue_may_not_have_the_others_deserve() -> None:
    """One queue asks for all ten cores and may have two; the eight pods of the other start at once."""
    most = np.full((2, 3), FAR)
    most[0, 0] = 2.0
    waiting = [Waiting(cpu(1.0)[0], 1, 1, queue, True) for queue in [0] * 10 + [1] * 8]
    sharing = Sharing(np.ones(2), np.zeros(2), cpu(10.0)[0], None)
    found = Situation(cpu(*[1.0] * 10), [], waiting, cpu(0.0, 0.0), most, sharing)
    assert started(found, [])[10:] == [0.0] * 8


def test_pods_that_found_no_room_as_their_job_started_ask_for_nothing_more() -> None:
    """Of five pods two run and end; the four of the other queue have both nodes then."""
    waiting = [Waiting(cpu(1.0)[0], 5, 1, 0, True), *(Waiting(cpu(1.0)[0], 1, 1, 1, True) for _ in range(4))]
    sharing = Sharing(np.ones(2), np.zeros(2), cpu(2.0)[0], None)
    found = Situation(cpu(1.0, 1.0), [], waiting, cpu(0.0, 0.0), np.full((2, 3), FAR), sharing)
    times = started(found, [], runtime=100.0)
    assert times[1:] == [100.0, 100.0, 200.0, 200.0]


def test_so_many_different_amounts_are_sketched_and_jobs_behind_them_are_told() -> None:
    waiting = [Waiting(np.array([1.0 + number % (MOST_KINDS + 1)]), 1, 1, 0) for number in range(MOST_KINDS + 3)]
    found = Situation(np.full((1, 1), 9.0), [], waiting, np.zeros((1, 1)), np.full((1, 1), FAR))
    assert sorted(found.sketched) == [*range(MOST_KINDS), MOST_KINDS + 1, MOST_KINDS + 2]
    sort = Sort("q", "ns/j", 1)
    waits = [(f"u{number}", sort, 5.0) for number in range(MOST_KINDS + 3)]
    scene = Scene(found, [], waits, [None] * len(waits))
    (eta,) = Forecaster(Runtimes(), Calibration(), draws=2).etas(scene, [f"u{MOST_KINDS}"])
    assert eta.position == MOST_KINDS
    assert eta.why == f"no basis: jobs before it ask for {MOST_KINDS} different amounts, and no more are sketched"


amounts_of_queues = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=5
)


@given(amounts_of_queues, st.integers(1, 60), st.integers(1, 60))
def test_what_queues_deserve_is_what_water_filling_gives(
    queues: list[tuple[int, int, int]], one: int, other: int
) -> None:
    """Column by column, as the rounds of the plugin give it."""
    rows = np.array(queues, dtype=float)
    found = deserved(np.array([one, other], dtype=float), rows[:, 0], rows[:, 1:])
    for column, total in enumerate((one, other)):
        claims = [Claim(str(n), w, [float(q[column])], [np.inf], [0.0]) for n, (w, *q) in enumerate(queues)]
        list(pour([float(total)], claims))
        assert found[:, column] == pytest.approx([claim.deserved[0] for claim in claims], abs=0.5)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Situation, Floats, Floats]:
    """Few small nodes, pods and gangs in queues with and without a limit, and how long all of them take."""
    amounts, queues = st.integers(1, 4), st.integers(0, 1)
    held = draw(st.lists(st.tuples(st.integers(0, 2), amounts, queues, st.integers(1, 9)), max_size=5))
    asked = draw(st.lists(st.tuples(amounts, st.integers(1, 2), queues, st.integers(1, 9)), min_size=1, max_size=5))
    running = [Holding((row,), np.array([[float(amount)]]), queue) for row, amount, queue, _ in held]
    waiting = [Waiting(np.array([float(each)]), count, count, queue) for each, count, queue, _ in asked]
    used = np.array([[float(sum(amount for _, amount, of, _ in held if of == queue))] for queue in (0, 1)])
    free = np.array([[float(draw(st.integers(0, 6)))] for _ in range(3)])
    most = np.array([[float(draw(st.integers(1, 9)))], [FAR]])
    times = [[float(row[-1]) for row in rows] for rows in (held, asked)]
    return Situation(free, running, waiting, used, most), np.array(times[:1]), np.array(times[1:])


@given(situations())
def test_jobs_start_as_if_all_were_tried_on_all_nodes_after_each_end(case: tuple[Situation, Floats, Floats]) -> None:
    found, left, runtimes = case
    targets = range(len(found.waiting))
    slowly = [tried_everywhere(found, target, left[0], runtimes[0]) for target in targets]
    assert starts(found, targets, left, runtimes)[:, 0].tolist() == slowly


def tried_everywhere(found: Situation, target: int, left: Floats, runtimes: Floats) -> float:
    """When a job starts, the slow way."""
    free, used, waiting = found.free.copy(), found.used.copy(), dict(enumerate(found.waiting))
    ends = [(end, number, one) for number, (end, one) in enumerate(zip(left.tolist(), found.running, strict=True))]
    now = 0.0
    while True:
        for number, one in list(waiting.items()):
            rooms = np.floor(free / one.each).min(axis=1).clip(0, one.count).astype(int)
            rows = [row for row in np.argsort(-rooms, kind="stable").tolist() for _ in range(rooms[row])][: one.count]
            if len(rows) == one.count and (used[one.queue] + one.count * one.each <= found.most[one.queue]).all():
                if number == target:
                    return now
                np.subtract.at(free, rows, one.each)
                used[one.queue] += one.count * one.each
                held = Holding(tuple(rows), np.repeat(one.each[None], one.count, axis=0), one.queue)
                ends.append((now + float(runtimes[number]), len(left) + number, held))
                del waiting[number]
        if not ends:
            return np.inf
        ends.sort(key=lambda end: end[:2])
        now, _, ended = ends.pop(0)
        np.add.at(free, list(ended.nodes), ended.held)
        used[ended.queue] -= ended.held.sum(axis=0)


@pytest.mark.parametrize("count", [1, 2])
def test_a_node_that_is_overfull_has_room_for_what_asks_for_something_else(count: int) -> None:
    waiting = [Waiting(np.array([2.0, 0.0]), count, count, 0)]
    found = Situation(np.array([[4.0, -1.0]]), [], waiting, np.zeros((1, 2)), np.full((1, 2), FAR))
    assert starts(found, [0], np.zeros((1, 0)), np.full((1, 1), 50.0)).tolist() == [[0.0]]


def test_nothing_starts_without_nodes() -> None:
    found = Situation(np.zeros((0, 1)), [], [Waiting(np.array([1.0]), 1, 1, 0)], np.zeros((1, 1)), np.full((1, 1), FAR))
    assert starts(found, [0], np.zeros((1, 0)), np.full((1, 1), 50.0)).tolist() == [[np.inf]]


def test_runtimes_are_drawn_from_jobs_alike_that_ran_as_long() -> None:
    runtimes, dice = Runtimes(), np.random.default_rng(1)
    assert runtimes.left(SORT, 0.0, 4, dice) is None
    for number in range(LEAST):
        runtimes.add(SORT, 100.0 + number)
    found = runtimes.left(SORT, 50.0, 100, dice)
    assert found is not None
    assert set(found) <= {50.0 + number for number in range(LEAST)}
    assert runtimes.left(Sort("default", "ns/other", 7), 0.0, 4, dice) is not None, "the queue is likeness enough"
    assert runtimes.left(Sort("others", "ns/train", 1), 0.0, 4, dice) is None


def test_a_job_that_has_run_longer_than_all_alike_goes_on_by_its_age() -> None:
    """Half of those that reach an age reach twice of it; without an end in the queue even that has no basis."""
    runtimes, dice = Runtimes(), np.random.default_rng(1)
    for number in range(LEAST - 1):
        runtimes.add(SORT, 100.0 + number)
    assert runtimes.left(SORT, 5000.0, 4, dice) is None
    runtimes.add(Sort("default", "ns/other", 7), 100.0)
    found = runtimes.left(SORT, 5000.0, 4000, dice)
    assert found is not None
    assert [np.mean(found > 5000.0 * times) for times in (1, 3)] == pytest.approx([1 / 2, 1 / 4], abs=0.02)


def test_estimates_of_users_are_read_and_nonsense_is_not() -> None:
    assert expected({EXPECTED: "90m"}) == 5400.0
    assert expected({EXPECTED: "soon"}) is expected({}) is None


def run_of(jobs: list[SimJob], until: float) -> Simulation:
    registry = full_registry("")
    workload = Workload("waits", tuple(jobs), tuple(nodes_of("1x4cpu")))
    simulation = Simulation(workload, registry.configured(""), registry)
    simulation.run(until)
    return simulation


def test_without_a_basis_there_is_no_number() -> None:
    pods = (Pods(1, {"cpu": "4"}),)
    simulation = run_of([SimJob("long", 0.0, 1e6, pods), SimJob("waits", 1.0, 10.0, pods)], 60.0)
    scene = scene_of(simulation.scheduling.state, simulation.timeline.now)
    (found,) = Forecaster(Runtimes(), Calibration()).etas(scene, ["default/waits"])
    assert found.quantiles == (None, None, None)
    assert found.why.startswith("no basis: of 100% of the room in use")


def test_what_ran_before_the_record_began_has_run_since_its_pods_started() -> None:
    """Jobs alike run for 1,100 seconds; this one had run for 1,000 when the record began, so 100 are left."""
    holder = pod("long-0", group="long", cpu=4, on="n1")
    holder["status"]["startTime"] = stamp(9_000)
    found = state(
        node("n1", cpu=4), pod_group("long"), holder, pod_group("waits"), pod("waits-0", group="waits", cpu=4)
    )
    learner = Learner()
    for number in range(LEAST):
        learner.runtimes.add(sort_of(found.jobs["default/long"]), 1_100.0 + number)
    learner.look(found, 10_000.0)
    assert learner.began == {"default/long": 9_000.0}
    scene = scene_of(found, 10_000.0, learner.began)
    (eta,) = Forecaster(learner.runtimes, learner.calibration).etas(scene, ["default/waits"])
    assert [100 <= said < 100 + LEAST for said in eta.quantiles if said is not None] == [True] * 3
    found.apply(Deleted("Pod", from_value("Pod", holder)))
    found.apply(Deleted("PodGroup", from_value("PodGroup", pod_group("long"))))
    learner.look(found, 10_200.0)
    assert max(learner.runtimes._known["default",]) == 1_200.0


def test_what_a_learner_told_of_a_start_is_weighed_by_its_outcome() -> None:
    """The sketch says 100 seconds, the first of the queue has waited for 990: the job starts after 990."""
    learner, full = Learner(every=1.0), [node("n1", cpu=4), pod_group("long", created=9_000)]
    first = [pod_group("first", created=9_000), pod("first-0", group="first", cpu=9)]
    for _ in range(ENOUGH):
        learner.calibration.add(np.full(4, 100.0), 100.0)
    for _ in range(LEAST):
        learner.runtimes.add(Sort("default", "default/long", 1), 1_130.0)
    holder = pod("long-0", group="long", cpu=4, on="n1")
    holder["status"]["startTime"] = stamp(9_000)
    waits = [pod_group("waits", created=9_990), pod("waits-0", group="waits", cpu=4)]
    for now in (10_000.0, 10_030.0, 10_060.0):
        learner.look(state(*full, holder, *waits, *first), now)
    learner.look(state(*full, holder, *waits, *first), 11_020.0)
    learner.look(state(*full, waits[0], pod("waits-0", group="waits", cpu=4, on="n1"), *first), 11_050.0)
    (answer,) = learner.answers
    assert (answer.job, answer.outcome) == ("default/waits", 990.0)
    assert answer.quantiles == pytest.approx((100.0,) * 3)
    said = learner.calibration.quantiles(np.full(4, 100.0))
    assert learner.calibration.head_of_line.or_else(said, "default", 990.0) == (990.0,) * 3
    assert learner.calibration.basis.endswith("P80 held 0% of 1 times")


UID = "1f5c886f-abcd-462d-9e8e-a688b6d2427e"


def test_a_volcano_job_waits_before_its_pods_are_made() -> None:
    """They are made once its PodGroup is admitted, which says how many there will be, and of what size."""
    made = pod_group(f"train-7-{UID}", min_member=2, minResources={"cpu": "4", "pods": "2"})
    holder = pod("long-0", group="long", cpu=4, on="n1", annotations={EXPECTED: "20m"})
    found = state(node("n1", cpu=4), pod_group("long"), holder, made)
    scene = scene_of(found, 0.0)
    (waiting,) = scene.situation.waiting
    assert (waiting.count, waiting.least, waiting.each[found.axes.index["cpu"]]) == (2, 2, 2000.0)
    assert scene.waiting[0][:2] == (f"default/train-7-{UID}", Sort("default", "default/train", 2))
    (eta,) = Forecaster(Runtimes(), Calibration()).etas(scene, [f"default/train-7-{UID}"])
    assert eta.quantiles == (1200.0,) * 3


@pytest.mark.parametrize(
    ("name", "least", "resources"),
    [
        pytest.param(f"train-{UID}", 2**31 - 1, {"cpu": "0", "memory": "0"}, id="more pods than nodes may hold"),
        pytest.param(f"train-{UID}", 2**31 - 1, {"memory": "1"}, id="of next to nothing each"),
        pytest.param("mine", 5, {"cpu": "1"}, id="a PodGroup of a user, whose pods may never come"),
    ],
)
def test_what_pod_groups_say_without_pods_costs_others_nothing(
    name: str, least: int, resources: dict[str, str]
) -> None:
    claimed = pod_group(name, min_member=least, minResources=resources)
    holder = pod("long-0", group="long", cpu=4, on="n1", annotations={EXPECTED: "20m"})
    waits = pod("waits-0", group="waits", cpu=4)
    scene = scene_of(state(node("n1", cpu=4), pod_group("long"), holder, claimed, pod_group("waits"), waits), 0.0)
    (eta,) = Forecaster(Runtimes(), Calibration()).etas(scene, ["default/waits"])
    assert eta.quantiles == (1200.0,) * 3
    assert scene.number("default/mine") is None


def test_a_volcano_job_is_learned_from_as_it_is_with_its_pods() -> None:
    """Its PodGroup comes first; what has run is like what will, and a wait for admission is one."""
    learner, name = Learner(), f"train-7-{UID}"
    made = pod_group(name, min_member=2, minResources={"cpu": "4"})
    holder = pod("long-0", group="long", cpu=4, on="n1", annotations={EXPECTED: "20m"})
    objects = [node("n1", cpu=4), pod_group("long"), holder, made]
    learner.look(state(*objects), 100.0)
    learner.look(state(*objects), 200.0)
    job = f"default/{name}"
    assert (learner._jobs[job].tried, learner._jobs[job].sort.size) == (True, 2)
    ours = [pod(f"train-7-main-{number}", group=name, cpu=1, on="n1") for number in range(3)]
    learner.look(state(*objects), 260.0)
    learner.look(state(*objects, *ours), 261.0)
    assert learner._jobs[job].sort == Sort("default", "default/train", 3)
    assert [(one.job, one.outcome) for one in learner.answers] == [(job, 60.0)]


def test_a_users_estimate_is_basis_enough() -> None:
    told = {"annotations": {EXPECTED: "10m"}}
    pods, waiting = (Pods(1, {"cpu": "4"}, {}, told),), (Pods(1, {"cpu": "4"}),)
    simulation = run_of([SimJob("long", 0.0, 1e6, pods), SimJob("waits", 1.0, 10.0, waiting)], 60.0)
    state = simulation.scheduling.state
    learner = Learner()
    learner.look(state, simulation.began)
    scene = scene_of(state, simulation.began + 60.0, learner.began)
    found = Forecaster(learner.runtimes, learner.calibration).etas(scene, ["default/waits", "default/long"])
    assert [(one.job, one.quantiles, one.basis) for one in found] == [
        ("default/waits", (540.0, 540.0, 540.0), "not calibrated")
    ]


def test_a_record_answers_for_a_file_and_for_what_waits(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "job.yaml"
    text = "{{apiVersion: v1, kind: Pod, metadata: {{name: new, namespace: ns}}, spec: {{schedulerName: volcano, {}}}}}"
    asks = "containers: [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]"
    file.write_text(text.format(asks.format(cpu=1)))
    assert main(["eta", str(file), "--record", str(filled_record)]) == 0
    assert "it fits now" in capsys.readouterr().out
    file.write_text(text.format(asks.format(cpu=64)))
    assert main(["eta", str(file), "--record", str(filled_record)]) == 1
    out = capsys.readouterr().out
    assert "no draw gives it room" in out or "no basis" in out
    assert "waits: 1 pod without a node" in out


@pytest.mark.parametrize(
    ("actions", "plugins", "expected_rules"),
    [
        ("enqueue, allocate", "proportion overcommit", Rules(True, 1.2)),
        ("enqueue, allocate", "proportion overcommit:2", Rules(True, 2.0)),
        ("enqueue, allocate", "proportion overcommit:0.5", Rules(True, 1.2)),
        ("allocate", "proportion overcommit", Rules(True, None)),  # without the action all are admitted
        ("enqueue, allocate", "proportion", Rules(True, None)),
        ("enqueue, allocate", "predicates overcommit", Rules(False, 1.2)),
    ],
)
def test_the_sketch_follows_the_configuration(actions: str, plugins: str, expected_rules: Rules) -> None:
    tier = []
    for name, _, factor in (one.partition(":") for one in plugins.split()):
        arguments = f", arguments: {{overcommit-factor: {factor}}}" if factor else ""
        tier.append(f"  - {{name: {name}{arguments}}}")
    text = "\n".join([f'actions: "{actions}"', "tiers:", "- plugins:", *tier])
    assert rules_of(full_registry("").configured_by(text, "conf")) == expected_rules


def test_a_scene_knows_weights_ranks_and_admitted_jobs() -> None:
    found = state(
        node("n1", cpu=4),
        queue("heavy", weight=3, priority=7),
        pod_group("in", queue="heavy", minResources={"cpu": "1"}),
        pod("in-0", group="in", cpu=1),
        pod_group("out", queue="heavy", minResources={"cpu": "1"}, phase="Pending"),
        pod("out-0", group="out", cpu=1),
        pod_group("free", queue="heavy", phase="Pending"),
        pod("free-0", group="free", cpu=1),
    )
    situation = scene_of(found, 0.0, rules=Rules(True, 1.5)).situation
    assert situation.sharing is not None
    heavy = list(found.queues).index("heavy")
    assert (situation.sharing.weights[heavy], situation.sharing.ranks[heavy]) == (3.0, -7.0)
    assert situation.sharing.total[0] == 4000.0
    scene = scene_of(found, 0.0, rules=Rules(True, 1.5))
    admitted = {uid: one.admitted for (uid, _, _), one in zip(scene.waiting, scene.situation.waiting, strict=True)}
    assert admitted == {"default/in": True, "default/out": False, "default/free": True}
    assert scene_of(found, 0.0).situation.sharing is None


def test_a_scene_knows_how_much_longer_the_first_before_each_job_has_waited() -> None:
    """A job that has started and would have more pods does not wait, and pods that are made again wait anew."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    runs = (
        pod_group("runs", created=100),
        pod("runs-0", group="runs", on="n1"),
        pod("runs-1", group="runs", created=100),
    )
    objects = [node("n1", cpu=1), queue("other"), high, *runs]
    for name, (of, created, made) in {
        "a": ("default", 200, 200), "b": ("default", 260, 260), "again": ("default", 120, 700),
        "c": ("other", 300, 300), "urgent": ("other", 400, 400), "d": ("other", 500, 500),
    }.items():  # fmt: skip
        urgent: dict[str, Any] = {"priorityClassName": "high"} if name == "urgent" else {}
        objects += [pod_group(name, queue=of, created=created, **urgent), pod(f"{name}-0", group=name, created=made)]
    scene = scene_of(state(*objects), 1000.0)
    ahead = {uid.removeprefix("default/"): one for (uid, _, _), one in zip(scene.waiting, scene.ahead, strict=True)}
    assert ahead == {"runs": None, "again": None, "a": None, "b": 60.0, "urgent": None, "c": None, "d": 200.0}
