"""What allocate tells: jobs that it leaves out and why, turns of queues, tasks that wait, nodes that are looked at."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.model.resources.axes import CPU
from stromboli.narration.observe import Counting
from stromboli.plugin import Reason
from stromboli.testing.builders import Manifest, hyper_node, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, conf

CLOSE = {"mode": "hard", "highestTierAllowed": 1}


def told(key: str, *objects: Manifest, actions: str = "allocate") -> list[dict[str, Any]]:
    """What one cycle tells under ``key``, jobs and tasks by their names."""
    observer = Counting((key,))
    bench = Bench([node("n", cpu=4), *objects], conf("gang", "predicates", actions=actions))
    bench.cycle(observer)
    return [
        {
            what: value.name if what in ("job", "task") and hasattr(value, "name") else value
            for what, value in each.items()
        }
        for _, each in observer.told
    ]


def gang(name: str = "g", count: int = 1, phase: str = "Inqueue", cpu: int = 1, **spec: Any) -> list[Manifest]:
    made = pod_group(name, phase=phase, **{"min_member": count, **spec})
    return [made, *(pod(f"{name}-{i}", group=name, cpu=cpu) for i in range(count))]


LACKS = "Not enough valid tasks for gang-scheduling, valid: 1, min: 3"
ASKED = {"job": "g", "queue": "default"}


@pytest.mark.parametrize(
    ("key", "objects", "actions", "found"),
    [
        pytest.param("allocate_job_skipped", gang(phase="Pending"), "enqueue, allocate", [], id="enqueued"),
        pytest.param(
            "allocate_job_skipped", gang(phase="Pending", cpu=9, minResources={"cpu": 99}), "allocate, enqueue",
            [{**ASKED, "reason": "job status is pending."}], id="not-enqueued-yet",
        ),
        pytest.param("allocate_job_admitted", gang(phase="Pending"), "allocate", [ASKED], id="admitted"),
        pytest.param("allocate_job_admitted", gang(), "allocate", [], id="admitted-before"),
        pytest.param(
            "allocate_job_invalid", gang(min_member=3), "allocate",
            [{**ASKED, "reason": "NotEnoughTasks", "message": LACKS}], id="too-few-pods",
        ),
        pytest.param("allocate_job_added", [*gang(), *gang("done", 0)], "allocate", [ASKED], id="added"),
        pytest.param("allocate_started", [*gang(), *gang("h", queue="q"), queue("q"), queue("idle")], "allocate",
                     [{"queues": 2}], id="queues"),
        pytest.param("queue_without_jobs", gang(), "allocate", [{"queue": "default"}], id="done"),
        pytest.param(
            "task_gated", [pod_group("g"), pod("g-0", group="g", schedulingGates=[{"name": "example.com/g"}])],
            "allocate", [{"task": "g-0"}], id="gated",
        ),
        pytest.param("task_best_effort", [pod_group("g"), pod("g-0", group="g", cpu=0, memory=0)], "allocate",
                     [{"task": "g-0"}], id="best-effort"),
    ],
)  # fmt: skip
def test_a_line_is_told_of_each_case(
    key: str, objects: list[Manifest], actions: str, found: list[dict[str, Any]]
) -> None:
    assert told(key, *objects, actions=actions) == found


def test_close_jobs_wait_until_hypernodes_are_there() -> None:
    why = "hyperNodes are not ready for scheduling"
    rack, other = hyper_node("rack", 1, "n"), hyper_node("other", 2, "n")
    circle = [hyper_node("a", 2, below=["b"]), hyper_node("b", 2, below=["a"])]
    assert told("allocate_job_skipped", *circle, *gang(networkTopology=CLOSE)) == [{**ASKED, "reason": why}]
    assert told("allocate_job_skipped", *circle, *gang()) == []
    assert told("allocate_job_skipped", rack, other, *gang(networkTopology=CLOSE)) == []


def test_each_node_that_is_looked_at_is_told_with_what_it_has_left() -> None:
    objects = [node("full", cpu=4), pod("there", on="full", cpu=4), node("small", cpu=1), *gang(cpu=2)]
    filtered = [(each["node"], each["name"], each["idle"].vector[CPU], each["future_idle"].vector[CPU])
                for each in told("node_filtered", *objects)]  # fmt: skip
    assert filtered == [("full", "g-0", 0, 0), ("small", "g-0", 1000, 1000)]
    compared = [(each["task"], each["node"], each["request"].milli_cpu, each["idle"].vector[CPU])
                for each in told("considering_resources", *objects)]  # fmt: skip
    assert compared == [
        ("default/g-0", "full", 2000, 0), ("default/g-0", "n", 2000, 4000), ("default/g-0", "small", 2000, 1000)
    ]  # fmt: skip


def test_one_refused_before_the_nodes_are_looked_at_is_told_with_the_reason() -> None:
    observer = Counting(("pre_predicate_failed",))
    refuses = answering("refuses", pre_predicate=lambda task: Reason("not yet") if task.name == "g-0" else None)
    text = conf("gang refuses", "predicates", actions="allocate")
    Bench([node("n"), *gang(count=2, min_member=1)], text, refuses).cycle(observer)
    ((_, fields),) = observer.told
    assert (str(fields["task"]), fields["error"]) == ("Task(default/g-0, Pending)", "not yet")


def test_nodes_are_told_once_for_a_run_of_equal_pods() -> None:
    """Although each of the three placements is reported."""
    observer = Counting(("nodes_for_job", "binding"))
    Bench([node("n", cpu=4), *gang(count=3)], conf("gang", "predicates", actions="allocate")).cycle(observer)
    assert observer.counts == {"nodes_for_job": 1, "binding": 3}


@pytest.mark.parametrize("key", ["pipelining", "limited_resources"])
def test_a_pod_that_waits_for_room_is_told_with_its_node(key: str) -> None:
    objects = [pod_group("e", phase="Running"), pod("e-0", group="e", on="n", cpu=3, deleting=True), *gang(cpu=2)]
    (fields,) = told(key, *objects)
    assert (fields["task"], fields["node"]) == ("g-0", "n")
    if key == "pipelining":
        assert (fields["request"].milli_cpu, fields["releasing"].vector[CPU]) == (2000, 3000)
