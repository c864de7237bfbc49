"""Simulated kubelets: what nodes look like, how long pods run, and what they write to the cluster."""

from __future__ import annotations

import asyncio
import gc

import pytest

from stromboli.cluster.lives import FOREVER, Run, commanded, life_of
from stromboli.errors import ShapeError, StromboliError
from stromboli.server.api import Api
from stromboli.server.controllers.outages import silenced
from stromboli.server.kubelet import kubelets, statuses
from stromboli.server.kubelet.cluster import MERGE, STRATEGIC, Inside
from stromboli.server.kubelet.kubelets import NOT_READY, Kubelets
from stromboli.server.kubelet.shapes import nodes_of
from tests.server.browser import PODS, pod

COMMANDS = [
    ((), FOREVER),
    (("nginx", "-g"), FOREVER),
    (("sleep", "20"), Run(20)),
    (("/bin/sleep", "1.5m"), Run(90)),
    (("sh", "-c", "sleep 3; exit 7"), Run(3, 7)),
    (("sh", "-c", "echo hi && sleep 2 && sleep 1"), Run(3)),
    (("bash", "-ec", "python train.py; sleep 2"), FOREVER),
    (("sh", "-c", "exit 3; sleep 100"), Run(0, 3)),
    (("sh", "-c", "it's open"), FOREVER),
    (("sh", "-c", " "), Run(0)),
    (("sh", "-c", ";; exit 4"), Run(0, 4)),
    (("sleep", "9" * 400), FOREVER),
    (("false",), Run(0, 1)),
    (("exit", "259"), Run(0, 3)),
    (("exit", "\u00b2"), Run(0, 0)),
]


@pytest.mark.parametrize(("words", "run"), COMMANDS)
def test_a_command_says_how_long_it_runs(words, run):
    assert commanded(words) == run


def _told(**annotations):
    keys = {f"simulation.stromboli.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return pod("a", container={"command": ["sleep", "9"]}, metadata={"annotations": keys})


LIVES = [
    ({}, (0, 9, 0, 0)),
    ({"run_for": "1m30s", "exit_code": "4"}, (0, 90, 4, 0)),
    ({"run_for": "forever"}, (0, None, 0, 0)),
    ({"exit_code": "2"}, (0, 9, 2, 0)),
    ({"run_for": "7.5", "stop_after": "2"}, (0, 7.5, 0, 2)),
    ({"exit_code": "\u00b2", "start_after": "\u00b2", "run_for": "9" * 5000}, (0, None, 0, 0)),
    ({"start_after": "3s", "stop_after": "500ms"}, (3, 9, 0, 0.5)),
]


@pytest.mark.parametrize(("annotations", "life"), LIVES)
def test_annotations_go_before_the_command(annotations, life):
    found = life_of(_told(**annotations))
    assert (found.start_after, found.run.seconds, found.run.exit_code, found.stop_after) == life


@pytest.mark.parametrize(
    ("annotations", "seconds"),
    [({}, 0), ({"stop_after": "20s"}, 20), ({"stop_after": "50s"}, 30), ({"stop_after": "1s", "overstay": "5m"}, 330)],
)
def test_a_pod_that_is_told_to_go_keeps_its_grace_unless_it_hangs(annotations, seconds):
    assert life_of(_told(**annotations)).stops_within(30) == seconds


def test_a_pod_ends_with_its_last_container_and_badly_if_one_does():
    body = pod("a")
    body["spec"]["containers"] = [
        {"name": "a", "command": ["sleep", "1"]},
        {"name": "b", "command": ["sh", "-c", "sleep 5; exit 3"]},
    ]
    assert life_of(body).run == Run(5, 3)


def test_nodes_are_described_in_a_line():
    nodes = nodes_of(["2x8cpu,32Gi", "16cpu,64Gi,nvidia.com/gpu=4,label:zone=a,pods=20"])
    assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2", "node-3"]
    last = nodes[2]
    assert last["status"]["allocatable"] == {
        "cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "20", "nvidia.com/gpu": "4",
    }  # fmt: skip
    assert last["metadata"]["labels"]["zone"] == "a"


@pytest.mark.parametrize(
    "text", ["3x8cores,32Gi", "3y8cpu", "3x", "8cpu,,1Gi", "8cpu,nvidia.com/gpu=many", "8cpu,cp=4"]
)
def test_a_description_that_cannot_be_read_is_refused(text):
    with pytest.raises(ShapeError, match=r"--nodes .*; the form is \[COUNTx\]CPUcpu\[,MEMORY\].* such as 3x8cpu,32Gi"):
        nodes_of([text])


def test_nodes_come_from_manifests_too(tmp_path):
    file = tmp_path / "nodes.yaml"
    one = "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {capacity: {cpu: 2000m}}}"
    file.write_text(f"# é\n{{apiVersion: v1, kind: List, items: [{one}, {{apiVersion: v1, kind: Pod}}]}}", "utf-8")
    (node,) = nodes_of([str(file)])
    assert (node["metadata"]["name"], node["status"]["allocatable"]["cpu"]) == ("n", "2")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{apiVersion: v1, kind: Pod}", "there is no Node"),
        (b"{apiVersion: v1, kind: Node}", "Node, metadata.name: is missing"),
        (b"kind: N\xf6de", "document 1: is not UTF-8 text: byte 7"),
        (b"{kind: Node", "document 1: is not YAML: "),
        (b"--- {apiVersion: v1, kind: Pod}\n--- 7", "document 2: a document without apiVersion and kind"),
    ],
)
def test_a_manifest_of_nodes_that_cannot_be_used_is_refused_by_name(tmp_path, content, why):
    (tmp_path / "nodes.yaml").write_bytes(content)
    with pytest.raises(StromboliError, match=rf"nodes.yaml.*{why}"):
        nodes_of([str(tmp_path / "nodes.yaml")])


