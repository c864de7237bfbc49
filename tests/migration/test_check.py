"""`stromboli migrate check`: each rule is broken once by an input made for it; a sound cluster has notes alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.cli.main import main
from stromboli.cli.migrating.app import findings
from tests.cli.manifests import CHART

Json = dict[str, Any]
FLAGS = ["--logtostderr", "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf", "-v=3", "2>&1"]


def deployment(*flags: str, program: str = "vc-scheduler", kind: str = "Deployment", replicas: int = 1) -> Json:
    container = {"name": "c", "image": f"docker.io/volcanosh/{program}:v1.12.1", "args": [*FLAGS, *flags]}
    spec = {"replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": program, "namespace": "v"}, "spec": spec}


def config_map(text: str) -> Json:
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "v"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"volcano-scheduler.conf": text}}


def job(*plugins: str) -> Json:
    task = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    spec = {"minAvailable": 1, "plugins": {name: [] for name in plugins}, "tasks": [task]}
    metadata = {"name": "j", "namespace": "ml"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def queue(**spec: Any) -> Json:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}


def webhook() -> Json:
    hook = {"name": "validatejob.volcano.sh", "clientConfig": {"service": {"name": "volcano-admission-service"}}}
    metadata = {"name": "volcano-admission-service-jobs-validate"}
    kind = "ValidatingWebhookConfiguration"
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata, "webhooks": [hook]}


def pod() -> Json:
    spec = {"schedulerName": "volcano", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": "p", "namespace": "ml"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


ELECTED = deployment("--leader-elect=true")

BROKEN: dict[str, tuple[Json, str, str]] = {
    "unknown-flag": (deployment("--frobnicate=1"), "error", "unknown flag --frobnicate"),
    "no-election": (deployment("--leader-elect=false"), "warning", "holds no Lease"),
    "one-sided-gate": (
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                deployment("--feature-gates=SchedulingGatesQueueAdmission=true", "--leader-elect=true"),
                deployment(program="vc-webhook-manager"),
            ],
        },
        "warning",
        "the webhooks have not",
    ),
    "part-stays": (deployment(program="vc-agent", kind="DaemonSet"), "warning", "node agents"),
    "webhook": (webhook(), "warning", "asks Service volcano-admission-service, failure policy Fail"),
    "flag-without-effect": (deployment("--node-worker-threads=20"), "note", "--node-worker-threads does nothing"),
    "lease": (ELECTED, "note", "elects by Lease volcano-system/volcano"),
    "version": (ELECTED, "note", "vc-scheduler:v1.12.1"),
    "job-plugin": (job("svc", "magic"), "error", "magic is not built in"),
    "fifo": (queue(weight=1, dequeueStrategy="fifo"), "warning", "fifo is acted on"),
    "in-use": (job("svc", "env"), "note", "job plugins env (1), svc (1)"),
    "pods-stay": (pod(), "note", "1 pods run"),
    "decides-otherwise": (config_map(CHART), "note", "tie-break: Among equals"),
    "refused": (config_map("actions: [1"), "error", ""),
}


def written(folder: Path, *objects: Json) -> str:
    path = folder / "cluster.yaml"
    path.write_text(yaml.dump_all(objects, sort_keys=False, Dumper=yaml.CSafeDumper))
    return str(path)


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_finds_what_it_is_for(rule: str, tmp_path: Path) -> None:
    body, severity, text = BROKEN[rule]
    found = [one for one in findings([written(tmp_path, body)], None) if one.rule == rule]
    assert any(text in one.text for one in found), found
    assert {one.severity for one in found} == {severity}


def test_a_sound_cluster_has_notes_alone(tmp_path: Path) -> None:
    path = written(tmp_path, ELECTED, config_map(CHART), queue(weight=1), job("svc"))
    grave = [one for one in findings([path], None) if one.severity != "note"]
    assert grave == []


def test_flags_are_read_past_those_that_are_unknown(tmp_path: Path) -> None:
    path = written(tmp_path, deployment("--frobnicate=1", "--leader-elect=false", "--wobble"))
    found = {(one.rule, one.text.partition(";")[0]) for one in findings([path], None)}
    assert ("unknown-flag", "unknown flag --frobnicate") in found
    assert ("unknown-flag", "unknown flag --wobble") in found
    assert any(rule == "no-election" for rule, _ in found)


def test_a_scheduler_scaled_to_zero_needs_no_lease(tmp_path: Path) -> None:
    rules = {one.rule for one in findings([written(tmp_path, deployment(replicas=0))], None)}
    assert "no-election" not in rules


GATE = "--feature-gates=SchedulingGatesQueueAdmission=true"


@pytest.mark.parametrize(
    ("scheduler", "webhooks", "told"),
    [
        ((GATE,), (GATE,), []),
        ((), (), []),
        ((GATE,), (), ["the webhooks have not"]),
        ((), (GATE,), ["the scheduler has not"]),
        ((GATE,), None, []),
    ],
)
def test_a_gate_that_one_program_alone_has_on(
    tmp_path: Path, scheduler: tuple[str, ...], webhooks: tuple[str, ...] | None, told: list[str]
) -> None:
    programs = [deployment("--leader-elect=true", *scheduler)]
    if webhooks is not None:
        made = deployment(*webhooks, program="vc-webhook-manager")
        made["spec"]["template"]["spec"]["containers"][0]["args"] = ["--enabled-admission=/pods/mutate", *webhooks]
        programs.append(made)
    found = [one for one in findings([written(tmp_path, *programs)], None) if one.rule == "one-sided-gate"]
    assert [one.text.partition(", and ")[2].partition(":")[0] for one in found] == told
    assert {one.severity for one in found} <= {"warning"}


def test_rows_stand_at_the_line_of_their_plugin(tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    text = "".join(f"    {line}\n" for line in CHART.splitlines())
    path.write_text(f"kind: ConfigMap\napiVersion: v1\nmetadata: {{name: c}}\ndata:\n  a.conf: |\n{text}")
    lines = path.read_text().splitlines()
    found = {
        one.text.partition(":")[0]: one.line for one in findings([str(path)], None) if one.rule == "decides-otherwise"
    }
    assert "nodeorder" in lines[found["image-counts"] - 1]
    assert "domain-need" not in found
    assert "node-map" not in found
    assert "minimal-victims" not in found


def test_exit_codes_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound, odd, bad = (tmp_path / name for name in ("sound.yaml", "odd.yaml", "bad.yaml"))
    for path, body in ((sound, ELECTED), (odd, deployment()), (bad, job("magic"))):
        path.write_text(yaml.dump(body, Dumper=yaml.CSafeDumper))
    assert main(["migrate", "check", str(sound)]) == 0
    assert main(["migrate", "check", str(odd)]) == 0
    assert main(["migrate", "check", str(odd), "--strict"]) == 1
    capsys.readouterr()
    assert main(["migrate", "check", str(bad), "--output", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["error"] == 1
    assert {one["rule"] for one in told["findings"]} >= {"job-plugin", "in-use"}
    assert main(["migrate", "check", str(tmp_path / "none.yaml")]) == 2
