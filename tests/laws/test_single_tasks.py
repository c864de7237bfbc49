"""Jobs of one task are bound straight away as they are in general: same plans, same figures, whatever else there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from stromboli.allocation import single_tasks
from stromboli.allocation.single_tasks import GENERAL
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.framework.engine import remembered
from stromboli.narration.observe import Counting
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from stromboli.testing.strategies import SHAPES, sometimes
from tests.laws.scenes import (
    EVERYTHING,
    HIERARCHICAL,
    NEIGHBOURS,
    NO_ENQUEUE,
    NOW,
    REGISTRY,
    SEEDED,
    WITH_CAPACITY,
    Scene,
    digest,
    held_scenes,
    scenes,
    tight_scenes,
)

COMPAT = "compat: volcano\n"
USUAL = [DEFAULT_CONFIG, NO_ENQUEUE, WITH_CAPACITY.replace(", {name: pdb}", "")]  # which is told of placements
CONFS = [
    *USUAL * 5,
    *(text + way for text in (*USUAL, EVERYTHING, WITH_CAPACITY, HIERARCHICAL) for way in ("", COMPAT, SEEDED)),
]
NODES = (*SHAPES, *[{"cpu": 16, "memory": "64Gi", "pods": 30, "resources": {"nvidia.com/gpu": 2}}] * 2)
FIGURES = ("metric.e2e_job", "metric.task_latency", "metric.unschedule_task_count", "metric.job_retry_counts")
STAGES = (*FIGURES, "metric.stage_duration")
"""With these the engine announces the stages of placements, too."""

WANTS: tuple[Mapping[str, Any], ...] = (
    {"cpu": 1},
    {"cpu": 2, "memory": "3Gi"},
    {"cpu": "500m"},
    {"cpu": 3},
    {"cpu": 0, "memory": 0},
    {"requests": {"nvidia.com/gpu": 1}},
    {"requests": {"example.com/nowhere": 1}},
)
ODDITIES: tuple[Mapping[str, Any], ...] = (
    {"nominated": "n0"},
    {"schedulingGates": [{"name": "scheduling.volcano.sh/queue-allocation-gate"}]},
    {"schedulingGates": [{"name": "others"}]},
    {"role": "worker"},
    {"nodeSelector": {"kubernetes.io/hostname": "n1"}},
    {"on": "n0"},
    {"on": "n0", "deleting": True},
    *({"labels": {"app": "a"}, **wants} for wants in NEIGHBOURS),
)

NOWHERE: Mapping[str, Any] = {"requests": {"example.com/nowhere": 1}, "role": "worker"}
TOGETHER: tuple[list[Mapping[str, Any]], ...] = (
    [{"cpu": 1}, {"schedulingGates": [{"name": "others"}]}],
    [NOWHERE, {"role": "worker"}, {"role": "worker"}],
)
"""Pods of which one is left to place when that does not complete the job, or when its role has found no node."""
QUEUES: tuple[Mapping[str, Any], ...] = ({}, {}, {"dequeueStrategy": "fifo"}, {"capability": {"cpu": 3}})


@st.composite
def crowds_of_singles(draw: DrawFn) -> Scene:
    """Many jobs of one pod or two in queues that take turns, on nodes that not all of them fit."""
    names = ("default", "q1", "q2")[: draw(st.integers(1, 3))]
    objects = [queue(name, weight=draw(st.integers(1, 3)), **draw(st.sampled_from(QUEUES))) for name in names]
    objects += [node(f"n{number}", **draw(st.sampled_from(NODES))) for number in range(draw(st.integers(1, 6)))]
    for number in range(draw(st.integers(1, 14))):
        objects += draw(small_jobs(f"j{number}", names))
    return Scene(objects, draw(st.sampled_from(CONFS)))


@st.composite
def small_jobs(draw: DrawFn, name: str, queues: tuple[str, ...]) -> list[Manifest]:
    """A PodGroup and its pods: most often one, plain and enough; of several some may find no node."""
    size = draw(st.sampled_from((1, 1, 1, 1, 2, 2, 3)))
    pods = draw(sometimes(st.sampled_from(TOGETHER), 6)) or [draw(small_pods()) for _ in range(size)]
    fields: dict[str, Any] = {
        "min_member": draw(st.sampled_from((1, 1, len(pods), 0))),
        "created": draw(st.integers(0, 3)),
    }
    if draw(sometimes(st.just(True), 12)):
        fields["minTaskMember"] = {"worker": 1}
    if draw(sometimes(st.just(True), 12)):
        fields["networkTopology"] = {"mode": "soft", "highestTierAllowed": 1}
    phase = draw(st.sampled_from(("Pending", "Inqueue", "Running")))
    group = pod_group(name, queue=draw(st.sampled_from(queues)), phase=phase, **fields)
    return [group, *(pod(f"{name}-{i}", group=name, **wants) for i, wants in enumerate(pods))]


@st.composite
def small_pods(draw: DrawFn) -> Mapping[str, Any]:
    """Arguments of a pod: most often a plain one."""
    return {**draw(st.sampled_from(WANTS)), **(draw(sometimes(st.sampled_from(ODDITIES), 4)) or {})}


def cycle(scene: Scene, keys: tuple[str, ...] = FIGURES) -> tuple[Plan, list[tuple[str, str]]]:
    """The plan, and what observers hear meanwhile: figures of jobs and tasks, and which spans end, in order."""
    heard = Counting(keys, keep=100_000)
    plan = run_cycle(scene.snapshot(), scene.config, REGISTRY, NOW, 7, heard)
    return plan, [(key, repr(fields)) for key, fields in heard.told] + heard.spans


@pytest.mark.law("a single task is bound by the short path as by the general one")
@given(st.one_of(*(crowds_of_singles() for _ in range(5)), scenes(), tight_scenes(), held_scenes()))
def test_straight(scene: Scene) -> None:
    with patch.object(remembered, "WORTH_IT", 0):  # these clusters have few tasks of a kind
        plan, figures = cycle(scene, STAGES)
    with patch.dict(GENERAL, {"it is the law's": lambda session: True}):
        general, same = cycle(scene, STAGES)
    assert digest(plan) == digest(general)
    assert figures == same
    with patch.object(single_tasks, "AT_ONCE", 1):
        assert digest(cycle(scene)[0]) == digest(plan)
