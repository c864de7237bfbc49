"""``stromboli eta FILE``: a file that cannot be used is refused by its name, and one without a job says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.main import main
from stromboli.cli.running import run
from stromboli.cli.vcctl.app import app as vcctl
from tests.support.filled_record import filled_record as filled_record

Ask = Callable[[str], tuple[int, str, str]]


def plain_pod(name: str, cpu: int = 1, **spec: Any) -> str:
    """A pod of ours, as JSON on one line."""
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "ns"}
    whole = {"schedulerName": "volcano", "containers": containers, **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})


@pytest.fixture
def ask(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ask:
    """Ask for a file with such a text: exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.chdir(tmp_path)

    def asked(text: str) -> tuple[int, str, str]:
        Path("job.yaml").write_text(text)
        code = main(["eta", "job.yaml", "--record", str(filled_record)])
        return code, *capsys.readouterr()

    return asked


def test_a_file_that_is_not_there_is_refused_by_its_name(
    filled_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eta", "nosuch.yaml", "--record", str(filled_record)]) == 2
    assert capsys.readouterr().err == "stromboli: error: nosuch.yaml: cannot be read: No such file or directory\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("vm\n", "job.yaml, document 1: a document must be a mapping, not str 'vm'", id="no mapping"),
        pytest.param("a: [\n", "job.yaml, document 1: ", id="no YAML"),
        pytest.param("", "job.yaml: no job comes of it", id="empty"),
        pytest.param(
            '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}', "job.yaml: no job", id="no job"
        ),
    ],
)
def test_a_file_of_which_no_job_comes_says_why(ask: Ask, text: str, told: str) -> None:
    code, out, err = ask(text)
    assert (code, out) == (2, "")
    assert f"stromboli: error: {told}" in err
    assert "nothing waits" not in err


def test_jobs_beside_an_unusable_object_are_answered_for(ask: Ask) -> None:
    """As for ``plan``: the object is named, the others count, and the exit code is 2."""
    code, out, err = ask(f"{plain_pod('new')}\n---\n{plain_pod('bad', cpu=-1)}\n")
    assert code == 2
    assert "job.yaml, document 2, Pod ns/bad" in err
    assert "it fits now" in out
    assert "bad" not in out


def test_a_field_without_effect_and_a_foreign_object_are_named(ask: Ask) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    foreign = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f", "namespace": "ns"},
    }
    objects = [plain_pod("new"), json.dumps({**queue, "spec": {"wieght": 1}}), json.dumps(foreign)]
    code, _, err = ask("\n---\n".join(objects))
    assert code == 0
    assert "stromboli: warning: job.yaml, document 2, Queue q, spec.wieght" in err
    assert "1 object of kind flow.volcano.sh/v1alpha1 JobFlow is not looked at: controllers make its Jobs" in err


def test_a_job_that_is_not_submitted_is_refused_without_the_name_of_a_temporary_file(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}}
    file = tmp_path / "j.yaml"
    file.write_text(json.dumps({**body, "spec": {"tasks": "none"}}))
    assert run(vcctl, "vcctl", ["job", "run", "-f", str(file), "--eta", str(filled_record)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("vcctl: Job default/j, spec.tasks: ")


def test_a_job_of_a_file_that_can_never_start_gets_no_number(ask: Ask) -> None:
    code, out, _ = ask(plain_pod("new", nodeSelector={"no": "such"}))
    assert code == 1
    assert "didn't match Pod's node affinity/selector" in out
    assert "0s" not in out


def test_pods_of_a_file_stay_without_the_group_that_is_missing(ask: Ask) -> None:
    body = json.loads(plain_pod("new"))
    body["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "gone"}
    code, out, _ = ask(json.dumps(body))
    assert code == 1
    assert "there is no PodGroup ns/gone" in out


def test_a_job_that_is_not_submitted_and_can_never_start_gets_no_number(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    template = {"spec": json.loads(plain_pod("new"))["spec"]}
    body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}}
    file = tmp_path / "j.yaml"
    file.write_text(json.dumps({**body, "spec": {"queue": "gone", "tasks": [{"replicas": 1, "template": template}]}}))
    run(vcctl, "vcctl", ["job", "run", "-f", str(file), "--eta", str(filled_record)])
    out = capsys.readouterr().out
    assert "queue gone does not exist" in out
    assert "0s" not in out


def test_pods_of_a_file_are_grouped_by_their_owners(ask: Ask) -> None:
    """As the controllers of a live cluster group them: the gang of four is one job, which does not fit now."""
    template = {"spec": json.loads(plain_pod("new", cpu=3))["spec"]}
    job = {"parallelism": 2, "completions": 2, "template": template}
    notes = {"scheduling.volcano.sh/group-by": "top-owner"}
    metadata: dict[str, Any] = {"name": "js", "namespace": "ns", "uid": "u", "annotations": notes}
    kind: dict[str, Any] = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    roles = [{"name": "w", "replicas": 2, "template": {"spec": job}}]
    objects: list[Any] = [{**kind, "metadata": metadata, "spec": {"replicatedJobs": roles}}]
    for number in range(2):
        owned: dict[str, Any] = {"name": f"js-{number}", "namespace": "ns", "uid": f"u-{number}"}
        owner = {**kind, "name": "js", "uid": "u", "controller": True}
        metadata = {**owned, "ownerReferences": [owner]}
        objects.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job})
    _, out, _ = ask("\n---\n".join(map(json.dumps, objects)))
    assert [line.split()[0] for line in out.splitlines()[1:2]] == ["ns/podgroup-u"]
    assert "podgroup-u-" not in out
