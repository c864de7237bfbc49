"""The whole cluster in one process: what is submitted runs and finishes, and nothing stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.main import main
from stromboli.errors import ManifestError
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.kube.access import from_kubeconfig
from stromboli.kube.client import Client
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.scheduler.configuration import Source
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.up.up import DONE, Row, Setup, hold, objects_in, up
from stromboli.server.kubelet.shapes import nodes_of
from stromboli.server.verbs.writing import Options as WriteOptions

GANG: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "gang"},
    "spec": {
        "minAvailable": 3,
        "tasks": [
            {
                "name": "worker",
                "replicas": 3,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {
                                "name": "main",
                                "image": "busybox",
                                "command": ["sleep", "0.1"],
                                "resources": {"requests": {"cpu": "2"}},
                            }
                        ],
                    }
                },
            }
        ],
    },
}


def _run(setup):
    async def story():
        seen: list[list[Row]] = []
        async with up(setup) as cluster:
            kubeconfig = cluster.serving.access.kubeconfig
            await asyncio.wait_for(hold(cluster, seen.append), 30)
            pods = list(cluster.serving.api.bodies("", "pods", "default"))
        return seen, pods, kubeconfig

    return asyncio.run(story())


def test_a_gang_is_scheduled_run_and_finished_and_nothing_stays():
    setup = Setup(nodes_of(["2x4cpu,8Gi"]), examples=[GANG], until_done=True, period=0.05)
    seen, pods, kubeconfig = _run(setup)
    (last,) = seen[-1]
    assert (last.name, last.queue, last.phase, last.succeeded) == ("default/gang", "default", "Completed", 3)
    assert last.phase in DONE
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1", "node-2"}
    assert not kubeconfig.exists()


def test_the_scheduler_is_known_to_policies_as_the_account_of_the_manifests():
    """A policy that lets that account alone make events of pods; those of the scheduler are there, others are not."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["events"]}
    account = "system:serviceaccount:volcano-system:stromboli-scheduler"
    only = [{"expression": f"request.userInfo.username == '{account}'"}]
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": only}
    bodies = [
        {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": policy},
        {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"},
         "spec": {"policyName": "p", "validationActions": ["Deny"]}},
    ]  # fmt: skip
    examples = [{"apiVersion": "admissionregistration.k8s.io/v1", **body} for body in bodies] + [GANG]

    async def story():
        async with up(Setup(nodes_of(["2x4cpu,8Gi"]), examples=examples, until_done=True, period=0.05)) as cluster:
            await asyncio.wait_for(hold(cluster, lambda rows: None), 30)
            return [event["source"]["component"] for event in cluster.serving.api.bodies("", "events", "default")]

    assert set(asyncio.run(story())) == {"volcano"}


def test_a_kept_cluster_goes_on_where_it_was(tmp_path):
    setup = Setup(nodes_of(["2x4cpu,8Gi"]), data=tmp_path, examples=[GANG], until_done=True, period=0.05)
    _run(setup)
    seen, pods, _ = _run(replace(setup, examples=()))
    assert [row.phase for row in seen[-1]] == ["Completed"]
    assert len(pods) == 3


@pytest.mark.parametrize(("keep", "run", "silent"), [(True, 3, set()), (False, 2, {"node-3"})])
def test_nodes_that_are_stored_run_again_or_are_not_ready_at_once(tmp_path, caplog, keep, run, silent):
    async def nodes(setup):
        async with up(setup) as cluster:
            return len(cluster.setup.nodes), {
                node["metadata"]["name"]: node for node in cluster.serving.api.bodies("", "nodes")
            }

    first = Setup(nodes_of(["2x4cpu", "1x2cpu,label:zone=a"]), data=tmp_path, keep_nodes=True, scheduler=False)
    count, before = asyncio.run(nodes(first))
    assert (count, caplog.text) == (3, "")
    count, found = asyncio.run(nodes(replace(first, nodes=nodes_of(["2x4cpu"]), keep_nodes=keep)))
    assert count == run
    states = {name: next(one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready")
              for name, node in found.items()}  # fmt: skip
    assert states == {name: "Unknown" if name in silent else "True" for name in before}
    assert {name for name, node in found.items() if node["spec"].get("taints")} == silent
    told = [record.getMessage() for record in caplog.records]
    assert [": node-3 (without" in text for text in told] == [True] * len(silent)
    for kept in ("labels", "uid"):
        assert found["node-3"]["metadata"][kept] == before["node-3"]["metadata"][kept]
    assert found["node-3"]["status"]["allocatable"] == before["node-3"]["status"]["allocatable"]


def test_a_pod_on_a_node_of_an_earlier_start_runs_there(tmp_path):
    setup = Setup(nodes_of(["1x2cpu", "1x8cpu"]), data=tmp_path, period=0.05)

    async def stored():
        async with up(setup):
            pass

    asyncio.run(stored())
    again = replace(setup, nodes=nodes_of(["1x2cpu"]), keep_nodes=True, until_done=True)
    gang = deepcopy(GANG)
    gang["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2500m"
    seen, pods, _ = _run(replace(again, examples=[gang]))
    assert [row.phase for row in seen[-1]] == ["Completed"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-2"}


def _gang_with_queue():
    """A queue that controllers alone open, and a gang in it."""
    gang = deepcopy(GANG)
    gang["spec"]["queue"] = "mine"
    return [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "mine"}}, gang]


def test_queues_that_a_user_has_closed_keep_no_later_start(tmp_path):
    queue: dict[str, Any] = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "mine"},
    }
    gang = deepcopy(GANG)
    gang["spec"]["queue"] = "mine"
    setup = Setup(nodes_of(["2x4cpu,8Gi"]), data=tmp_path, examples=[queue, gang], until_done=True, period=0.05)
    _run(setup)

    async def closed():
        async with up(replace(setup, controllers=False, examples=())) as cluster:
            api = cluster.serving.api
            resource = api.catalogue.stored()["scheduling.volcano.sh", "queues"]
            shut = {"status": {"state": "Closed"}}
            api.writer.patch(resource, ("", "mine"), lambda body: body | shut, "status", WriteOptions())

    asyncio.run(closed())
    seen, pods, _ = _run(setup)
    assert [row.phase for row in seen[-1]] == ["Completed"]
    assert len(pods) == 3


