"""allocate: how often a job gets its turn, and that its other pods are not looked through at each of them."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_action, run_cycle
from stromboli.framework.config.config import DEFAULT_CONFIG, load_config
from stromboli.framework.engine.class_store import Classes
from stromboli.framework.engine.fits import Fits
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.session import Session
from stromboli.plugin import Plugin, by_template, overused, pre_predicate, predicate
from stromboli.testing.builders import cluster, node, pod, pod_group
from tests.acceptance.bench import Bench, conf

CONF = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: patience}]
"""

CLOSE = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
SPLIT = {"subGroupPolicy": [{"name": "part", "subGroupSize": 1, "matchLabelKeys": ["app"]}]}


class OutOfPatience(BaseException):
    """Ends the run: as an Exception it would only put the plugin aside."""


class Patience(Plugin):
    """Lets a queue have ten turns and no more."""

    name = "patience"

    def on_session_open(self, session):
        self.turns = 0

    @overused
    def has_had_its_turns(self, queue):
        self.turns += 1
        if self.turns > 10:
            raise OutOfPatience
        return False


@pytest.mark.parametrize(
    ("nodes", "spec"),
    [
        pytest.param((), {}, id="no-nodes"),
        pytest.param((node("n", cpu=2),), CLOSE, id="close-together"),
        pytest.param((node("n", cpu=2),), SPLIT, id="in-parts"),
        pytest.param((node("n", cpu=2),), {}, id="whole"),
    ],
)
def test_a_ready_job_whose_surplus_fits_nowhere_has_one_last_turn(nodes, spec):
    group = pod_group("g", min_member=1, **spec)
    ended = pod("g-0", group="g", phase="Succeeded", on="gone")
    snapshot = cluster(*nodes, group, ended, pod("g-1", group="g", cpu=9), pod("g-2", group="g", cpu=9))
    registry = builtin_registry()
    registry.add(Patience)
    config = load_config(CONF, source="test", known_plugins=registry.plugin_names, known_actions=registry.action_names)
    plan = run_cycle(snapshot, config, registry)
    assert (plan.binds, plan.inconsistencies) == ([], [])


# ---------------------------------------------------------------------- work that grows with a job's pods


def default_plan(*objects):
    registry = builtin_registry()
    config = load_config(
        DEFAULT_CONFIG, source="test", known_plugins=registry.plugin_names, known_actions=registry.action_names
    )
    return run_cycle(cluster(*objects), config, registry)


def roles(count):
    """Pods of two roles that take turns, as those of a Job do."""
    specs = [{"volcano.sh/task-spec": role} for role in ("ps", "worker")]
    return [pod(f"g-{specs[i % 2]['volcano.sh/task-spec']}-{i // 2}", group="g", annotations=specs[i % 2])
            for i in range(count)]  # fmt: skip


def looked_at(monkeypatch, count):
    """How many tasks are looked at to find runs among so many that take turns."""
    seen = []
    whole = Classes.run_length

    def noted(self, tasks):
        seen.append(len(tasks))
        return whole(self, tasks)

    monkeypatch.setattr(Classes, "run_length", noted)
    plan = default_plan(
        node("n", cpu=count, memory="512Gi", pods=count), pod_group("g", min_member=count), *roles(count)
    )
    assert len(plan.binds) == count
    return sum(seen)


@pytest.mark.parametrize(("key", "asked"), [(by_template, {"g-0", "g-8"}), (None, {f"g-{i}" for i in range(9)})])
def test_what_follows_from_the_template_is_asked_once_a_run(key, asked):
    """A gang is a run of eight, and one more.  Without the key each pod is asked about; a refused one ends the run."""
    seen = []

    class Choosy(Plugin):
        name = "choosy"

        @pre_predicate(key=key)
        def last_one(self, task):
            seen.append(task.name)
            return Reason("is the last") if task.name == "g-8" and key is None else None

    pods = [pod(f"g-{i}", group="g") for i in range(9)]
    objects = [node("n", cpu=9, memory="9Gi"), pod_group("g", min_member=8), *pods]
    bench = Bench(objects, conf("gang", "predicates choosy"), Choosy)
    assert len(bench.cycle().binds) == (8 if key is None else 9)
    assert set(seen) == asked


def test_where_roles_take_turns_runs_are_sought_among_few(monkeypatch):
    assert looked_at(monkeypatch, 160) <= 16 * 160  # at each of them among all that are left: 12,880


MINIMA = {"minTaskMember": {"ps": 5, "worker": 5}}


@pytest.mark.parametrize(
    ("least", "group", "pods", "counted"),
    [
        pytest.param(1, {}, [pod(f"g-{i}", group="g", cpu=9) for i in range(20)], False, id="without roles"),
        pytest.param(1, MINIMA, roles(20), False, id="minimums that do not apply"),
        pytest.param(10, MINIMA, roles(20), True, id="minimums that apply"),
    ],
)
def test_roles_are_counted_only_where_a_minimum_asks_for_it(least, group, pods, counted):
    bench = Bench([node("n", cpu=8), pod_group("g", min_member=least, **group), *pods], DEFAULT_CONFIG)
    with bench.open() as session:
        job = session.jobs["default/g"]
        bench.act(session, "enqueue", "allocate", "backfill")
    assert (job.roles is not None) == counted


