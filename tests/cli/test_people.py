"""Commands for people: what they ask of the cluster, and what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.main import main
from stromboli.cli.vcctl import app, connection
from stromboli.cli.vcctl.columns import age
from stromboli.errors import AccessError
from stromboli.kube.client import Client
from stromboli.model.names import PIPELINED_NODE
from stromboli.model.reservation import Held, stated
from tests.support.live_world import gang, node, pod, queue
from tests.support.memory_server import MemoryServer

Json = dict[str, Any]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> MemoryServer:
    """A cluster with queues, a job and its pods; the commands reach it."""
    server = MemoryServer()
    monkeypatch.setattr(connection, "open_client", lambda kubeconfig, master: Client(server))
    for name in ("root", "default"):
        server.put("queues", {**queue(name), "spec": {"weight": 1, "parent": "" if name == "root" else "root"}})
    server.put("jobs", job("train", "Running"))
    return server


def job(name: str, phase: str, namespace: str = "default", **spec: Any) -> Json:
    container = {"name": "main", "image": "img", "command": ["sleep", "1"],
                 "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}  # fmt: skip
    task = {"name": "t", "replicas": 3, "minAvailable": 2, "template": {"spec": {"containers": [container],
            "restartPolicy": "Never"}}}  # fmt: skip
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "labels": {"a": "b"}},
        "spec": {"queue": "default", "schedulerName": "volcano", "minAvailable": 2, "tasks": [task],
                 "plugins": {"env": []}, **spec},
        "status": {"state": {"phase": phase}, "minAvailable": 2, "running": 2, "pending": 1, "retryCount": 1,
                   "version": 1, "controlledResources": {"plugin-env": "env"},
                   "conditions": [{"status": phase, "lastTransitionTime": "2026-01-01T00:00:05Z"}]},
    }  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints."""
    assert main(arguments) == code
    found = capsys.readouterr()
    return found.out if code == 0 else found.err


# ---------------------------------------------------------------------- jobs


def test_job_list(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "job", "list") == (
        "Name    Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    "
        "Unknown     RetryCount\n"
        "train   2026-01-01     Running     Batch       3           2     1         2         0           0         "
        "0           1\n"
    )
    server.put("jobs", job("other", "Pending", "far", queue="q2"))
    table = said(capsys, "job", "list", "--all-namespaces").splitlines()
    assert [line.split()[:2] for line in table] == [["Namespace", "Name"], ["default", "train"], ["far", "other"]]
    for flags in (["-n", "none"], ["-q", "q2"], ["-S", "mine"], ["--selector", "xyz"]):
        assert said(capsys, "job", "list", *flags) == "No resources found\n"
    assert "train" in said(capsys, "job", "list", "--selector", "rai", "-q", "default", "-S", "volcano")


def test_job_view(server: MemoryServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"kind": "Job", "name": "train", "uid": "uid-of-train"}
    event = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": about, "type": "Warning",
             "reason": "PodGroupPending", "message": "too large", "lastTimestamp": "2026-01-01T00:00:09Z",
             "firstTimestamp": "2026-01-01T00:00:00Z", "count": 3,
             "source": {"component": "vc-controller-manager"}}  # fmt: skip
    server.put("events", event)
    server.put("events", {**event, "metadata": {"name": "x", "namespace": "default"},
                          "involvedObject": {**about, "uid": "x"}, "message": "of another"})  # fmt: skip
    server.put("events", {"metadata": {"name": "bare", "namespace": "default"}, "involvedObject": about})
    monkeypatch.setattr("time.time", lambda: 1_767_225_609.0 + 90)
    text = said(capsys, "job", "view", "-N", "train")
    for line in (
        "Name:       train", 'Labels:     {"a": "b"}', "Annotations:<none>", "  Min Available:      2", "    env:",
        "    Name: t", "    Replicas: 3", "        Image: img", "        Command: sleep 1", "          cpu: 2",
        "  Running:       2", "  RetryCount:    1", "    Phase: Running", "    plugin-env: env",
        "    Running        2026-01-01T00:00:05Z",
        "Warning   PodGroupPending     90s (x3 over 99s)     vc-controller-manager   too large",
        f"{'':30}<unknown>",
    ):  # fmt: skip
        assert line in text.splitlines(), line
    assert "of another" not in text
    for name in ("e", "bare"):
        server.drop("events", name, "default")
    assert said(capsys, "job", "view", "--name", "train").splitlines()[-1] == "Events:     <none>"


