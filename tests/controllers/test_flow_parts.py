"""Parts of JobFlows: what addresses have answered, which pods are asked, and what a flow replaces in a template."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.api.batch import Job
from stromboli.api.flow import Probe
from stromboli.api.read import read
from stromboli.controllers.changes import Target
from stromboli.controllers.job_flows import probes
from stromboli.controllers.job_flows.probes import LONGEST, PERIOD, Answers, verdict
from stromboli.controllers.job_flows.steps import _patched
from stromboli.controllers.pods import pod_view
from stromboli.controllers.world import World

A, B, C = (Target(address, 80, "", None) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3"))


def test_answers_count_for_a_while_and_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "REMEMBERED", 2)
    answers = Answers()
    assert (answers.known(A, 5.0), answers.heard(A)) == (None, 0.0)
    answers.note(A, True, 10.0)
    answers.note(B, False, 11.0)
    assert [answers.known(A, 10.0 + later) for later in (0, PERIOD - 0.5, PERIOD)] == [True, True, None]
    assert (answers.known(B, 11.0), answers.heard(B)) == (False, 11.0)
    answers.note(A, False, 12.0)
    answers.note(C, True, 13.0)
    assert [answers.heard(one) for one in (A, B, C)] == [12.0, 0.0, 13.0], "what was heard longest ago is forgotten"


def job(counts: dict[str, int] | None = None, replicas: int = 2) -> Job:
    status = {"taskStatusCount": {"t": {"phase": counts}}} if counts is not None else {}
    metadata = {"name": "j", "namespace": "ns", "uid": "u"}
    spec = {"tasks": [{"name": "t", "replicas": replicas}, {"name": "other", "replicas": 0}]}
    return read(Job, {"metadata": metadata, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("counts", "task", "waits"),
    [
        (None, "t", "0 of 2 pods of task t are Running"),
        ({"Pending": 2}, "t", "0 of 2 pods of task t are Running"),
        ({"Running": 1}, "t", "1 of 2 pods of task t are Running"),
        ({"Running": 2}, "t", ""),
        ({"Running": 3}, "t", ""),
        ({"Running": 2}, "none", "no job that it waits for has a task none"),
    ],
)
def test_a_flow_waits_until_all_pods_of_a_task_are_in_a_phase(
    counts: dict[str, int] | None, task: str, waits: str
) -> None:
    probe = read_probe({"taskStatusList": [{"taskName": task, "phase": "Running"}]})
    found = verdict(probe, [job(counts)], World(), Answers(), 0.0)
    assert (found.holds, found.ask, found.waits) == (not waits, (), waits)


def read_probe(value: dict[str, Any]) -> Probe:
    return msgspec.convert(value, Probe)


def pods(*rows: tuple[str, str, str, bool]) -> World:
    """Pods by name, task, address, and whether they are being deleted; those of names with x are another job's."""
    world = World()
    for name, task, address, going in rows:
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "controller": True}
        metadata: dict[str, Any] = {"name": name, "namespace": "ns", "uid": name}
        metadata["annotations"] = {
            "volcano.sh/task-spec": task,
            "volcano.sh/job-name": "j",
            "volcano.sh/job-version": "0",
        }
        metadata["ownerReferences"] = [{**owner, "uid": "another" if "x" in name else "u"}]
        if going:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        world.pods.put(pod_view(msgspec.json.encode({"metadata": metadata, "status": {"podIP": address}})))
    return world


NONE = "task t has no pod yet with an address of its own that may be asked"


@pytest.mark.parametrize(
    ("world", "asked"),
    [
        (pods(("a", "t", "10.0.0.1", False), ("b", "t", "10.0.0.2", False)), ["10.0.0.1", "10.0.0.2"]),
        (pods(("b", "t", "10.0.0.2", False), ("a", "t", "10.0.0.1", False)), ["10.0.0.1", "10.0.0.2"]),
        (pods(("a", "t", "10.0.0.1", False), ("b", "other", "10.0.0.2", False)), ["10.0.0.1"]),
        (pods(("a", "t", "10.0.0.1", False), ("x", "t", "10.0.0.2", False)), ["10.0.0.1"]),
        (pods(("a", "t", "10.0.0.1", False), ("b", "t", "10.0.0.2", True)), ["10.0.0.1"]),
        (pods(("a", "t", "10.0.0.1", False), ("b", "t", "", False)), []),
        (pods(("a", "t", "10.0.0.1", False), ("b", "t", "127.0.0.1", False)), []),
        (pods(), []),
    ],
)
def test_all_pods_of_a_task_are_asked_or_none(world: World, asked: list[str]) -> None:
    probe = read_probe({"tcpSocketList": [{"taskName": "t", "port": 80}]})
    found = verdict(probe, [job()], world, Answers(), 0.0)
    assert ([target.address for target in found.ask], found.waits) == (asked, "" if asked else NONE)
    assert found.holds is False


@pytest.mark.parametrize(("most", "asks"), [(2, 2), (1, 0)])
def test_so_many_addresses_are_asked_for_one_flow(most: int, asks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MOST_TARGETS", most)
    world = pods(("a", "t", "10.0.0.1", False), ("b", "t", "10.0.0.2", False))
    found = verdict(read_probe({"tcpSocketList": [{"taskName": "t", "port": 80}]}), [job()], world, Answers(), 0.0)
    assert (len(found.ask), "too many to be asked" in found.waits) == (asks, not asks)


def test_paths_and_headers_are_asked_up_to_so_many_characters() -> None:
    long = "x" * (LONGEST + 1)
    stated = {"taskName": "t", "port": 80, "path": long, "httpHeader": {"name": long, "value": f"/{long}"}}
    world = pods(("a", "t", "10.0.0.1", False))
    (target,) = verdict(read_probe({"httpGetList": [stated]}), [job()], world, Answers(), 0.0).ask
    assert (LONGEST, target.path, target.header) == (1024, f"/{long[:-1]}", (long[:-1], f"/{long[:-2]}"))


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        ({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}),
        ({"a": {"x": 1}}, {"a": 3}, {"a": 3}),
        ({"a": 3}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]}, {"a": [{"name": "y", "v": 3}, {"name": "z"}]},
         {"a": [{"name": "x", "v": 1}, {"name": "y", "v": 3}, {"name": "z"}]}),
        ({"a": [{"name": "x"}]}, {"a": [{"v": 1}]}, {"a": [{"v": 1}]}),
        ({"a": [{"name": "x"}]}, {"a": ["x"]}, {"a": ["x"]}),
        ({"a": [{"name": "x"}]}, {"a": [{"name": "x"}, {"name": ""}]}, {"a": [{"name": "x"}, {"name": ""}]}),
        ({"a": [{"name": "x", "v": 1}]}, {"a": [{"name": "y"}, {"name": "y"}]}, {"a": [{"name": "y"}, {"name": "y"}]}),
    ],
)  # fmt: skip
def test_what_a_flow_states_replaces_what_the_template_says(old: Any, new: Any, merged: Any) -> None:
    assert _patched(old, new) == merged
