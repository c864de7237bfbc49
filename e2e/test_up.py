"""`stromboli up` as people start it: examples finish, Ctrl-C leaves nothing behind, and real pods exchange messages."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from e2e.clusters import Api, Json, Login
from e2e.stage import PATIENCE, until
from stromboli.server.kubelet.real.sandbox import AS_NOBODY, TOOLS

ROOT = Path(__file__).parents[1]
UP = [sys.executable, "-m", "stromboli.cli.main", "up"]

RENDEZVOUS = """
import os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(("", address[1])) as server:
        clients = [server.accept()[0] for _ in range(size - 1)]
        ranks = sorted(int(one.recv(9)) for one in clients)
        for one in clients:
            one.sendall(str(sum(ranks)).encode())
        print("sum", sum(ranks), "of", ranks)
else:
    while True:
        try:
            peer = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(str(rank).encode())
    print("rank", rank, "heard", peer.recv(9).decode())
"""

WORKER = """
import os, socket, subprocess, sys
with socket.create_server((socket.gethostname(), int(os.environ["PORT"]))) as server:
    peer = server.accept()[0]
    command = peer.recv(999).decode()
    peer.sendall(subprocess.check_output(["sh", "-c", command]))
    peer.close()
"""

LAUNCHER = """
import os, socket, time
hosts = open("/etc/volcano/worker.host").read().split()
assert ",".join(hosts) == os.environ["MPI_HOST"], hosts
assert os.path.exists("/root/.ssh/id_rsa"), "keys"
for number, host in enumerate(hosts):
    while True:
        try:
            peer = socket.create_connection((host, int(os.environ["PORT"])))
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(f"echo rank {number} of {len(hosts)} on $(hostname) as $VC_TASK_INDEX".encode())
    print(peer.recv(999).decode(), end="")
"""


def _missing() -> str:
    """Why processes cannot be had; empty when they can."""
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    if not sys.platform.startswith("linux") or not all(shutil.which(tool, path=path) for tool in (*TOOLS, "python3")):
        return "real pods take Linux with util-linux and python3"
    command = [
        *(AS_NOBODY if os.geteuid() == 0 else ()),
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "true",
    ]
    allowed = subprocess.run(command, check=False, capture_output=True, cwd="/").returncode == 0
    return "" if allowed else "real pods take user namespaces, which this machine forbids"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API server of `stromboli up --pods real`."""
    if reason := _missing():
        pytest.skip(reason)
    with _up(tmp_path_factory.mktemp("up")) as found:
        yield found


@contextmanager
def _up(folder: Path, end: Callable[[Any], None] = subprocess.Popen.terminate) -> Iterator[Api]:
    kubeconfig = folder / "kubeconfig"
    command = [*UP, "--pods=real", "--kubeconfig", str(kubeconfig)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            if process.stdout is None or not process.stdout.readline().startswith("Cluster at"):
                raise AssertionError((folder / "log").read_text())
            yield Api(Login.of(kubeconfig))
        finally:
            end(process)
            process.communicate(timeout=PATIENCE)


def _task(name: str, replicas: int, script: str, **env: str) -> Json:
    variables = [{"name": key, "value": value} for key, value in env.items()]
    container = {"name": "c", "image": "none", "command": ["python3", "-uc", script], "env": variables}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def _job(name: str, plugins: Mapping[str, Sequence[str]], *tasks: Json) -> Json:
    metadata = {"name": name, "namespace": "default"}
    spec = {"plugins": plugins, "tasks": list(tasks), "maxRetry": 1}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def _phase_of(api: Api, path: str, *keys: str) -> str:
    found: Any = api.call("GET", path).get("status", {})
    for key in keys:
        found = found.get(key, {})
    return str(found)


def _run(api: Api, job: Json) -> None:
    """Create a job, once its queue is open, and wait for its end."""
    until(lambda: bool(api.call("POST", JOBS, job)), "the job is taken")
    name = job["metadata"]["name"]
    until(lambda: _phase_of(api, f"{JOBS}/{name}", "state", "phase") in ("Completed", "Failed"), f"{name} is over")
    logs = [_log(api, f"{one['metadata']['name']}") for one in api.call("GET", PODS)["items"]]
    assert _phase_of(api, f"{JOBS}/{name}", "state", "phase") == "Completed", logs


def _log(api: Api, pod: str) -> str:
    with api.open("GET", f"{PODS}/{pod}/log") as answer:
        return str(answer.read().decode())


def test_processes_meet_as_those_of_pytorch_do(api: Api) -> None:
    plugins = {"pytorch": ["--master=master", "--worker=worker"]}
    policy = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    master, workers = _task("master", 1, RENDEZVOUS), _task("worker", 3, RENDEZVOUS)
    _run(api, _job("meet", plugins, {**master, "policies": policy}, workers))
    assert _log(api, "meet-master-0") == "sum 6 of [1, 2, 3]\n"


def test_a_launcher_reaches_all_hosts_of_its_file(api: Api) -> None:
    launcher, workers = _task("master", 1, LAUNCHER, PORT="7070"), _task("worker", 2, WORKER, PORT="7070")
    _run(api, _job("spread", {"mpi": [], "svc": [], "ssh": [], "env": []}, launcher, workers))
    said = [f"rank {n} of 2 on spread-worker-{n} as {n}" for n in range(2)]
    assert _log(api, "spread-master-0").splitlines() == said


def _pod(name: str, *command: str, **spec: Any) -> Json:
    container = {"name": "c", "image": "none", "command": list(command), **spec.pop("container", {})}
    body = {"schedulerName": "volcano", "restartPolicy": "Never", "terminationGracePeriodSeconds": 60}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**body, "containers": [container], **spec},
    }