def test_job_run(server: MemoryServer, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = said(capsys, "job", "run", "-N", "hello", "-n", "ns", "-i", "img", "-m", "2", "-r", "3", "-R", "cpu=2")
    assert text == "run job hello successfully\n"
    made = server.get("jobs", "hello", "ns")
    assert made["spec"]["minAvailable"] == 2
    (task,) = made["spec"]["tasks"]
    assert task["replicas"] == 3
    assert task["template"]["metadata"]["labels"] == {"job.volcano.sh": "hello"}
    assert task["template"]["spec"]["containers"] == [{
        "name": "hello", "image": "img", "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1000m", "memory": "100Mi"}},
    }]  # fmt: skip
    file = tmp_path / "job.yaml"
    file.write_text("metadata: {name: filed}\nspec: {minAvailable: 4}\n")
    assert said(capsys, "job", "run", "-f", str(file)) == "run job filed successfully\n"
    assert server.get("jobs", "filed", "default")["spec"] == {"minAvailable": 4}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["job", "run"], "Failed to job run: job name cannot be left blank"),
        (["job", "run", "-f", "x.json"], "Failed to job run: only support yaml file"),
        (["job", "run", "-N", "a", "-R", "cpu=much"], "Failed to job run: cpu=much: 'much' is not a quantity"),
        (["job", "run", "-N", "train"], "Failed to job run: AlreadyExists"),
        (["job", "view"], "Failed to job view: job name is mandatory to view a particular job"),
        (["job", "delete"], "Failed to job delete: job name is mandatory to delete a particular job"),
        (["job", "suspend", "-N", "none"], 'Failed to job suspend: jobs "none" not found'),
        (["queue", "get"], "Failed to queue get: name is mandatory to get the particular queue details"),
        (["queue", "operate"], "Failed to queue operate: queue name must be specified"),
        (["queue", "operate", "-n", "q"], "Failed to queue operate: action can not be null"),
        (["queue", "operate", "-n", "q", "-a", "x"],
         "Failed to queue operate: action x invalid, valid actions are open, close and update"),
        (["queue", "operate", "-n", "q", "-a", "update"],
         "Failed to queue operate: when update queue q, weight must be specified, the value must be greater than 0"),
        (["queue", "delete"], "Failed to queue delete: queue name must be specified"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("server")
def test_failures(arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, *arguments, code=2).startswith(error)
    assert app.main(arguments) == 255


def test_a_cluster_that_cannot_be_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def unknown(kubeconfig: str, master: str) -> Client:
        raise AccessError("no cluster is named", file=kubeconfig)

    monkeypatch.setattr(connection, "open_client", unknown)
    assert said(capsys, "queue", "list", "-k", "mine", code=2) == "Failed to queue list: mine: no cluster is named\n"


@pytest.mark.parametrize(("word", "action"), [("suspend", "AbortJob"), ("resume", "ResumeJob")])
def test_job_suspend_and_resume_are_commands(server: MemoryServer, word: str, action: str) -> None:
    assert main(["job", word, "-N", "train"]) == 0
    (made,) = server.all("commands")
    assert made["metadata"]["name"].startswith(f"train-{action.lower()}-")
    assert made["metadata"]["namespace"] == "default"
    assert (made["action"], made["target"]["kind"], made["target"]["uid"]) == (action, "Job", "uid-of-train")


def test_job_delete(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "job", "delete", "-N", "train") == "delete job train successfully\n"
    assert server.all("jobs") == []


def test_job_explain(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("nodes", node("n1", cpu=4))
    gang(server, "big", 3, cpu=2)
    text = " ".join(said(capsys, "job", "explain", "-N", "big", "-n", "ns").split())
    assert text.startswith("job ns/big: waits: 3 pods without a node, 3 needed at once")
    assert "1 more node like n1" in text
    assert server.bindings == [], "nothing of it is carried out"


@pytest.mark.parametrize("option", ["--from", "--to"])
def test_times_of_a_record_are_refused_without_one(
    server: MemoryServer, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert main(["job", "explain", "-N", "big", "-n", "ns", option, "2026-11-20T10:00:00Z"]) == 2
    assert "goes with --record" in capsys.readouterr().err


def test_a_job_is_explained_before_it_has_pods(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("nodes", node("n1", cpu=4))
    meta = {"name": "train-uid-of-train", "namespace": "default"}
    spec = {"minMember": 2, "queue": "default", "minResources": {"cpu": "99"}}
    server.put("podgroups", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
    text = said(capsys, "job", "explain", "-N", "train")
    assert text.startswith("job default/train-uid-of-train: waits")
    assert said(capsys, "job", "explain", "-N", "none", code=2).startswith("stromboli: there is no job default/none")


def noted(manager: str, time: object, *annotations: str, **more: Any) -> Json:
    """What an API server notes in ``managedFields`` of the client that has written annotations of a pod."""
    fields: Json = {"f:metadata": {"f:annotations": {f"f:{name}": {} for name in annotations}}}
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
            "fieldsV1": fields, **more}  # fmt: skip


def made_by_controllers() -> Json:
    """What it notes of the client that created the pod, later than the reservation."""
    made = noted("kube-controller-manager", "2026-05-01T00:00:00Z", ".", "scheduling.k8s.io/group-name")
    made["fieldsV1"]["f:spec"] = {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}, "f:schedulerName": {}}
    return made


HELD = "volcano.sh/pipelined-status", PIPELINED_NODE
HELD_AT = noted("stromboli", "2026-01-02T03:04:05Z", *HELD)
CONDITION = noted("stromboli", "2026-06-01T00:00:00Z", subresource="status") | {
    "fieldsV1": {"f:status": {"f:conditions": {".": {}, 'k:{"type":"PodScheduled"}': {".": {}, "f:reason": {}}}}}
}
NOTED: dict[str, tuple[list[Json], str]] = {
    "by the scheduler": ([made_by_controllers(), HELD_AT, CONDITION], " since 2026-01-02T03:04:05Z"),
    "by two": ([noted("kubectl", "2026-02-01T00:00:00Z", *HELD), HELD_AT], " since 2026-02-01T00:00:00Z"),
    "by no client": ([made_by_controllers(), CONDITION], ""),
    "without a time": ([noted("stromboli", "", *HELD)], ""),
    "at no time": ([HELD_AT, noted("kubectl", "yesterday", *HELD)], ""),
    "at a number": ([noted("stromboli", 7, *HELD)], ""),
    "of no fields": ([HELD_AT, {**HELD_AT, "fieldsV1": "f:metadata"}], ""),
}


@pytest.mark.parametrize("case", NOTED)
def test_job_explain_says_since_when_a_pod_holds_room_as_the_server_has_noted(
    server: MemoryServer, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    """However long ago that is: the clock of the timeout is the scheduler's, and restarts with it."""
    managers, since = NOTED[case]
    server.put("nodes", node("n1", cpu=4))
    for name, cpu in (("old", 4), ("new", 4)):
        gang(server, name, 1, cpu=cpu)
    old, new = (server.get("pods", name, "ns") for name in ("old-0", "new-0"))
    going = old["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    server.put("pods", {**old, "metadata": going, "spec": old["spec"] | {"nodeName": "n1"}})
    notes = new["metadata"]["annotations"] | stated(Held("n1"))
    server.put("pods", {**new, "metadata": new["metadata"] | {"annotations": notes, "managedFields": managers}})
    assert main(["job", "explain", "-N", "new", "-n", "ns"]) == 0
    text, complaints = capsys.readouterr()
    assert complaints == ""
    text = " ".join(text.split())
    assert f"new-0 holds a reservation on node n1{since}, waits for victim old-0 to end" in text


# ---------------------------------------------------------------------- queues and pods


def test_queue_list_counts_pod_groups(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    for number, phase in enumerate(("Inqueue", "Running", "Running", "Completed")):
        meta = {"name": f"g{number}", "namespace": "ns"}
        server.put("podgroups", {"metadata": meta, "spec": {"queue": "default"}, "status": {"phase": phase}})
    assert said(capsys, "queue", "list") == (
        "Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed\n"
        "root                     1       Open            0       0       0       0       0\n"
        "default                  1       Open    root    1       0       2       0       1\n"
    )
    assert said(capsys, "queue", "get", "-n", "default").splitlines()[1].split()[:3] == ["default", "1", "Open"]


def test_queue_create_operate_delete(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "queue", "create", "-n", "q", "-w", "3") == ""
    assert server.get("queues", "q")["spec"] == {"weight": 3}
    assert said(capsys, "queue", "operate", "-n", "q", "-a", "update", "-w", "5") == ""
    assert server.get("queues", "q")["spec"]["weight"] == 5
    assert said(capsys, "queue", "operate", "-n", "q", "-a", "close") == ""
    (command,) = server.all("commands")
    assert (command["action"], command["target"]["name"]) == ("CloseQueue", "q")
    assert command["metadata"]["namespace"] == "default"
    assert said(capsys, "queue", "delete", "-n", "q") == ""
    assert [found["metadata"]["name"] for found in server.all("queues")] == ["root", "default"]


def test_pod_list(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    def made(name: str, labels: Json, status: Json, **annotations: str) -> None:
        found = pod(name)
        found["metadata"] |= {"namespace": "default", "labels": labels, "annotations": annotations}
        server.put("pods", {**found, "status": status})

    of_job = {"volcano.sh/job-name": "train", "volcano.sh/queue-name": "q1"}
    ready = {"ready": True, "restartCount": 2, "state": {"running": {}}}
    made("train-t-0", of_job, {"phase": "Running", "containerStatuses": [ready]})
    broken = {"ready": False, "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    made("train-t-1", of_job, {"phase": "Pending", "containerStatuses": [broken]})
    made("plain", {}, {"phase": "Pending"}, **{"scheduling.volcano.sh/queue-name": "q2"})
    table = [line.split()[:4] for line in said(capsys, "pod", "list").splitlines()]
    assert table == [
        ["Name", "Ready", "Status", "Restart"],
        ["train-t-0", "1/1", "Running", "2"],
        ["train-t-1", "0/1", "ImagePullBackOff", "0"],
    ]
    assert "plain" in said(capsys, "pod", "list", "-q", "q2")
    assert said(capsys, "pod", "list", "-j", "none") == "No resources found\n"
    assert said(capsys, "pod", "list", "-j", "train", "-q", "q2", code=2) == (
        "Failed to pod list: the input vcjob train does not match the queue q2\n"
    )
    assert said(capsys, "pod", "list", "--all-namespaces").splitlines()[0].split()[0] == "Namespace"


def test_vcctl_speaks_the_same_words(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["job", "list"]) == 0
    assert "train" in capsys.readouterr().out
    assert app.main(["job", "explain", "-N", "none"]) == 255
    assert capsys.readouterr().err.startswith("vcctl: there is no job default/none")
    assert app.main(["version"]) == 0
    assert capsys.readouterr().out.startswith("Version: ")
    assert server.requests


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (303, "5m3s"), (600, "10m"), (3599, "59m"), (10_800, "3h"),
     (18_180, "5h3m"), (28_800, "8h"), (172_800, "2d"), (277_200, "3d5h"), (691_200, "8d"), (63_072_000, "2y"),
     (64_000_000, "2y10d"), (300_000_000, "9y")],
)  # fmt: skip
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text


# ---------------------------------------------------------------------- the live view


def test_top_prints_one_view_without_a_terminal(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("nodes", node("n1", cpu=4))
    gang(server, "small", 1)
    server.put("pods", {**server.get("pods", "small-0", "ns"), "spec": {**pod("x")["spec"], "nodeName": "n1"},
                        "status": {"phase": "Running"}})  # fmt: skip
    server.put("pods", {**pod("over-0", "over"), "status": {"phase": "Succeeded"}})  # its job is, and its PodGroup gone
    gang(server, "large", 9)
    group = server.get("podgroups", "large", "ns")
    condition = {"type": "Unschedulable", "status": "True", "message": "9/9 tasks in gang unschedulable",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    server.put("podgroups", {**group, "status": {**group["status"], "conditions": [condition]}})
    lines = said(capsys, "top").splitlines()
    assert "1 pod placed, 9 waiting, 2 jobs, 1 node" in lines[0]
    assert not any("missing" in line for line in lines)
    assert any("default: ns/large waits: 9/9 tasks in gang unschedulable" in line for line in lines)
    (row,) = [line for line in lines if line.startswith("n1")]
    assert "25%" in row
    (row,) = [line for line in lines if line.startswith("default ")]
    assert row.split()[:5] == ["default", "Open", "1", "1", "9"]