class Story:
    """A cluster of two nodes, its kubelets, and steps."""

    def __init__(self) -> None:
        self.api = Api(asyncio.get_running_loop().call_soon)
        self.cluster = Inside(self.api)
        self.kubelets = Kubelets(self.cluster, nodes_of(["2x8cpu,32Gi"]))

    async def make(self, name, command=(), policy="Never", **annotations):
        body = pod(name, nodeName="node-1", restartPolicy=policy, container={"command": list(command)})
        keys = {f"simulation.stromboli.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        body["metadata"]["annotations"] = keys
        await self.cluster.call("POST", PODS, body)

    def get(self, name):
        return self.api.body("", "pods", "default", name)

    async def until(self, test):
        for _ in range(400):
            if test():
                return
            await asyncio.sleep(0.005)
        raise AssertionError("it did not come true")

    def phase(self, name):
        return (self.get(name) or {}).get("status", {}).get("phase")


def _play(story):
    async def played():
        scene = Story()
        running = asyncio.ensure_future(scene.kubelets.run())
        try:
            await scene.kubelets.registered.wait()
            await story(scene)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(played())


def test_a_pod_that_no_kubelet_can_run_keeps_no_other_from_running(monkeypatch, caplog):
    def life(body):
        if body["metadata"]["name"] == "bad":
            raise ZeroDivisionError("an unforeseen error")
        return life_of(body)

    monkeypatch.setattr(kubelets, "life_of", life)

    async def story(scene):
        await scene.make("bad")
        await scene.make("good")
        await scene.until(lambda: scene.phase("good") == "Running")
        assert [said.getMessage() for said in caplog.records] == ["pod bad"]

    _play(story)


def test_nodes_are_ready_and_have_their_leases():
    async def story(scene):
        nodes = [entry.body for entry in scene.api.store.of(("", "nodes")).sorted()]
        assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2"]
        assert nodes[0]["status"]["conditions"][-1]["reason"] == "KubeletReady"
        assert scene.api.body("coordination.k8s.io", "leases", "kube-node-lease", "node-2") is not None

    _play(story)


def test_a_node_reports_what_its_annotation_says():
    async def story(scene):
        def ready():
            return scene.api.body("", "nodes", "", "node-1")["status"]["conditions"][-1]["status"]

        for value, status in (("true", "False"), (None, "True")):
            patch = {"metadata": {"annotations": {NOT_READY: value}}}
            await scene.cluster.call("PATCH", "/api/v1/nodes/node-1", patch, MERGE)
            await scene.until(lambda status=status: ready() == status)

    _play(story)


def test_a_kubelet_says_again_how_its_node_is_when_the_cluster_thinks_otherwise():
    """The server has not heard of it for long; when Ready changed last is kept through reports that change nothing."""

    async def story(scene):
        def conditions():
            found = scene.api.body("", "nodes", "", "node-1")["status"]["conditions"]
            return {one["type"]: (one["status"], one["lastTransitionTime"]) for one in found}

        then = "2020-01-01T00:00:00Z"
        status = {"status": {"conditions": [{"type": "DiskPressure", "lastTransitionTime": then}]}}
        await scene.cluster.call("PATCH", "/api/v1/nodes/node-1/status", status, STRATEGIC)
        entry = scene.api.store.get(("", "nodes"), ("", "node-1"))
        silent = silenced(entry.body, 0.0)
        silent["status"]["conditions"][1] = entry.body["status"]["conditions"][1]
        scene.api.store.put(("", "nodes"), silent)
        await scene.until(lambda: conditions()["Ready"][0] == "True")
        assert conditions()["DiskPressure"] == ("False", then)
        assert conditions()["Ready"][1] > then

    _play(story)


def test_a_pod_that_came_and_went_unseen_is_left_alone():
    """A warning of work that was never begun would fail this."""

    async def story(scene):
        await scene.make("a")
        born = scene.get("a")
        await scene.cluster.call("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
        scene.kubelets._meet("ADDED", born)
        scene.kubelets._meet("DELETED", born)
        await asyncio.sleep(0.05)
        gc.collect()
        assert scene.get("a") is None

    _play(story)


ENDS = [
    (("sleep", "0.05"), {}, "Succeeded", 0),
    (("sh", "-c", "exit 3"), {}, "Failed", 3),
    ((), {"run_for": "20ms", "exit_code": "9"}, "Failed", 9),
]


@pytest.mark.parametrize(("command", "annotations", "phase", "code"), ENDS)
def test_a_pod_runs_and_ends_as_told(command, annotations, phase, code):
    async def story(scene):
        await scene.make("a", command, **annotations)
        await scene.until(lambda: scene.phase("a") == phase)
        status = scene.get("a")["status"]
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
        assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "False"

    _play(story)


def test_a_pod_that_is_to_restart_backs_off(monkeypatch):
    monkeypatch.setattr("stromboli.server.kubelet.kubelets.BACKOFFS", (0.01,))

    async def story(scene):
        await scene.make("a", ("sh", "-c", "sleep 0.02; exit 1"), "OnFailure")
        await scene.until(lambda: _restarts(scene.get("a")) >= 2)
        assert scene.get("a")["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1

    _play(story)


def _restarts(body):
    return max((one["restartCount"] for one in body["status"].get("containerStatuses", ())), default=0)


def test_a_pod_is_stopped_within_its_grace_and_then_gone():
    async def story(scene):
        await scene.make("a", stop_after="30ms")
        await scene.until(lambda: scene.phase("a") == "Running")
        gone = asyncio.ensure_future(_deleted(scene))
        await asyncio.sleep(0)
        await scene.cluster.call("DELETE", f"{PODS}/a", {})
        last = await gone
        assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == statuses.KILLED

    _play(story)


async def _deleted(scene):
    async for event in scene.cluster.watch("/api/v1/pods", {}):
        if event["type"] == "DELETED":
            return event["object"]
    raise AssertionError("the watch ended")


def test_a_kubelet_that_comes_back_goes_on_where_pods_are():
    async def story(scene):
        await scene.make("a")
        await scene.until(lambda: scene.phase("a") == "Running")
        before = scene.get("a")["metadata"]["resourceVersion"]

        def since():
            found = scene.api.body("", "nodes", "", "node-1")["status"]["conditions"]
            return [one["lastTransitionTime"] for one in found]

        then = ["2020-01-01T00:00:00Z"] * 4
        kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        longer = [{"type": kind, "lastTransitionTime": then[0]} for kind in kinds]
        patch = {"status": {"conditions": longer}}
        await scene.cluster.call("PATCH", "/api/v1/nodes/node-1/status", patch, STRATEGIC)
        other = Kubelets(scene.cluster, nodes_of(["2x8cpu,32Gi"]))
        running = asyncio.ensure_future(other.run())
        await scene.make("b", ("sleep", "0.02"))
        await scene.until(lambda: scene.phase("b") == "Succeeded")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert since() == then, "the node has been ready all the time"
        assert scene.get("a")["metadata"]["resourceVersion"] == before

    _play(story)