def test_a_cluster_is_there_while_its_examples_wait_for_controllers(monkeypatch, caplog):
    monkeypatch.setattr("stromboli.live.up.up.EXAMPLES_WITHIN", 0.2)

    async def story():
        async with up(Setup(nodes_of(["2x4cpu,8Gi"]), controllers=False, examples=_gang_with_queue())) as cluster:
            before = cluster.jobs(), cluster.all_done
            access = from_kubeconfig([str(cluster.serving.access.kubeconfig)])
            async with Client.reaching(access, qps=0, burst=0) as client:
                running = asyncio.create_task(Controllers(client).run())
                await asyncio.wait_for(cluster.creation, 30)
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            return before, [row.name for row in cluster.jobs()]

    assert asyncio.run(story()) == (([], False), ["default/gang"])
    told = [record.getMessage() for record in caplog.records if record.name == "stromboli.live.up.up"]
    assert told == ["the examples wait until a scheduler and controllers have opened queues mine"]


def test_manifests_are_read_by_file_and_folder(tmp_path):
    (tmp_path / "b.yaml").write_text("{apiVersion: v1, kind: B}\n---\n{apiVersion: v1, kind: C}\n")
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: A}\n")
    assert [body["kind"] for body in objects_in([tmp_path])] == ["A", "B", "C"]
    (tmp_path / "a.yaml").write_text("[1]")
    with pytest.raises(ManifestError, match="without apiVersion and kind"):
        objects_in([tmp_path / "a.yaml"])


def test_the_examples_are_objects_that_the_cluster_takes():
    found = objects_in([Path("examples/cluster")])
    assert {body["kind"] for body in found} == {"Queue", "Job"}


# ---------------------------------------------------------------------- what goes wrong inside


async def _fails(part):
    async with asyncio.TaskGroup():
        raise KeyError("an unforeseen error")


async def _returns(part):
    await asyncio.sleep(0)


@pytest.mark.parametrize(("part", "name"), [(LiveScheduler, "scheduler"), (Controllers, "controllers")])
@pytest.mark.parametrize(("run", "why"), [(_fails, "KeyError: 'an unforeseen error'"), (_returns, "before its time")])
def test_a_part_that_dies_ends_the_cluster_and_is_told(monkeypatch, capsys, part, name, run, why):
    monkeypatch.setattr(part, "run", run)
    assert main(["up"]) == 3
    told = capsys.readouterr().err
    assert f"The {name} has ended: " in told
    assert why in told
    assert "TaskGroup" not in told


