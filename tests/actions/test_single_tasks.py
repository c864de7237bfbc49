"""allocate: what may be bound straight away, and what leaves all turns to the general way."""

from __future__ import annotations

import pytest

from stromboli.allocation.single_tasks import AT_ONCE, GENERAL, SingleTasks, is_plain
from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.config import load_config
from stromboli.framework.engine.fits import Fits
from stromboli.framework.session.session import Session
from stromboli.model.job import PIPELINED
from stromboli.model.jobs.hyper_nodes import JobHyperNodes
from stromboli.narration.observe import SILENT, Counting
from stromboli.plugin import Plugin, allocatable, job_ready, on_allocate, pre_predicate
from stromboli.testing.builders import cluster, node, pod, pod_group
from tests.acceptance.bench import Bench, conf

CONF = """
actions: "allocate"
tiers:
- plugins: [{{name: gang}}, {{name: predicates}}, {{name: proportion}}{more}]
"""


class Heard(Plugin):
    name = "heard"

    @on_allocate
    def note(self, event):
        """Hear of it."""


class Slow(Plugin):
    name = "slow"

    @allocatable
    def may(self, queue, task):
        return True


class Picky(Plugin):
    name = "picky"

    @job_ready
    def ready(self, job):
        return True


def opened(plugin=None, observer=SILENT, jobs=2):
    """A session with single pods, of which the node takes all but the last."""
    registry = builtin_registry()
    if plugin:
        registry.add(plugin)
    text = CONF.format(more=f", {{name: {plugin.name}}}" if plugin else "")
    pods = [each for i in range(jobs) for each in (pod_group(f"g{i}"), pod(f"p{i}", group=f"g{i}", cpu=1))]
    snapshot = cluster(node("n", cpu=jobs - 1, memory="1Ti"), *pods)
    return (
        snapshot,
        load_config(text, source="conf", known_plugins=registry.plugin_names, known_actions=registry.action_names),
        registry,
        observer,
    )


def session_of(*arguments):
    snapshot, config, registry, observer = opened(*arguments)
    return Session.open(snapshot, config, registry, 0.0, 0, observer)


SCENES = {
    "lines between the stages are heard": (None, Counting(["binding"])),
    "plugins are told of placements, and may object": (Heard,),
    "a plugin does not say whether the queue may hold a run": (Slow,),
    "a plugin does not say what a run completes": (Picky,),
}


@pytest.mark.parametrize("condition", SCENES)
def test_what_leaves_all_turns_to_the_general_way(condition):
    session = session_of(*SCENES[condition])
    assert [name for name, holds in GENERAL.items() if holds(session)] == [condition]
    assert not SingleTasks(session).applies


def test_others_are_met_in_few_sessions():
    session = session_of()
    assert SingleTasks(session).applies
    with session.narrator.mute:
        assert not SingleTasks(session).applies
    session.ledger.second_places.rows["x"] = 0
    assert not SingleTasks(session).applies
    assert len(GENERAL) == len(SCENES) + 2


def gated(job, task):
    task.gates = ("others",)


def nominated(job, task):
    task.nominated_node = "n"


def placed(job, task):
    job.move((task,), PIPELINED)


def failed(job, task):
    job.fits["another"] = Fits()


def promised(job, task):
    job.hyper_nodes = JobHyperNodes(nominated={job.uid: "s0"})


def of_group(**spec):
    def change(job, task):
        job.facts = cluster(pod_group("g0", **spec)).jobs["default/g0"].facts

    return change


PARTS = {"subGroupPolicy": [{"name": "part", "subGroupSize": 1, "matchLabelKeys": ["app"]}]}
CLOSE = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


@pytest.mark.parametrize("change", [gated, nominated, placed, failed, promised, of_group(**PARTS), of_group(**CLOSE)])
def test_what_needs_a_look_of_its_own(change):
    session = session_of()
    job = session.jobs["default/g0"]
    (task,) = job.tasks.values()
    assert is_plain(job, task)
    change(job, task)
    assert not is_plain(job, task)


def test_bindings_reach_the_plan_some_at_once(monkeypatch):
    jobs, told, bound = 2 * AT_ONCE + 3, [], []
    bind = SingleTasks.bind

    def noted(*arguments):
        bound.append(bind(*arguments))
        return bound[-1]

    monkeypatch.setattr(SingleTasks, "bind", noted)

    class Executor(Counting):
        def tell(self, key, fields):
            told.append(len(fields["plan"].binds))

    snapshot, config, registry, _ = opened(jobs=jobs)
    plan = run_cycle(snapshot, config, registry, observer=Executor(["plan.committed"]))
    assert told == [AT_ONCE, 2 * AT_ONCE, jobs - 1] == [AT_ONCE, 2 * AT_ONCE, len(plan.binds)]
    assert bound == [True] * (jobs - 1) + [False]


def test_once_no_node_has_room_equal_pods_are_looked_at_in_the_general_way_alone():
    asked = []

    class Preparing(Plugin):
        name = "preparing"

        @pre_predicate
        def prepared(self, task):
            asked.append(task.name)

    pods = [each for n in range(5) for each in (pod_group(f"p{n}", created=n), pod(f"p{n}", group=f"p{n}", created=n))]
    bench = Bench([node("n", cpu=2), *pods], conf("gang preparing", "predicates"), Preparing)
    assert len(bench.cycle().binds) == 2
    assert asked == ["p0", "p1", "p2", "p2", "p3", "p4"], "p2 is looked at in both ways, those after it in one"


@pytest.mark.parametrize("other", ["a gang", "one that holds a nomination"])
def test_the_plan_binds_in_the_order_of_the_turns(other):
    """Single pods before and after a job that the general way places, as their PodGroups are older or younger."""
    names, objects = ["a0", "a1", "b0", "c0"], [node("n", cpu=9, memory="1Ti")]
    for age, name in enumerate(names):
        members = 2 if name == "b0" and other == "a gang" else 1
        objects.append(pod_group(name, created=age, min_member=members))
        objects += [pod(f"{name}-{i}", group=name, cpu=1, created=age) for i in range(members)]
    if other != "a gang":
        objects[-3]["status"] = {**objects[-3].get("status", {}), "nominatedNodeName": "n"}
    registry = builtin_registry()
    config = load_config(
        CONF.format(more=""), source="conf", known_plugins=registry.plugin_names, known_actions=registry.action_names
    )
    plan = run_cycle(cluster(*objects), config, registry, 0.0, 0, SILENT)
    order = [bind.key.partition("/")[2].partition("-")[0] for bind in plan.binds]
    assert list(dict.fromkeys(order)) == names
