"""What is passed over would have changed nothing: without the shortcuts the plan is the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from stromboli.api.scheduling import PodGroupStatus
from stromboli.cluster.mirror import Mirror
from stromboli.cycle import run_cycle
from stromboli.framework.books import jobs as jobs_of_sessions
from stromboli.framework.books.candidates import Candidates
from stromboli.framework.books.phases import is_settled
from stromboli.framework.books.plan import Bind, Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.model.job import Job
from stromboli.model.names import (
    POD_GROUP_SCHEDULED,
    POD_GROUP_UNSCHEDULABLE,
    REASON_GANG_READY,
    REASON_NOT_ENOUGH_RESOURCES,
)
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import Counting
from stromboli.preemption import victim_search
from stromboli.preemption.kept_victims import KeptVictims
from stromboli.preemption.node_choice import SameNode
from stromboli.preemption.node_order import KeptOrder
from stromboli.preemption.victim_search import MAX_FAILED_NODES
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from stromboli.testing.plain.cycle import run_plain_cycle
from tests.laws.crowds import (
    EVERY,
    TREE,
    Step,
    configurations,
    contested,
    crowds,
    lending,
    lived,
    newcomers,
    staffed,
    steps,
    uneven,
)
from tests.laws.scenes import CONFIGURATIONS, NOW, REGISTRY, Scene, digest

PLAIN = configurations(["usual", "ranked"], ["preempt", "reclaim"])
RECLAIMING = configurations(["usual", "ranked"], ["reclaim", "preempt, reclaim"])
EVICTING = configurations(actions=("preempt", "reclaim", "preempt, reclaim"))

SETTLING = [text + way for text in (*EVERY, *CONFIGURATIONS) for way in ("", "compat: volcano\n")]


class Curious:
    """Wants to hear everything."""

    def wants(self, key: str) -> bool:
        return not key.startswith("metric.")

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Hear it."""

    def started(self, kind: str, name: str) -> None:
        """Hear it."""

    def ended(self, kind: str, name: str) -> None:
        """Hear it."""


def heard_or_not(snapshot: Snapshot, config: Config, registry: Registry, now: float) -> Plan:
    """The plan of a cycle, which is the same with and without an observer."""
    plan = run_cycle(snapshot, config, registry, now)
    assert digest(run_cycle(snapshot, config, registry, now, 0, Curious())) == digest(plan)
    return plan


@pytest.mark.law("observing evictions changes no eviction")
@given(
    st.one_of(*(lending([*RECLAIMING, TREE]) for _ in range(5)), contested(EVICTING), crowds(), uneven(EVICTING)),
    steps,
    newcomers,
    st.sampled_from((0, MAX_FAILED_NODES)),
)
def test_listening(scene: Scene, happenings: list[Step], fresh: list[list[Manifest]], many: int) -> None:
    with patch.object(victim_search, "MAX_FAILED_NODES", many):  # these clusters have few nodes
        for _ in lived(scene, happenings, fresh, heard_or_not):
            pass


def plainly_or_not(snapshot: Snapshot, config: Config, registry: Registry, now: float) -> Plan:
    """The plan of a cycle, which is the same whether nodes are seen plainly or as the engine does."""
    plan = run_cycle(snapshot, config, registry, now)
    assert digest(run_plain_cycle(snapshot, config, registry, now)) == digest(plan)
    return plan


def kept_or_not(snapshot: Snapshot, config: Config, registry: Registry, now: float) -> Plan:
    """The plan of a cycle, which is the same whether a search keeps victims and nodes or looks for them again."""
    plan = run_cycle(snapshot, config, registry, now)
    with (
        patch.object(KeptVictims, "of", return_value=None),
        patch.object(KeptOrder, "keep_up", return_value=False),
        patch.object(SameNode, "option", return_value=None),
        patch.object(Candidates, "kept", lambda candidates, key: {}),
    ):
        assert digest(run_cycle(snapshot, config, registry, now)) == digest(plan)
    return plan


@pytest.mark.law("what a search keeps from task to task equals what a fresh search finds")
@given(st.one_of(staffed(), staffed(), contested(EVICTING)), steps)
def test_keeping(scene: Scene, happenings: list[Step]) -> None:
    for _ in lived(scene, happenings, [], kept_or_not):
        pass


@pytest.mark.law("evicting actions see nodes as the plain evaluation does")
@given(st.one_of(*(lending([*RECLAIMING, TREE]) for _ in range(5)), contested(PLAIN), crowds(PLAIN)), steps, newcomers)
def test_plainly(scene: Scene, happenings: list[Step], fresh: list[list[Manifest]]) -> None:
    for _ in lived(scene, happenings, fresh, plainly_or_not):
        pass


