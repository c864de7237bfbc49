from __future__ import annotations

import pytest

from stromboli.model.names import COOLDOWN_TIME
from stromboli.narration.observe import Counting
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import NOW, Bench, conf, task_of

SCHEDULED = "1970-01-12T13:45:40Z"  # 60 s before NOW


def running(name, label=None, annotation=None, phase="Running", status="True", since=SCHEDULED):
    labels = {} if label is None else {COOLDOWN_TIME: label}
    notes = {} if annotation is None else {COOLDOWN_TIME: annotation}
    found = pod(name, group="g", on="n1", phase=phase, labels=labels, annotations=notes)
    found["status"]["conditions"] = [{"type": "PodScheduled", "status": status, "lastTransitionTime": since}]
    return found


def victims(*pods):
    bench = Bench([node("n1", cpu=99, memory="64Gi"), pod_group("g"), *pods, pod("new", group="h")], conf("cdp"))
    with bench.open() as session:
        tasks = [task_of(session, each["metadata"]["name"]) for each in pods]
        actor = task_of(session, "new")
        found = session.ask.preemptable(actor, tasks)
        assert session.ask.reclaimable(actor, tasks) == found
        return [task.name for task in found]


@pytest.mark.parametrize(
    ("fields", "goes"),
    [
        ({}, True),
        ({"label": "59s"}, True),
        ({"label": "60s"}, True),
        ({"label": "61s"}, False),
        ({"label": "1h"}, False),
        ({"annotation": "1h"}, False),
        ({"label": "1s", "annotation": "1h"}, True),
        ({"label": "soon", "annotation": "1h"}, True),
        ({"label": "1h", "phase": "Pending"}, True),
        ({"label": "1h", "status": "False"}, True),
        ({"label": "1h", "since": None}, True),
    ],
    ids=["none", "over", "at-its-end", "under-way", "label", "annotation", "label-first", "unreadable", "not-running",
         "not-scheduled", "no-time"],
)  # fmt: skip
def test_a_pod_keeps_its_place_for_a_while_after_it_was_scheduled(fields, goes):
    assert NOW == 1_000_000.0
    assert victims(running("p", **fields)) == (["p"] if goes else [])


def test_at_its_end_a_pod_goes_and_nothing_is_said_of_it():
    observer = Counting(("spared",))
    pods = [running("a", label="60s"), running("b", label="61s")]
    with Bench([node("n1"), pod_group("g"), *pods, pod("new", group="h")], conf("cdp")).open(observer) as session:
        session.ask.preemptable(task_of(session, "new"), [task_of(session, name) for name in "ab"])
    assert [(told["task"], told["why"]) for _, told in observer.told] == [
        ("default/b", "its cooldown time ends in 1 s")
    ]


def test_a_pod_without_a_time_has_none_when_time_begins():
    bench = Bench([node("n1"), pod_group("g"), running("p"), pod("new", group="h")], conf("cdp"))
    with bench.open(now=0.0) as session:
        tasks = [task_of(session, "p")]
        assert session.ask.preemptable(task_of(session, "new"), tasks) == tasks


def test_others_go():
    assert victims(running("a", label="1h"), running("b"), running("c", annotation="2m")) == ["b"]


def test_it_says_which_tasks_it_permits_and_what_it_cannot_read():
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"c{v}"}, "value": v}
        for v in (1, 9)
    ]
    groups = [pod_group("g", priorityClassName="c1", min_member=0), pod_group("h", priorityClassName="c9")]
    pods = [running("a", label="1h"), running("b", label="soon"), pod("new", group="h")]
    objects = [node("n1", cpu=2), *classes, *groups, *pods]
    bench = Bench(objects, conf("gang priority cdp predicates", actions="preempt"))
    lines = bench.logged(4)
    assert "Victims from cdp plugins are [default/b]" in lines
    assert f"invalid time duration {COOLDOWN_TIME}=soon" in lines
    assert [eviction.key for eviction in bench.plan.evictions] == ["default/b"]
    alone = [each for each in objects if each["metadata"]["name"] != "b"]
    full = Bench([node("n1", cpu=1), *alone[1:]], conf("gang priority cdp predicates", actions="preempt"))
    assert full.cycle().evictions == []
