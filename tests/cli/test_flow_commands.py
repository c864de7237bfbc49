"""Commands about flows, the short commands, and those that follow a job: what they ask, and what they print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.main import main
from stromboli.cli.vcctl import connection, job_run, short
from stromboli.errors import Unreachable
from stromboli.kube.client import Client
from stromboli.kube.transport import Request, Response
from tests.support.live_world import queue
from tests.support.memory_server import MemoryServer

Json = dict[str, Any]
NOW = 1_700_000_000


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> MemoryServer:
    """A cluster that the commands reach."""
    server = MemoryServer()
    monkeypatch.setattr(connection, "open_client", lambda kubeconfig, master: Client(server))
    monkeypatch.setattr("stromboli.cli.vcctl.flow.time.time", lambda: NOW)
    server.put("queues", {**queue("default"), "spec": {"weight": 1, "parent": "root"}})
    return server


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    found = capsys.readouterr()
    return found.out if code == 0 else found.out + found.err


def put_flow(server: MemoryServer, name: str, namespace: str, phase: str) -> None:
    meta = {"name": name, "namespace": namespace, "creationTimestamp": "2023-11-14T22:08:17Z", "managedFields": [{}]}
    server.put("jobflows", {"metadata": meta, "spec": {"flows": []}, "status": {"state": {"phase": phase}}})


def test_flows_are_listed_and_shown(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "jobflow", "list") == "No resources found\n"
    put_flow(server, "train-and-test", "default", "Running")
    put_flow(server, "other", "elsewhere", "Succeed")
    row = "train-and-test    default      Running    5m3s\n"
    assert said(capsys, "jobflow", "list") == "Name              Namespace    Phase      Age\n" + row
    assert said(capsys, "jobflow", "get", "-N", "train-and-test").endswith(row)
    everywhere = said(capsys, "jobflow", "list", "--all-namespaces").splitlines()
    assert sorted(line.split()[1] for line in everywhere[1:]) == ["default", "elsewhere"]
    server.put("jobtemplates", {"metadata": {"name": "a", "namespace": "default"}, "spec": {}})
    assert said(capsys, "jobtemplate", "list") == "Name    Namespace\na       default\n"


def test_flows_are_described_without_the_fields_managers(
    server: MemoryServer, capsys: pytest.CaptureFixture[str]
) -> None:
    put_flow(server, "f", "default", "Running")
    text = said(capsys, "jobflow", "describe", "-N", "f")
    assert text.startswith("apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata:\n")
    assert "managedFields" not in text
    put_flow(server, "g", "default", "Failed")
    assert said(capsys, "jobflow", "describe", "-o", "json").count('"kind": "JobFlow"') == 2
    assert "Unsupported format: xml" in said(capsys, "jobflow", "describe", "-o", "xml", code=2)


def test_flows_are_made_of_files_and_deleted(
    server: MemoryServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "flows.yaml"
    file.write_text("---\nmetadata: {name: a}\nspec: {}\n---\n# nothing\n---\nmetadata: {name: b, namespace: ns}\n")
    assert said(capsys, "jobtemplate", "create", "-f", str(file)) == (
        "Created JobTemplate: default/a\nCreated JobTemplate: ns/b\n"
    )
    again = said(capsys, "jobtemplate", "create", "-f", str(file), code=2)
    assert again.count("Failed to create JobTemplate: ") == 2
    assert said(capsys, "jobtemplate", "delete", "-N", "a") == "Deleted JobTemplate: default/a\n"
    mixed = said(capsys, "jobtemplate", "delete", "-f", str(file), code=2)
    assert "Failed to delete JobTemplate: " in mixed
    assert "Deleted JobTemplate: ns/b" in mixed
    assert server.all("jobtemplates") == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["jobflow", "get"], "Failed to jobflow get: name is mandatory to get the particular jobflow details"),
        (["jobtemplate", "get"], "name is mandatory to get the particular job template details"),
        (["jobflow", "delete"], "Failed to jobflow delete: jobflow name must be specified"),
        (["jobtemplate", "delete"], "job template name must be specified"),
        (["jobflow", "create", "-f", "none.yaml"], "Failed to jobflow create: failed to read file, err: "),
        (["jobflow", "create", "-f", "list.yaml"], "list.yaml holds no objects with metadata"),
        (["jobflow", "get", "-N", "none"], 'jobflows "none" not found'),
        (["job", "logs"], "job name is mandatory to show the logs of a particular job"),
        (["job", "logs", "none"], 'jobs "none" not found'),
    ],
)
@pytest.mark.usefixtures("server")
def test_failures(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list.yaml").write_text("metadata: 3\n")
    assert text in said(capsys, *arguments, code=2)


# ---------------------------------------------------------------------- short commands


def short_said(capsys: pytest.CaptureFixture[str], program: str, *arguments: str, code: int = 0) -> str:
    assert short.main(program, arguments) == code
    found = capsys.readouterr()
    return found.out + found.err


def test_short_commands(
    server: MemoryServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "own")
    made = short_said(capsys, "vsub", "-n", "a", "-N", "ns", "-r", "2", "-c", "sh -c 'echo a b'")
    assert made == "run job a successfully\n"
    container = server.get("jobs", "a", "ns")["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("own", ["sh", "-c", "echo a b"])
    assert short_said(capsys, "vjobs", "-N", "ns").splitlines()[1].split()[0] == "a"
    assert short_said(capsys, "vjobs", "-N", "ns", "-n", "a").startswith("Name:       a\n")
    header = "Name                     Weight  State   Inqueue Pending Running Unknown\n"
    table = header + "default                  1       Open    0       0       0       0\n"
    assert short_said(capsys, "vqueues") == short_said(capsys, "vqueues", "-n", "default") == table
    short_said(capsys, "vsuspend", "-n", "a", "-N", "ns")
    short_said(capsys, "vresume", "-n", "a", "-N", "ns")
    assert [one["action"] for one in server.all("commands")] == ["AbortJob", "ResumeJob"]
    assert short_said(capsys, "vcancel", "-n", "a", "-N", "ns") == "cancel job a successfully\n"
    assert server.all("jobs") == []


@pytest.mark.parametrize(
    ("program", "arguments", "text"),
    [
        ("vsub", [], "job name cannot be left blank"),
        ("vsub", ["-n", "a", "-c", "'"], "command ': No closing quotation"),
        ("vcancel", [], "job name is mandatory to cancel a particular job"),
        ("vsuspend", [], "job name is mandatory to suspend a particular job"),
        ("vqueues", ["-n", "none"], 'queues "none" not found'),
    ],
)
@pytest.mark.usefixtures("server")
def test_short_commands_that_fail(
    program: str, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [f"/usr/bin/{program}", *arguments])
    assert short.main() == 255
    assert text in capsys.readouterr().err


# ---------------------------------------------------------------------- following a job


@pytest.mark.parametrize("gone", [False, True], ids=["kept", "deleted as it ends"])
@pytest.mark.parametrize(("end", "code"), [("Completed", 0), ("Failed", 2), ("Running", 2)])
def test_a_job_is_run_and_waited_for(
    end: str, code: int, gone: bool, server: MemoryServer, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What has not changed is not said again; no step is missed, however soon the job is deleted after it."""
    monkeypatch.setattr(job_run, "PERIOD", 0.0)
    two = {"pending": 2}, {"running": 2}
    steps = [("Pending", two[0]), ("Running", two[1]), ("Running", two[1]), (end, two[1] if end == "Running" else {})]

    troubles = iter([Unreachable("once")])

    def go_on(request: Request, when: str) -> Response | None:
        if when == "after" and request.method == "POST":
            for phase, counts in steps:
                job = server.get("jobs", "a", "default")
                server.put("jobs", {**job, "status": {"state": {"phase": phase}, **counts}})
            if gone or end == "Running":
                server.drop("jobs", "a", "default")
        if when == "before" and request.method == "GET" and (trouble := next(troubles, None)):
            raise trouble
        return None

    server.faults.append(go_on)
    text = said(capsys, "job", "run", "-N", "a", "-r", "2", "--wait", code=code)
    ends = [] if end == "Running" else [f"job a: {end} of 2"]
    assert text.splitlines()[: 3 + len(ends)] == [
        "run job a successfully", "job a: Pending, 2 pending of 2", "job a: Running, 2 running of 2", *ends,
    ]  # fmt: skip
    assert ("has not completed: Failed of 2" in text) == (end == "Failed")
    assert ("was deleted before it had ended: Running, 2 running of 2" in text) == (end == "Running")


