"""An unmodified kubectl, without special flags, prints against the embedded cluster what a real one makes it print."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.real import RealServer
from e2e.stage import PATIENCE, Stage
from e2e.transcripts import FOLDER, Step, masked, minor_of, played, printed, steps_of

ANY_SERVER = FOLDER / "any-server.txt"
CLUSTER = FOLDER / "cluster.txt"
WORKLOADS = FOLDER / "workloads.txt"
EXPLAINED = ("activeDeadlineSeconds", "containers", "nodeSelector", "schedulerName", "volumes")
"""Some fields of a pod's spec."""
LEAST_COMMANDS = 60
WAITS_SINCE = 23
"""The first minor version of kubectl that waits for what any field of an object says."""


def kubectls() -> list[str]:
    """Every kubectl on the path, each once; also those that bear their version behind a dash."""
    found: dict[Path, str] = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for path in sorted(Path(folder).glob("kubectl*")) if folder else ():
            if os.access(path, os.X_OK) and path.name.removeprefix("kubectl").lstrip("-").replace(".", "").isdigit() | (
                path.name == "kubectl"
            ):
                found.setdefault(path.resolve(), str(path))
    return list(found.values())


@pytest.fixture(params=kubectls() or [""], ids=lambda path: path.rpartition("/")[2])
def kubectl(request: pytest.FixtureRequest) -> str:
    if not request.param:
        pytest.skip("kubectl is not on this machine")
    return str(request.param)


@contextmanager
def _up(folder: Path, *options: str) -> Iterator[Path]:
    """`stromboli up` in a process of its own; its kubeconfig."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "stromboli.cli.main", "up", "--kubeconfig", str(kubeconfig), *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            if process.stdout is None or not process.stdout.readline().startswith("Cluster at"):
                raise AssertionError((folder / "log").read_text())
            yield kubeconfig
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


def _check(transcript: Path, kubeconfig: Path, home: Path, kubectl: str) -> None:
    reports = played(transcript, kubeconfig, home, kubectl)
    assert not reports, "\n\n".join(reports)


def test_the_transcripts_are_long_enough() -> None:
    commands = [step.command for step in steps_of(ANY_SERVER.read_text())]
    assert len(commands) >= LEAST_COMMANDS
    assert not [command for command in commands if "--validate" in command or "--server" in command.split()]


def test_a_step_knows_what_kubectls_of_other_versions_print() -> None:
    text = "Remarks.\n$ kubectl x\nnew\n~ before 1.22\nold\n~ before 1.27\n\n~ since 1.34\nnewest\n-> 1\n$ kubectl y\n"
    x, y = steps_of(text)
    assert [x.printed_by(minor) for minor in (20, 21, 22, 26, 27, 33, 34)] == [
        "old", "old", "", "", "new", "new", "newest\n-> 1",
    ]  # fmt: skip
    assert y == Step("kubectl y", "")


def test_masks_keep_what_matters() -> None:
    assert masked("pod/a   1/1  Running  3m20s  10.1.0.2") == ["pod/a 1/1 Running AGE IP"]


def test_the_embedded_server(tmp_path: Path, kubectl: str) -> None:
    options = ["--no-scheduler", "--no-controllers", "--nodes", "1x4cpu,8Gi"]
    with _up(tmp_path, *options) as kubeconfig:
        _check(ANY_SERVER, kubeconfig, tmp_path, kubectl)


def test_a_real_server(tmp_path: Path, kubectl: str, kube_apiserver: RealServer) -> None:
    kubeconfig = Path(shutil.copy(kube_apiserver.kubeconfig, tmp_path / "kubeconfig"))
    _check(ANY_SERVER, kubeconfig, tmp_path, kubectl)


@pytest.mark.parametrize("transcript", [CLUSTER, WORKLOADS], ids=lambda path: path.stem)
def test_the_whole_cluster(tmp_path: Path, kubectl: str, transcript: Path) -> None:
    if minor_of(kubectl) < WAITS_SINCE:
        pytest.skip("kubectl before 1.23 cannot wait for the state of a queue or job")
    with _up(tmp_path, "--nodes", "2x4cpu,8Gi") as kubeconfig:
        _check(transcript, kubeconfig, tmp_path, kubectl)


def test_the_pod_template_of_a_job_is_explained(stage: Stage, tmp_path: Path, kubectl: str) -> None:
    environment = {"KUBECONFIG": str(stage.server.kubeconfig), "HOME": str(tmp_path)}
    told = printed("kubectl explain vcjob.spec.tasks.template.spec", environment, kubectl)
    fields = {line.split()[0] for line in told.partition("FIELDS:")[2].splitlines() if line.strip()}
    assert set(EXPLAINED) <= fields, told