def _state(api: Api, pod: str, kind: str) -> Json:
    """The state of a pod's container once it is of that kind."""

    def look() -> Json | None:
        [found] = api.call("GET", f"{PODS}/{pod}").get("status", {}).get("containerStatuses") or [{}]
        state: Json | None = found.get("state", {}).get(kind)
        return state

    return until(look, f"{pod} {kind}")


def test_a_pod_ends_as_its_command_does(api: Api) -> None:
    api.call("POST", PODS, _pod("ends", "sh", "-c", "echo $WHO on $(hostname); exit 3", container={
        "env": [{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }))  # fmt: skip
    assert _state(api, "ends", "terminated")["exitCode"] == 3
    assert _phase_of(api, f"{PODS}/ends", "phase") == "Failed"
    assert _log(api, "ends") == "ends on ends\n"


def test_a_pod_is_told_to_end(api: Api) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    api.call("POST", PODS, _pod("told", "sh", "-c", script))
    until(lambda: _log(api, "told") == "up\n", "it has begun")
    api.call("DELETE", f"{PODS}/told")
    until(lambda: "told" not in [one["metadata"]["name"] for one in api.call("GET", PODS)["items"]], "it is gone")


def test_what_a_pod_lacks_is_told_and_awaited(api: Api) -> None:
    volumes = [{"name": "v", "configMap": {"name": "late"}}]
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/opt/new/place"}]}
    api.call("POST", PODS, _pod("waits", "cat", "/opt/new/place/key", container=mounts, volumes=volumes))
    assert _state(api, "waits", "waiting")["message"] == "configmap 'late' not found"
    late = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}, "data": {"key": "there"}}
    api.call("POST", "/api/v1/namespaces/default/configmaps", late)
    assert _state(api, "waits", "terminated")["exitCode"] == 0
    assert _log(api, "waits") == "there\n"


@pytest.mark.parametrize("end", [subprocess.Popen.terminate, subprocess.Popen.kill])
def test_no_process_outlives_the_cluster(tmp_path: Path, end: Callable[[Any], None]) -> None:
    if reason := _missing():
        pytest.skip(reason)
    word = f"sleep 98765.{os.getpid()}"
    with _up(tmp_path, end) as api:
        until(lambda: bool(api.call("POST", PODS, _pod("stays", *word.split()))), "the pod is taken")
        _state(api, "stays", "running")
        until(lambda: _runs(word), "its process runs")
    until(lambda: not _runs(word), "no process is left", 30)


def _runs(word: str) -> bool:
    """Whether a process has these words as its command."""
    wanted = word.encode().replace(b" ", b"\0") + b"\0"
    return any(_command(path) == wanted for path in Path("/proc").glob("[0-9]*/cmdline"))


def _command(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_examples_finish_and_the_command_ends() -> None:
    done = subprocess.run(
        [*UP, "--examples", "examples/cluster"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[1].startswith("  export KUBECONFIG=")
    assert lines[2].startswith("  kubectl get ")
    for job in ("training", "evaluation", "notebook"):
        told = [line for line in lines if line.startswith(f"default/{job}:")]
        assert told[-1].split()[1] == "Completed,"
        assert [line for line, following in pairwise(told) if line == following] == []
    assert "All jobs are over. To try next, in a terminal:" in lines
    assert not Path(lines[1].partition("=")[2]).parent.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything(number: signal.Signals) -> None:
    process = subprocess.Popen(UP, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.stdout is None:
        raise AssertionError("the command has no output")
    head = [process.stdout.readline() for _ in range(2)]
    folder = Path(head[1].strip().partition("=")[2]).parent
    assert folder.exists()
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert not folder.exists()