def test_a_wait_that_outlasts_the_history_reads_the_job_instead(
    server: MemoryServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def forget(request: Request, when: str) -> Response | None:
        if when == "after" and request.method == "POST":
            server.put("jobs", {**server.get("jobs", "a", "default"), "status": {"state": {"phase": "Completed"}}})
            server.forget()
        return None

    server.faults.append(forget)
    text = said(capsys, "job", "run", "-N", "a", "--wait")
    assert text.splitlines() == ["run job a successfully", "job a: Completed of 1"]


def test_a_job_is_named_without_a_flag(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("jobs", {"metadata": {"name": "a", "namespace": "default"}, "spec": {"tasks": []}})
    assert said(capsys, "job", "view", "a") == said(capsys, "job", "view", "-N", "a")
    assert "job default/none" in said(capsys, "job", "explain", "none", code=2)


def test_logs_of_a_job(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.put("jobs", {"metadata": {"name": "a", "namespace": "default"}, "spec": {"tasks": []}})
    assert said(capsys, "job", "logs", "a") == "No resources found\n"
    for number in range(2):
        labels = {"volcano.sh/job-name": "a", "volcano.sh/task-spec": f"t{number}"}
        server.put(
            "pods", {"metadata": {"name": f"a-t{number}-0", "namespace": "default", "labels": labels}, "spec": {}}
        )

    def log(request: Request, when: str) -> Response | None:
        if when != "before" or not request.path.endswith("/log"):
            return None
        text = f"{request.path.split('/')[-2]} {sorted(request.params.items())}\n"
        return Response(200, {}, text.encode())

    server.faults.append(log)
    text = said(capsys, "job", "logs", "a", "-t", "t1", "-c", "main")
    asked = [request.params.get("labelSelector") for request in server.requests if request.path.endswith("/pods")]
    assert asked[-1] == "volcano.sh/job-name=a,volcano.sh/task-spec=t1"
    assert text.endswith("==> a-t1-0 <==\na-t1-0 [('container', 'main'), ('tailLines', '10')]\n")
    assert "tailLines" not in said(capsys, "job", "logs", "a", "--tail", "-1")