def test_errors_that_are_told_inside_are_seen_and_make_the_exit_code(monkeypatch, capsys):
    async def troubled(scheduler):
        scheduler.tell("cycle_failed", error="no luck")
        scheduler.tell("audit_failed", error="only a warning")
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr(LiveScheduler, "run", troubled)
    assert main(["up"]) == 1
    told = capsys.readouterr().err
    assert "Scheduling cycle failed: no luck" in told
    assert "only a warning" in told
    assert told.endswith("1 error, see above\n")


def test_a_cluster_in_which_nothing_goes_wrong_says_nothing(monkeypatch, capsys):
    async def interrupted(scheduler):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr(LiveScheduler, "run", interrupted)
    assert main(["up"]) == 0
    assert capsys.readouterr().err == ""


def test_the_configuration_in_use_is_shown_where_an_installation_has_it(tmp_path):
    conf = tmp_path / "scheduler.conf"

    async def shown(setup):
        async with up(setup) as cluster:
            found = cluster.serving.api.body("", "configmaps", "volcano-system", "volcano-scheduler-configmap")
            return (found or {}).get("data")

    setup = Setup(data=tmp_path / "data", controllers=False)
    assert asyncio.run(shown(replace(setup, scheduler=False))) is None  # our manifests may bring their own
    assert asyncio.run(shown(setup)) == {"volcano-scheduler.conf": DEFAULT_CONFIG}
    conf.write_text("actions: allocate\n")
    again = replace(setup, source=Source(str(conf)))
    assert asyncio.run(shown(again)) == {"volcano-scheduler.conf": "actions: allocate\n"}


# ---------------------------------------------------------------------- what keeps a job waiting

UNSCHEDULABLE = {"type": "Unschedulable", "message": "0/2 nodes are available"}
NOT_ADMITTED = {"type": "NotAdmitted", "message": "the queue is full"}
WHY = [
    pytest.param({"conditions": [UNSCHEDULABLE]}, "", "0/2 nodes are available", id="no room"),
    pytest.param({"phase": "Inqueue", "conditions": [UNSCHEDULABLE]}, "", "0/2 nodes are available", id="admitted"),
    pytest.param({"conditions": [UNSCHEDULABLE, NOT_ADMITTED]}, "", "the queue is full", id="not admitted comes first"),
    pytest.param({"conditions": [{"type": "NotAdmitted"}, UNSCHEDULABLE]}, "", "0/2 nodes are available",
                 id="what has no message says nothing"),
    pytest.param({"phase": "Running", "conditions": [UNSCHEDULABLE]}, "", "", id="it waits no longer"),
    pytest.param({"conditions": [UNSCHEDULABLE]}, "pods are forbidden", "pods are forbidden", id="the job says it"),
    pytest.param({}, "", "", id="nothing is said"),
]  # fmt: skip


@pytest.mark.parametrize(("group", "said", "why"), WHY)
def test_why_a_job_waits_is_what_it_says_itself_or_its_group(group, said, why):
    async def story():
        async with up(Setup(scheduler=False, controllers=False)) as cluster:
            api = cluster.serving.api
            state = {"phase": "Pending", **({"message": said} if said else {})}
            meta = {"name": "j", "namespace": "default", "uid": "1"}
            spec = {"queue": "q", "tasks": [{"replicas": 2}, {"replicas": 3}]}
            status = {"state": state, "pending": 1, "running": 2, "succeeded": 3, "failed": 4}
            api.store.put(("batch.volcano.sh", "jobs"), {"metadata": meta, "spec": spec, "status": status})
            owner = [{"kind": "Job", "name": "j", "uid": "1"}]
            for kind, place in (("pods", ("", "pods")), ("g", ("scheduling.volcano.sh", "podgroups"))):
                owned = {"name": kind, "namespace": "default", "uid": kind, "ownerReferences": owner}
                api.store.put(place, {"metadata": owned, "status": group})
            return cluster.jobs(), cluster.all_done

    assert asyncio.run(story()) == ([Row("default/j", "q", "Pending", 5, 1, 2, 3, 4, why)], False)
