"""JobFlows and JobTemplates: the order of jobs, probes, failures, retain policies, statuses."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.flow import JobFlow
from stromboli.api.kinds import JOB_FLOWS, JOB_TEMPLATES, JOBS
from stromboli.api.read import read
from stromboli.controllers.changes import Create, Delete, Patch, Query, Target
from stromboli.controllers.job_flows import look
from stromboli.controllers.job_flows.probes import MOST_TARGETS, PERIOD, Answers, may_be_asked
from stromboli.controllers.manager import Settings
from stromboli.controllers.work import About
from stromboli.model.values.times import stamp
from tests.controllers.cluster import START, Broken, Cluster, Manifest, task

ONLY = Settings(looks=frozenset({About.job_flow, About.job_template}))
DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


class Flows(Cluster):
    """A cluster with one JobFlow; jobs do only what the test says."""

    def __init__(self, steps: dict[str, Any], policy: str = "retain", *, without: str = "") -> None:
        super().__init__(ONLY)
        for name in steps:
            if name != without:
                self.template(name)
        flows = [
            {"name": name, **(needs if isinstance(needs, dict) else _after(needs))} for name, needs in steps.items()
        ]
        self.store(JOB_FLOWS, {"metadata": {"name": "f", "namespace": "ns"},
                               "spec": {"flows": flows, "jobRetainPolicy": policy}})  # fmt: skip
        self.settle()

    def template(self, name: str) -> None:
        spec = {"tasks": [task("t", 2)], "minAvailable": 2, "queue": "q"}
        self.store(JOB_TEMPLATES, {"metadata": {"name": name, "namespace": "ns"}, "spec": spec})

    def jobs(self) -> list[str]:
        return sorted(name for _, name in self.objects.get(JOBS, {}))

    def end(self, *names: str, phase: str = "Completed", **status: Any) -> None:
        """Jobs come to a phase."""
        for name in names:
            self.now += 10
            self.change(JOBS, f"f-{name}", {"status": {"state": {"phase": phase}, **status}})
            self.settle()

    def status(self) -> Any:
        return self.objects[JOB_FLOWS]["ns", "f"].get("status", {})

    def flow_phase(self) -> str:
        return str(self.status()["state"]["phase"])

    def reasons(self) -> set[str]:
        return {event.reason for event in self.events}

    def pod(self, name: str, job: str, address: str, **spec: Any) -> None:
        owner = {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "name": job, "controller": True,
                 "uid": self.objects[JOBS]["ns", job]["metadata"]["uid"]}  # fmt: skip
        marks = {"volcano.sh/task-spec": "t", "volcano.sh/job-name": job, "volcano.sh/job-version": "0"}
        meta = {"name": name, "namespace": "ns", "annotations": marks, "ownerReferences": [owner]}
        self.store("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Running", "podIP": address}})


def _after(targets: list[str]) -> Manifest:
    return {"dependsOn": {"targets": targets}} if targets else {}


def test_a_diamond_runs_from_top_to_bottom() -> None:
    flows = Flows(DIAMOND)
    assert (flows.jobs(), flows.flow_phase()) == (["f-a"], "Pending")
    flows.end("a", phase="Pending")
    flows.end("a", phase="Running")
    assert (flows.jobs(), flows.flow_phase()) == (["f-a"], "Running")
    flows.end("a")
    assert flows.jobs() == ["f-a", "f-b", "f-c"]
    flows.end("b")
    assert flows.jobs() == ["f-a", "f-b", "f-c"], "one of two is not enough"
    flows.end("c")
    flows.end("d", phase="Running")
    status = flows.status()
    assert status["completedJobs"] == ["f-a", "f-b", "f-c"]
    assert (status["runningJobs"], flows.flow_phase()) == (["f-d"], "Running")
    flows.end("d", runningDuration="90s", retryCount=1)
    status = flows.status()
    assert flows.flow_phase() == "Succeed"
    row = next(row for row in status["jobStatusList"] if row["name"] == "f-d")
    assert [one["state"] for one in row["runningHistories"]] == ["Running", "Completed"]
    assert (
        row["runningHistories"][0]["endTimestamp"] == row["runningHistories"][1]["startTimestamp"] == stamp(flows.now)
    )
    made = flows.objects[JOBS]["ns", "f-d"]["metadata"]["creationTimestamp"]
    assert (row["startTimestamp"], row["restartCount"]) == (made, 1)
    assert row["endTimestamp"] == stamp(START + 50 + 90)
    assert status["conditions"]["f-d"] == {"phase": "Completed", "createTime": made, "runningDuration": "90s"}
    assert [event.message for event in flows.events] == [f"create a job named f-{name}!" for name in "abcd"]
    assert all(event.happened for event in flows.events)
    assert flows.manager.job_flows.endings == {("ns", "Succeed"): 1}


def test_a_job_bears_what_it_was_made_of() -> None:
    flows = Flows({"a": []})
    made = flows.objects[JOBS]["ns", "f-a"]
    marks = {"volcano.sh/createdByJobTemplate": "ns.a", "volcano.sh/createdByJobFlow": "ns.f"}
    assert made["metadata"]["labels"] == made["metadata"]["annotations"] == marks
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("JobFlow", "f", True)
    assert made["spec"] == flows.objects[JOB_TEMPLATES]["ns", "a"]["spec"]
    assert flows.objects[JOB_TEMPLATES]["ns", "a"]["status"] == {"jobDependsOnList": ["f-a"]}
    flows.remove(JOBS, "f-a")
    flows.settle()
    assert flows.jobs() == ["f-a"], "what was deleted before it was done is made again"


def test_what_a_flow_changes_in_its_template() -> None:
    container = {"name": "main", "image": "other", "resources": {"requests": {"memory": "1Gi"}}}
    tasks = [
        {"name": "t", "replicas": 5, "template": {"spec": {"containers": [container]}}},
        {"name": "new", "replicas": 1},
    ]
    flows = Flows({"a": {"patch": {"jobSpec": {"queue": "urgent", "tasks": tasks}}}})
    spec = flows.objects[JOBS]["ns", "f-a"]["spec"]
    assert (spec["queue"], spec["minAvailable"], [one["name"] for one in spec["tasks"]]) == ("urgent", 2, ["t", "new"])
    first = spec["tasks"][0]
    assert first["replicas"] == 5
    assert first["template"]["metadata"] == {"labels": {"own": "label"}}
    assert first["template"]["spec"]["containers"] == [
        {"name": "main", "image": "other", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    ]


def test_a_flow_changes_its_template_to_a_default() -> None:
    changed = {
        "schedulerName": "",
        "minAvailable": 0,
        "maxRetry": 0,
        "networkTopology": {"mode": "hard"},
        "tasks": [{"name": "t", "replicas": 0, "maxRetry": 0}],
    }
    flows = Flows({"a": {"patch": {"jobSpec": changed}}}, without="a")
    spec = {
        "schedulerName": "other",
        "minAvailable": 2,
        "maxRetry": 7,
        "queue": "q",
        "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
        "tasks": [task("t", 2) | {"maxRetry": 7}],
    }
    flows.store(JOB_TEMPLATES, {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec})
    flows.settle()
    made = flows.objects[JOBS]["ns", "f-a"]["spec"]
    assert made.pop("tasks") == [task("t", 0) | {"maxRetry": 0}]
    assert made == {key: changed.get(key, value) for key, value in spec.items() if key != "tasks"} | {
        "networkTopology": {"mode": "hard", "highestTierAllowed": 2}
    }


@pytest.mark.parametrize("phase", ["Failed", "Terminated"])
def test_a_flow_whose_job_fails_makes_nothing_more(phase: str) -> None:
    flows = Flows(DIAMOND)
    flows.end("a")
    flows.end("b", phase="Running")
    flows.end("b", phase=phase)
    assert flows.flow_phase() == "Failed"
    flows.end("c")
    assert flows.jobs() == ["f-a", "f-b", "f-c"]
    assert flows.manager.job_flows.endings == {("ns", "Failed"): 1}
    alone = Flows({"a": []})
    alone.end("a", phase=phase)
    assert alone.flow_phase() == "Failed"


def test_phases_that_are_listed_nowhere_or_as_unknown() -> None:
    flows = Flows({"a": [], "b": [], "c": []})
    flows.end("a", phase="Aborted")
    flows.end("b", phase="Completing")
    assert flows.status()["unKnowJobs"] == ["f-a", "f-c"]
    assert flows.flow_phase() == "Pending"


@pytest.mark.parametrize(("policy", "left"), [("retain", ["f-a", "f-b"]), ("delete", []), ("", ["f-a", "f-b"])])
def test_retain_policies(policy: str, left: list[str]) -> None:
    flows = Flows({"a": [], "b": ["a"]}, policy)
    flows.end("a", "b")
    assert (flows.jobs(), flows.flow_phase()) == (left, "Succeed")
    assert flows.status()["completedJobs"] == ["f-a", "f-b"]
    flows.change(JOB_FLOWS, "f", {"metadata": {"labels": {"a": "b"}}})
    flows.settle()
    assert flows.jobs() == left, "a flow that has succeeded makes nothing again"


def test_a_completed_job_that_is_gone_counts() -> None:
    flows = Flows({"a": [], "b": ["a"]})
    flows.end("a")
    flows.remove(JOBS, "f-a")
    flows.end("b")
    assert (flows.jobs(), flows.flow_phase()) == (["f-b"], "Succeed")


def test_a_template_that_is_missing_is_told_and_keeps_no_other_waiting() -> None:
    flows = Flows({"a": [], "b": []}, without="a")
    assert flows.jobs() == ["f-b"]
    assert next(flows.told("JobTemplateNotFound")) == "JobTemplate ns/a is not there; its job is made once it is"
    flows.template("a")
    flows.settle()
    assert flows.jobs() == ["f-a", "f-b"]


def test_a_job_of_another_by_that_name_is_told() -> None:
    flows = Flows({"a": []}, without="a")
    flows.store(JOBS, {"metadata": {"name": "f-a", "namespace": "ns"}, "spec": {}})
    flows.template("a")
    flows.settle()
    assert "Job f-a exists but is not owned by this JobFlow (current owner: none)" in flows.told("ForeignJob")
    flows = Flows({"a": []}, without="a")
    owners = [{"kind": "X", "name": "one", "uid": "1"}, {"kind": "X", "name": "two", "uid": "2", "controller": True}]
    flows.store(JOBS, {"metadata": {"name": "f-a", "namespace": "ns", "ownerReferences": owners}, "spec": {}})
    flows.template("a")
    flows.settle()
    assert "Job f-a exists but is not owned by this JobFlow (current owner: two)" in flows.told("ForeignJob")


# ---------------------------------------------------------------------- probes


def probing(**probe: Any) -> Flows:
    """Two flows, the second of which waits for what the pods of the first answer."""
    flows = Flows({"a": [], "b": {"dependsOn": {"targets": ["a"], "probe": probe}}})
    flows.end("a", phase="Running", taskStatusCount={"t": {"phase": {"Running": 1, "Pending": 1}}})
    return flows


HTTP = {"httpGetList": [{"taskName": "t", "port": 80, "path": "ready", "httpHeader": {"name": "X", "value": "y"}}]}
TCP = {"tcpSocketList": [{"taskName": "t", "port": 22}]}


@pytest.mark.parametrize(
    ("probe", "targets"),
    [
        (HTTP, [Target("10.0.0.1", 80, "/ready", ("X", "y")), Target("fd00::2", 80, "/ready", ("X", "y"))]),
        (TCP, [Target("10.0.0.1", 22), Target("fd00::2", 22)]),
    ],
)
def test_a_flow_waits_until_all_pods_answer(probe: Any, targets: list[Target]) -> None:
    flows = probing(**probe)
    assert "flow b waits: task t has no pod yet" in next(flows.told("Waiting"))
    flows.pod("p0", "f-a", "10.0.0.1")
    flows.pod("p1", "f-a", "fd00::2")
    flows.answering = set(targets[:1])
    flows.wait(flows.now + 20)
    assert flows.jobs() == ["f-a"]
    assert {target for change in flows.writes if isinstance(change, Query) for target in change.targets} == set(targets)
    assert f"flow b waits: fd00::2 port {targets[1].port} does not answer well yet" in flows.told("Waiting")
    asked = sum(isinstance(change, Query) for change in flows.writes)
    assert asked <= 6, "asked every five seconds"
    flows.answering = set(targets)
    flows.wait(flows.now + 10)
    assert flows.jobs() == ["f-a", "f-b"]


def test_a_flow_waits_until_a_task_is_in_a_phase() -> None:
    flows = probing(taskStatusList=[{"taskName": "t", "phase": "Running"}])
    assert list(flows.told("Waiting"))[-1] == "flow b waits: 1 of 2 pods of task t are Running"
    flows.end("a", phase="Running", taskStatusCount={"t": {"phase": {"Running": 2, "Pending": None}}})
    assert flows.jobs() == ["f-a", "f-b"]
    wrong = probing(taskStatusList=[{"taskName": "x", "phase": "Running"}])
    assert "flow b waits: no job that it waits for has a task x" in wrong.told("Waiting")
    wrong.end("a")
    assert wrong.jobs() == ["f-a", "f-b"], "a job that has completed is asked nothing more"


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1",
     "::ffff:127.0.0.1", "::ffff:169.254.169.254", "10.0.0.1:80", "evil.example", ""],
)  # fmt: skip
def test_addresses_that_are_no_pod_s_are_never_asked(address: str) -> None:
    assert not may_be_asked(address)
    flows = probing(**TCP)
    flows.pod("p0", "f-a", address)
    flows.wait(flows.now + 20)
    assert not any(isinstance(change, Query) for change in flows.writes)


def test_pods_in_a_node_s_network_and_pods_of_others_are_never_asked() -> None:
    flows = probing(**TCP)
    flows.pod("p0", "f-a", "10.0.0.1", hostNetwork=True)
    flows.store("pods", {"metadata": {"name": "other", "namespace": "ns"}, "status": {"podIP": "10.0.0.2"}})
    flows.wait(flows.now + 20)
    assert not any(isinstance(change, Query) for change in flows.writes)


def test_of_many_pods_and_ports_a_few_are_asked() -> None:
    flows = probing(**TCP)
    for number in range(50):
        flows.pod(f"p{number:02}", "f-a", f"10.0.0.{number + 1}")
    flows.wait(flows.now + 5.1)
    [query] = [change for change in flows.writes if isinstance(change, Query)]
    assert len(query.targets) == 8
    greedy = probing(tcpSocketList=[{"taskName": "t", "port": port} for port in range(1, 60)])
    greedy.pod("p0", "f-a", "10.0.0.1")
    greedy.wait(greedy.now + 10)
    assert not any(isinstance(change, Query) for change in greedy.writes)
    assert f"more than {MOST_TARGETS} addresses" in list(greedy.told("Waiting"))[-1]


class Slow(Flows):
    """Whatever is asked takes its time."""

    def _query(self, change: Query) -> None:
        self.now += PERIOD - 1
        super()._query(change)


def test_pods_that_never_answer_keep_no_other_step_waiting() -> None:
    def probe(*ports: int) -> Manifest:
        sockets = [{"taskName": "t", "port": port} for port in ports]
        return {"dependsOn": {"targets": ["a"], "probe": {"tcpSocketList": sockets}}}

    dead = {f"dead{number}": probe(*range(100 * number, 100 * number + MOST_TARGETS)) for number in range(1, 5)}
    flows = Slow({"a": [], "good": probe(22), **dead, "next": ["a"]})
    flows.end("a", phase="Running", taskStatusCount={"t": {"phase": {"Running": 2}}})
    flows.pod("p0", "f-a", "10.0.0.1")
    flows.answering = {Target("10.0.0.1", 22)}
    flows.wait(flows.now + 60)
    assert flows.jobs() == ["f-a", "f-good"]
    assert max(len(change.targets) for change in flows.writes if isinstance(change, Query)) <= MOST_TARGETS
    flows.end("a")
    assert "f-next" in flows.jobs()


def test_of_more_questions_than_are_asked_at_once_those_come_first_that_were_answered_longest_ago() -> None:
    """A step is asked about as a whole, and how long ago is that of its pod that was heard of longest ago."""

    def probe(*ports: int) -> Manifest:
        sockets = [{"taskName": "t", "port": port} for port in ports]
        return {"dependsOn": {"targets": ["a"], "probe": {"tcpSocketList": sockets}}}

    half = MOST_TARGETS // 2
    steps = {"x": probe(1, 2), "y": probe(*range(10, 10 + half)), "z": probe(*range(100, 100 + half)), "w": {}}
    flows = Flows({"a": [], **{name: step for name, step in steps.items() if step}})
    flows.pod("p0", "f-a", "10.0.0.1")
    answers = flows.manager.job_flows.answers
    for port, heard in ((1, 5.0), (2, 900.0), *((port, 7.0) for port in range(10, 10 + half))):
        answers.note(Target("10.0.0.1", port), False, heard)
    for port in range(100, 100 + half):
        answers.note(Target("10.0.0.1", port), False, 3.0)
    flows.writes.clear()
    flows.end("a", phase="Running")
    first = next(change for change in flows.writes if isinstance(change, Query))
    ports = [target.port for target in first.targets]
    assert ports == [*range(100, 100 + half), 1, 2], "of the others there is no room for all"
    del steps["x"]
    flows = Flows({"a": [], **{name: step for name, step in steps.items() if step}})
    flows.pod("p0", "f-a", "10.0.0.1")
    flows.writes.clear()
    flows.end("a", phase="Running")
    first = next(change for change in flows.writes if isinstance(change, Query))
    assert len(first.targets) == MOST_TARGETS, "as many as may be"


def test_jobs_whose_turn_it_is_are_made_before_anything_is_asked() -> None:
    flows = Flows({"a": [], "b": {"dependsOn": {"targets": ["a"], "probe": TCP}}, "c": [], "d": ["c"]})
    flows.end("a", phase="Running")
    flows.pod("p0", "f-a", "10.0.0.1")
    flows.wait(flows.now + 10)
    before = len(flows.writes)
    flows.end("c")
    sorts = [type(change) for change in flows.writes[before:] if isinstance(change, Create | Query)]
    assert sorts[:2] == [Create, Query]


# ---------------------------------------------------------------------- bounds and failures


def test_a_flow_of_many_jobs_is_made_in_parts_and_one_of_too_many_not_at_all() -> None:
    flows = Flows({f"s{number}": [] for number in range(120)})
    flows.wait(flows.now + 2)
    assert len(flows.jobs()) == 120
    huge = Flows({f"s{number}": [] for number in range(1001)})
    assert (huge.jobs(), huge.reasons()) == ([], {"TooManyFlows"})


def test_the_most_flows_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "MOST_FLOWS", 2)
    assert Flows({name: [] for name in "ab"}).jobs() == ["f-a", "f-b"]
    assert Flows({name: [] for name in "abc"}).jobs() == []


@pytest.mark.parametrize("names", ["bc", "cb"])
def test_a_flow_with_something_to_ask_is_looked_at_soon_whatever_else_waits(names: str) -> None:
    probes = {"b": TCP, "c": {"taskStatusList": [{"taskName": "t", "phase": "Running"}]}}
    flows = Flows({"a": [], **{name: {"dependsOn": {"targets": ["a"], "probe": probes[name]}} for name in names}})
    flows.end("a", phase="Running", taskStatusCount={"t": {"phase": {"Running": 1}}})
    flows.pod("p0", "f-a", "10.0.0.1")
    flow = flows.manager.world.job_flows.get("ns", "f")
    assert flow is not None
    assert look.Look(flow, flows.manager.world, Answers(), START).outcome().after == look.SOON


@pytest.mark.parametrize(("count", "after"), [(2, None), (3, look.SOON)])
def test_what_one_look_does_not_make_is_made_soon(
    count: int, after: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "MOST_MADE", 2)
    flows = Flows({})
    for name in "abc":
        flows.template(name)
    steps = [{"name": name} for name in "abc"[:count]]
    flow = read(JobFlow, {"metadata": {"name": "f", "namespace": "ns", "uid": "u"}, "spec": {"flows": steps}})
    outcome = look.Look(flow, flows.manager.world, Answers(), START).outcome()
    assert outcome.after == after
    assert sum(isinstance(change, Create) for change in outcome.changes()) == 2


def test_histories_of_jobs_are_bounded() -> None:
    flows = Flows({"a": []})
    for _ in range(30):
        flows.end("a", phase="Running")
        flows.end("a", phase="Restarting")
    [row] = flows.status()["jobStatusList"]
    assert len(row["runningHistories"]) == 20


def test_names_too_long_for_labels_stand_in_annotations() -> None:
    name = "a" * 70
    flows = Flows({name: []})
    meta = flows.objects[JOBS]["ns", f"f-{name}"]["metadata"]
    assert meta["labels"] == {"volcano.sh/createdByJobFlow": "ns.f"}
    assert flows.objects[JOB_TEMPLATES]["ns", name]["status"]["jobDependsOnList"] == [f"f-{name}"]


def test_no_job_is_made_twice_wherever_a_controller_ends() -> None:
    whole = _writes_until_killed(10**6)
    assert whole > 12
    for writes in range(whole):
        _writes_until_killed(writes)


def _writes_until_killed(writes: int) -> int:
    flows = Flows({}, "delete")
    stored, mortal = flows.apply, iter(range(writes))

    def apply(change: Any) -> None:
        if isinstance(change, Create | Patch | Delete) and next(mortal, None) is None:
            flows.apply = stored  # type: ignore[method-assign]
            flows.manager, flows.later = Cluster(ONLY).manager, {}
            for resource in (JOB_TEMPLATES, JOBS, JOB_FLOWS):
                for found in list(flows.objects.get(resource, {}).values()):
                    flows.store(resource, found)
            raise Broken
        stored(change)

    flows.apply = apply  # type: ignore[method-assign]
    for name in DIAMOND:
        flows.template(name)
    steps = [{"name": name, **_after(needs)} for name, needs in DIAMOND.items()]
    flows.change(JOB_FLOWS, "f", {"spec": {"flows": steps}})
    flows.settle()
    for name in DIAMOND:
        if ("ns", f"f-{name}") in flows.objects[JOBS]:
            flows.end(name)
    flows.settle()
    made = [change.body["metadata"] for change in flows.writes if isinstance(change, Create)]
    assert [meta["name"] for meta in made] == ["f-a", "f-b", "f-c", "f-d"]  # type: ignore[index]
    assert (flows.jobs(), flows.flow_phase()) == ([], "Succeed")
    return sum(isinstance(change, Create | Patch | Delete) for change in flows.writes)


def test_a_flow_that_is_being_deleted_makes_nothing() -> None:
    flows = Flows({"a": [], "b": ["a"]})
    flows.change(JOB_FLOWS, "f", {"metadata": {"deletionTimestamp": stamp(flows.now)}})
    flows.end("a")
    assert flows.jobs() == ["f-a"]