def test_roles_that_failed_are_noted_as_they_fail():
    """A task is told that one of its role has found no node before, whatever came between."""
    pods = [pod(f"g-{role}-{i}", group="g", cpu=cpu, created=i, annotations={"volcano.sh/task-spec": role})
            for i in range(2) for role, cpu in (("big", 99), ("small", 1), ("large", 88))]  # fmt: skip
    group = pod_group("g", min_member=3, minTaskMember={"small": 2})
    registry = builtin_registry()
    text = CONF.replace(", {name: patience}", "")
    config = load_config(text, source="test", known_plugins=registry.plugin_names, known_actions=registry.action_names)
    with Session.open(cluster(node("n", cpu=8), group, *pods), config, registry) as session:
        run_action(session, registry.action("allocate")())
        job = session.jobs["default/g"]
        said = {job.tasks[uid].name: fits.text for uid, fits in job.fits.items() if isinstance(fits, Fits)}
    failed = {name for name, text in said.items() if "Insufficient cpu" in text}
    passed_over = {name for name, text in said.items() if "already predicated failed" in text}
    assert (failed, passed_over) == ({"g-big-0", "g-large-0"}, {"g-big-1", "g-large-1"})


def test_tasks_of_a_role_that_failed_are_logged_as_they_are_passed_over():
    pods = [pod(f"g-{role}-{i}", group="g", cpu=cpu, created=99 - cpu + i, annotations={"volcano.sh/task-spec": role})
            for role, cpu in (("big", 99), ("small", 1)) for i in range(2)]  # fmt: skip
    group = pod_group("g", min_member=2, minTaskMember={"small": 2}, phase="Inqueue")
    text = conf("gang", "predicates", actions="allocate")
    lines = Bench([node("n", cpu=8), group, *pods], text).logged(5)
    assert [line for line in lines if "already predicated failed" in line] == [
        "Task g-big-1 with role spec big has already predicated failed, skip"
    ]


@pytest.mark.parametrize(
    ("least", "roles", "pods", "tried"),
    [
        pytest.param(3, {}, "big small small", {"big"}, id="every pod is needed"),
        pytest.param(2, {}, "big small small", {"big", "small"}, id="two of three are needed, whatever their role"),
        pytest.param(2, {"big": 1, "small": 1}, "big small small", {"big"}, id="one of its role is needed"),
        pytest.param(2, {"small": 2}, "big small small", {"big", "small"}, id="none of its role is needed"),
        pytest.param(2, {"big": 1, "small": 2}, "big small small", {"big", "small"}, id="any two are needed"),
        pytest.param(3, {"big": 2, "small": 2}, "big big small small", {"big"}, id="three, and the others are two"),
    ],
)
def test_a_gang_of_which_one_finds_no_node_goes_on_only_if_others_may_complete_it(least, roles, pods, tried):
    looked_at = set()

    class Refuses(Plugin):
        name = "refuses"

        @predicate
        def fits(self, task, node):
            looked_at.add(task.role)
            return Reason("too big") if task.role == "big" else None

    objects = [pod(f"g-{i}", group="g", created=i, annotations={"volcano.sh/task-spec": role})
               for i, role in enumerate(pods.split())]  # fmt: skip
    group = pod_group("g", min_member=least, minTaskMember=roles, phase="Inqueue")
    Bench([node("n", cpu=8), group, *objects], conf("gang refuses", "predicates"), Refuses).cycle()
    assert looked_at == tried


@pytest.mark.parametrize(("cpu", "said"), [(1, 1), (9, 0)])
def test_a_part_that_is_ready_is_logged(cpu, said):
    lines = Bench([node("n1", cpu=4), pod_group("g", phase="Inqueue"), pod("g-0", group="g", cpu=cpu)]).logged(3)
    assert len([line for line in lines if line.startswith('"SubJob ready, return statement" job="default/g"')]) == said


def test_nodes_of_a_run_are_asked_about_its_first_pod():
    """What a plugin has prepared for it may be read there: pods of one template are asked about together."""
    asked = []

    class Prepared(Plugin):
        name = "prepared"

        @predicate.vector(key=by_template, reasons=(Reason("not now"),))
        def fits(self, task, nodes):
            asked.append(task.name)
            return np.ones(len(nodes), dtype=bool)

    pods = [pod(f"g-{number}", group="g", cpu=1) for number in range(4)]
    bench = Bench([node("n1"), pod_group("g", min_member=4), *pods], conf("gang prepared", "predicates"), Prepared)
    assert len(bench.cycle().binds) == 4
    assert set(asked) == {"g-0"}
