"""What a whole session tells the metrics."""

from __future__ import annotations

import io
import re
from collections import Counter

import pytest
from prometheus_client import CollectorRegistry

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.config import load_config
from stromboli.metrics.families import PREFIX
from stromboli.metrics.logs import LogObserver
from stromboli.metrics.prometheus import MetricsObserver
from stromboli.narration.observe import Silent
from stromboli.testing.builders import cluster, node, pod, pod_group, queue, state

CONF = 'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'


def observed(registry: CollectorRegistry) -> CollectorRegistry:
    """The metrics after a session that binds one pod to the only node."""
    registered = builtin_registry()
    known, actions = registered.plugin_names, registered.action_names
    config = load_config(CONF, source="test", known_plugins=known, known_actions=actions)
    found = cluster(node("n1", cpu=4), pod("a", group="g", cpu=1))
    plan = run_cycle(found, config, registered, observer=MetricsObserver(registry, lambda: 1e9, lambda: 0.0))
    assert [bind.node for bind in plan.binds] == ["n1"]
    return registry


def test_placed_and_bound_tasks_are_counted_once_a_session() -> None:
    registry = observed(CollectorRegistry())
    count = registry.get_sample_value
    assert count(PREFIX + "e2e_job_scheduling_latency_milliseconds_count") == 1
    assert count(PREFIX + "task_scheduling_latency_milliseconds_count", {"stage": "Assumed"}) == 1


def test_stages_of_a_placement_are_timed() -> None:
    registry = observed(CollectorRegistry())
    name = PREFIX + "scheduling_stage_duration_milliseconds_count"
    for stage in ("Predicate", "Scoring"):
        assert registry.get_sample_value(name, {"stage": stage})


class Stages(Silent):
    """Notes what begins and what ends of placements."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def wants(self, key: str) -> bool:
        return key == "metric.stage_duration"

    def started(self, kind: str, name: str) -> None:
        self.told += [f"+{name}"] if kind == "stage" else []

    def ended(self, kind: str, name: str) -> None:
        self.told += [f"-{name}"] if kind == "stage" else []


ONE_BY_ONE = "+Predicate -Predicate +Scoring -Scoring"


@pytest.mark.parametrize(
    ("cores", "told"),
    [
        pytest.param([1], "+Predicate +Scoring -Predicate -Scoring", id="one that can be placed straight away"),
        pytest.param([0], ONE_BY_ONE, id="one of best effort"),
        pytest.param([1, 1, 1], ONE_BY_ONE, id="equal ones are one placement"),
        pytest.param([1, 2], f"{ONE_BY_ONE} {ONE_BY_ONE}", id="one after the other"),
        pytest.param(
            [1, 9], f"{ONE_BY_ONE} +Predicate -Predicate +Scoring", id="where none is chosen Scoring never ends"
        ),
    ],
)
def test_both_stages_of_a_placement_begin_before_they_end(cores: list[int], told: str) -> None:
    registered, stages = builtin_registry(), Stages()
    known, actions = registered.plugin_names, registered.action_names
    config = load_config(CONF, source="test", known_plugins=known, known_actions=actions)
    pods = [pod(f"p{number}", group="g", cpu=size, memory=0) for number, size in enumerate(cores)]
    found = cluster(node("n1", cpu=4), node("n2", cpu=4), pod_group("g", min_member=len(cores)), *pods)
    run_cycle(found, config, registered, observer=stages)
    assert " ".join(stages.told) == told


@pytest.mark.parametrize("cores", [[4, 4, 4, 4], [4, 8, 4, 16], [16]])
def test_the_log_of_a_gang_says_what_each_node_holds_after_each_pod(cores: list[int]) -> None:
    registered, stream = builtin_registry(), io.StringIO()
    config = load_config(
        CONF, source="test", known_plugins=registered.plugin_names, known_actions=registered.action_names
    )
    nodes = {f"n{number}": size for number, size in enumerate(cores)}
    pods = [pod(f"p{number}", group="g", cpu=2) for number in range(4)]
    found = cluster(*(node(name, cpu=size) for name, size in nodes.items()), pod_group("g", min_member=4), *pods)
    run_cycle(found, config, registered, observer=LogObserver(stream, 3))
    told = re.findall(
        r"After allocated Task <\S+> to Node <(\w+)>: idle <cpu (\d+).*?used <cpu (\d+)", stream.getvalue()
    )
    placed: Counter[str] = Counter()
    for name, idle, used in told:
        placed[name] += 1
        assert (int(idle), int(used)) == (1000 * nodes[name] - 2000 * placed[name], 2000 * placed[name])
    assert placed.total() == 4


EVICTING = """
actions: "enqueue, {action}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: proportion}}]
"""


@pytest.mark.parametrize(
    ("action", "queue_name", "found_by"),
    [
        ("preempt", "default", (2, 2)),
        ("gangpreempt", "default", (0, 0)),
        ("reclaim", "other", (1, 2)),
        ("gangreclaim", "other", (0, 0)),
    ],
)
def test_a_job_that_gets_room_by_evictions_is_one_transaction_of_the_action(
    action: str, queue_name: str, found_by: tuple[float, float]
) -> None:
    """``found_by`` are the victims possible on the last node, and how many nodes were tried; gangs count neither."""
    registered, registry = builtin_registry(), CollectorRegistry()
    config = load_config(
        EVICTING.format(action=action), source="test",
        known_plugins=registered.plugin_names, known_actions=registered.action_names,
    )  # fmt: skip
    first = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "first"}, "value": 9}
    found = state(
        first, node("n1", cpu=4), queue("default"), queue("other"), pod_group("low", phase="Running"),
        pod_group("high", min_member=2, queue=queue_name, priorityClassName="first"),
        *(pod(f"l{number}", group="low", on="n1") for number in range(4)),
        *(pod(f"h{number}", group="high") for number in range(2)),
    ).snapshot()  # fmt: skip
    plan = run_cycle(found, config, registered, observer=MetricsObserver(registry, lambda: 1e9, lambda: 0.0))
    assert len(plan.evictions) == 2
    assert registry.get_sample_value(PREFIX + "eviction_transactions_total", {"action": action}) == 1
    victims, attempts = (registry.get_sample_value(PREFIX + name) for name in (
        "pod_preemption_victims", "total_preemption_attempts"))  # fmt: skip
    assert (victims, attempts) == found_by
