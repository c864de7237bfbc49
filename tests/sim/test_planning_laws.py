"""Whatever the cluster: the plan keeps the laws, and everything that waits has a reason that is true."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.builtin import full_registry
from stromboli.sim.planning import Planning, Settings, config_of
from tests.cli import manifests as m
from tests.cli.manifests import Obj
from tests.support.checker import check_plan

TAINT = {"key": "only", "value": "others", "effect": "NoSchedule"}

NODES = st.lists(
    st.builds(
        lambda cpu, pods, tainted: (cpu, pods, [TAINT] if tainted else []),
        st.integers(1, 6), st.integers(1, 6), st.booleans(),
    ),
    min_size=1, max_size=5,
)  # fmt: skip
JOBS = st.lists(
    st.tuples(
        st.integers(1, 4),  # pods
        st.integers(1, 4),  # minMember, at most so many more than pods
        st.sampled_from(["", "1", "2", "500m"]),  # cpu of each
        st.sampled_from(["default", "q", "r"]),
        st.sampled_from([None, {"cpu": "1"}, {"cpu": "4"}]),  # minResources
    ),
    max_size=7,
)
CAPABILITY = st.sampled_from([None, {"cpu": "2"}, {"cpu": "5", "memory": "6Gi"}])


def cluster(
    nodes: list[tuple[int, int, list[Obj]]], jobs: list[tuple[int, int, str, str, Obj | None]], limit: Obj | None
) -> list[Obj]:
    objects = [m.node(f"n{i}", str(cpu), pods=str(pods), taints=taints) for i, (cpu, pods, taints) in enumerate(nodes)]
    objects += [m.queue("default"), m.queue("r"), m.queue("q", **({"capability": limit} if limit else {}))]
    for number, (count, members, cpu, queue, least) in enumerate(jobs):
        spec = {"minResources": least} if least else {}
        objects += m.gang(f"j{number}", count, queue, members, cpu=cpu, group=spec)
    return objects


def answer_for(objects: list[Obj]) -> Obj:
    with tempfile.TemporaryDirectory() as directory:
        conf = Path(directory) / "scheduler.conf"
        conf.write_text(m.CHART, encoding="utf-8")
        chosen = Settings(config=str(conf))
        registry = full_registry(chosen.plugins)
        planning = Planning(config_of(chosen, registry), registry, now=1_800_000_000.0)
        planning.load([m.write(Path(directory), objects)])
    planning.run()
    answer: Obj = json.loads(json.dumps(planning.answer(planning.reasons())))
    return answer


@pytest.mark.law("plans from files are lawful, and their reasons true")
@settings(max_examples=150)
@given(NODES, JOBS, CAPABILITY)
def test_plans_are_lawful_and_reasons_true(
    nodes: list[tuple[int, int, list[Obj]]], jobs: list[tuple[int, int, str, str, Obj | None]], limit: Obj | None
) -> None:
    objects = cluster(nodes, jobs, limit)
    answer = answer_for(objects)
    assert answer["problems"] == []
    assert check_plan(objects, answer) == []
    waiting = {f"ns/{pod['metadata']['name']}" for pod in objects if pod["kind"] == "Pod"} - answer["outcome"][
        "binds"
    ].keys()
    assert waiting == {key for reason in answer["reasons"].values() for key in reason.get("waiting", ())}
    for uid, reason in answer["reasons"].items():
        assert reason["message"], uid
        assert reason["cause"] not in ("gang", "not tried", "no queue"), reason