def seen_or_not(snapshot: Snapshot, config: Config, registry: Registry, now: float) -> Plan:
    """The plan of a cycle, which is the same whether settled jobs are looked at or not, as is what it tells."""
    short, long = Counting(keep=100_000), Counting(keep=100_000)
    plan = run_cycle(snapshot, config, registry, now, 0, short)
    with patch.object(jobs_of_sessions, "unsettled", dict.fromkeys):
        assert digest(run_cycle(snapshot, config, registry, now, 0, long)) == digest(plan)
    with patch.object(jobs_of_sessions, "unsettled", moving):  # here no job is looked at for its queue's sake
        assert digest(run_cycle(snapshot, config, registry, now)) == digest(plan)
    assert list(map(told, short.told)) == list(map(told, long.told))
    return plan


def moving(jobs: Mapping[str, Job], _among: object) -> dict[str, None]:
    """The uids of jobs that are not settled, whichever are said to be among them."""
    return dict.fromkeys(uid for uid, job in jobs.items() if not is_settled(job))


def told(pair: tuple[str, Mapping[str, object]]) -> tuple[str, dict[str, object]]:
    """What observers heard, in a form that compares: figures worked out, everything else as text."""
    key, fields = pair
    plain = {name: list(value.items()) if isinstance(value, Mapping) else str(value) for name, value in fields.items()}
    return key, {name: value for name, value in plain.items() if name != "plan"}


CONDITIONS: tuple[list[dict[str, str]], ...] = (
    [{"type": POD_GROUP_SCHEDULED, "status": "True", "reason": REASON_GANG_READY}],
    [{"type": POD_GROUP_UNSCHEDULABLE, "status": "True", "reason": REASON_NOT_ENOUGH_RESOURCES, "message": "2/2"}],
    [],
)
PHASES = ("Running", "Inqueue", "Completed", "Pending", "Unknown")
LIVES: Mapping[str, dict[str, Any]] = {
    "running": {"on": "n0"},
    "bound": {"on": "n0", "phase": "Pending"},
    "binding": {},
    "succeeded": {"on": "n0", "phase": "Succeeded"},
    "failed": {"on": "n0", "phase": "Failed"},
    "ending": {"on": "n0", "deleting": True},
    "waiting": {"cpu": 3},
    "asking for nothing": {"cpu": 0, "memory": 0},
}


@st.composite
def standing(draw: DrawFn, name: str) -> list[Manifest]:
    """A gang in the middle of its life, most often with a status that says what its pods do."""
    usual = st.sampled_from(tuple(LIVES)[:5])
    lives = draw(st.lists(st.one_of(usual, usual, st.sampled_from(tuple(LIVES))), min_size=1, max_size=3))
    group = pod_group(name, min_member=draw(st.integers(0, 3)), queue=draw(st.sampled_from(("default", "q1"))))
    wrong = draw(st.sampled_from(("", "", "", "running", "succeeded", "failed")))
    counts = {state: lives.count(state) + (state == wrong) for state in ("running", "succeeded", "failed")}
    phase = draw(st.sampled_from(PHASES[:1] * 4 + PHASES[1:2] * 4 + PHASES))
    conditions = draw(st.sampled_from(CONDITIONS[:1] * 3 + CONDITIONS))
    group["status"] = {"phase": phase, "conditions": conditions, **counts}
    pods = [pod(f"{name}-{life.split()[0]}-{i}", group=name, **LIVES[life]) for i, life in enumerate(lives)]
    return [group, *pods]


@pytest.mark.law("passing over settled jobs changes no plan")
@given(standing("a"), standing("b"), standing("c"), st.sampled_from(SETTLING))
def test_settled(first: list[Manifest], second: list[Manifest], third: list[Manifest], conf: str) -> None:
    scene = Scene([node("n0", cpu=9), queue("default"), queue("q1"), *first, *second, *third], conf)
    mirror = Mirror(scene.state())
    for task in [task for task in mirror.state.tasks.values() if "-binding-" in task.name]:
        mirror.assume_bound(Bind(task.uid, task.key, task.job, "n0"))
    for number in range(2):
        plan = seen_or_not(mirror.state.snapshot(), scene.config, REGISTRY, NOW + number)
        for bind in plan.binds:
            mirror.assume_bound(bind)
        for group in plan.pod_groups:
            status = PodGroupStatus(group.phase, group.conditions, group.running, group.succeeded, group.failed)
            mirror.state.set_status(group.key, status)
