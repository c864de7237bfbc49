"""What each job plugin makes of a pod, whole: every flag once at its default and once set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.job_plugins.jobs import Json, job, pod_of, task


def env(name: str, value: str) -> Json:
    return {"name": name, "value": value}


def from_map(*names: str) -> list[Json]:
    return [{"name": name, "valueFrom": {"configMapKeyRef": {"name": "j-svc", "key": name}}} for name in names]


def main(**more: Any) -> Json:
    return {"name": "main", "image": "x", **more}


def init(**more: Any) -> Json:
    return {"name": "init", "image": "y", **more}


def both(**more: Any) -> Json:
    """The same in the container and the init container."""
    return {"annotations": {}, "containers": [main(**more)], "initContainers": [init(**more)]}


def only(**more: Any) -> Json:
    """In the container alone."""
    return {"annotations": {}, "containers": [main(**more)], "initContainers": [init()]}


def port(name: str, number: int) -> Json:
    return {"name": name, "containerPort": number}


SVC_VOLUME = {"name": "j-svc", "configMap": {"name": "j-svc"}}
SVC_MOUNT = {"name": "j-svc", "mountPath": "/etc/volcano"}
SVC_ENV = from_map("VC_MY_TASK_HOSTS", "VC_MY_TASK_NUM", "VC_B_HOSTS", "VC_B_NUM")
TWO = (task("my-task", 2), task("b"))
NAMED = {"hostname": "j-my-task-1", "subdomain": "j"}


def ssh(path: str = "/root/.ssh", mode: int = 0o600) -> Json:
    files = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
    items = [{"key": name, "path": f".ssh/{name}"} for name in files]
    volume = {"name": "j-ssh", "secret": {"secretName": "j-ssh", "items": items, "defaultMode": mode}}
    return {**both(volumeMounts=[{"name": "j-ssh", "mountPath": path, "subPath": ".ssh"}]), "volumes": [volume]}


def tf(cluster: str, kind: str, index: int) -> Json:
    text = f'{{"cluster":{cluster},"task":{{"type":"{kind}","index":{index}}}}}'
    return only(env=[env("TF_CONFIG", text)])


TF_JOB = (task("ps", 2), task("worker"), task("eval"))
TF_CLUSTER = '{"ps":["j-ps-0.j:2222","j-ps-1.j:2222"],"worker":["j-worker-0.j:2222"]}'
MPI_JOB = (task("master"), task("worker", 2), task("other"))
MPI_PORT = [port("mpijob-port", 22)]
TORCH_JOB = (task("master"), task("worker", 2), task("other"))


def torch(rank: str = "", size: str = "3", address: str = "j-master-0.j", number: int = 23456) -> Json:
    known = [env("MASTER_ADDR", address), env("MASTER_PORT", str(number)), env("WORLD_SIZE", size)]
    return only(ports=[port("pytorchjob-port", number)], env=known + [env("RANK", rank)] * bool(rank))


WAIT = """\
echo "Waiting for master node j-master-0.j:1 to be ready..."
TIMEOUT=9
ELAPSED=0
until { nc -z j-master-0.j 1 || echo > /dev/tcp/j-master-0.j/1; } 2>/dev/null; do
  if [ $ELAPSED -ge $TIMEOUT ]; then
    echo "Timeout waiting for master after ${TIMEOUT} seconds"
    exit 1
  fi
  echo "Master not ready yet, retrying in 2 seconds... (elapsed: ${ELAPSED}s)"
  sleep 2
  ELAPSED=$((ELAPSED + 2))
done
echo "Master node is ready!\""""
WAITING = {"port": "1", "wait-master-enabled": "true", "wait-master-timeout": "9", "wait-master-image": "b"}
WAITER = {"name": "wait-for-master", "image": "b", "command": ["sh", "-c", WAIT]}


def waits(found: Json) -> Json:
    return {**found, "initContainers": [*found["initContainers"], WAITER]}


RAY_POD: dict[str, Any] = {
    "containers": [{"name": "head", "image": "h", "args": ["a"], "ports": [port("mine", 8265)]}, main()]
}
RAY_WORKER: dict[str, Any] = {"containers": [{"name": "worker", "image": "w", "command": ["mine"]}]}
RAY_JOB = (task("head", init=False, **RAY_POD), task("worker", 2, init=False, **RAY_WORKER))
RAY_COMMAND = (
    "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001"
)
RAY_HEAD = {
    "name": "head", "image": "h", "args": ["a"],
    "ports": [port("mine", 8265), port("gcs", 6379), port("client-server", 10001)],
    "command": ["sh", "-c", RAY_COMMAND],
}  # fmt: skip
RAY_SET = ["--head=a", "--headContainer=main", "--worker=b", "--workerContainer=main", "--port=7", "--dashboardPort=7",
           "--clientPort=7"]  # fmt: skip
RAY_SET_COMMAND = (
    "ray start --head --block --dashboard-host=0.0.0.0 --port=7 --dashboard-port=7 --ray-client-server-port=7"
)


def ranked(rank: str, **pod: Any) -> Json:
    return {**only(), "annotations": {"hccl/rankIndex": rank}, **pod}


ROWS: dict[str, tuple[dict[str, list[str]], tuple[Json, ...], str, int, Json]] = {
    "env": ({"env": []}, TWO, "my-task", 1, both(env=[env("VK_TASK_INDEX", "1"), env("VC_TASK_INDEX", "1")])),
    "env after the template's own, duplicates kept": (
        {"env": []}, (task("a", init=False, containers=[main(env=[env("VC_TASK_INDEX", "9")])]),), "a", 0,
        {"annotations": {}, "containers": [
            main(env=[env("VC_TASK_INDEX", "9"), env("VK_TASK_INDEX", "0"), env("VC_TASK_INDEX", "0")])]},
    ),
    "svc": (
        {"svc": []}, TWO, "my-task", 1,
        {**both(env=SVC_ENV, volumeMounts=[SVC_MOUNT]), **NAMED, "volumes": [SVC_VOLUME]},
    ),
    "svc leaves names of the template": (
        {"svc": ["--inject-hosts-env=false"]}, (task("b", hostname="h", subdomain="s"),), "b", 0,
        {**both(volumeMounts=[SVC_MOUNT]), "hostname": "h", "subdomain": "s", "volumes": [SVC_VOLUME]},
    ),
    "svc mounts last": (
        {"svc": ["-inject-hosts-env=0"]},
        (task("my-task", 2, init=False, volumes=[{"name": "v"}], containers=[main(volumeMounts=[{"name": "v"}])]),),
        "my-task", 1,
        {"annotations": {}, "containers": [main(volumeMounts=[{"name": "v"}, SVC_MOUNT])], **NAMED,
         "volumes": [{"name": "v"}, SVC_VOLUME]},
    ),
    "ssh": ({"ssh": []}, TWO, "b", 0, ssh()),
    "ssh elsewhere": ({"ssh": ["--ssh-key-file-path=/home/u/.ssh"]}, TWO, "b", 0, ssh("/home/u/.ssh", 0o644)),
    "tensorflow": ({"tensorflow": []}, TF_JOB, "worker", 0, tf(TF_CLUSTER, "worker", 0)),
    "tensorflow, a second ps": ({"tensorflow": []}, TF_JOB, "ps", 1, tf(TF_CLUSTER, "ps", 1)),
    "tensorflow, a task that plays no part": ({"tensorflow": []}, TF_JOB, "eval", 0, tf(TF_CLUSTER, "eval", 0)),
    "tensorflow with flags": (
        {"tensorflow": ["--ps=none", "--worker=ps", "--chief=worker", "--evaluator", "eval", "--port=1"]}, TF_JOB,
        "eval", 0,
        tf('{"worker":["j-ps-0.j:1","j-ps-1.j:1"],"chief":["j-worker-0.j:1"],"evaluator":["j-eval-0.j:1"]}',
           "evaluator", 0),
    ),
    "tensorflow repeats a host that the template names": (
        {"tensorflow": []}, (task("ps", 2, hostname="h"),), "ps", 1, {**tf('{"ps":["h.j:2222","h.j:2222"]}', "ps", 1),
                                                                      "hostname": "h"},
    ),
    "tensorflow, one pod": ({"tensorflow": []}, (task("worker"),), "worker", 0, only()),
    "tensorflow, no part at all": ({"tensorflow": []}, (task("a", 2),), "a", 1, tf("{}", "a", 1)),
    "mpi, master": (
        {"mpi": []}, MPI_JOB, "master", 0, both(env=[env("MPI_HOST", "j-worker-0.j,j-worker-1.j")], ports=MPI_PORT),
    ),
    "mpi, worker": ({"mpi": []}, MPI_JOB, "worker", 1, both(ports=MPI_PORT)),
    "mpi, any other": ({"mpi": []}, MPI_JOB, "other", 0, both(ports=MPI_PORT)),
    "mpi with flags": (
        {"mpi": ["--master=other", "--worker=master", "--port", "0x10"]}, MPI_JOB, "other", 0,
        both(env=[env("MPI_HOST", "j-master-0.j")], ports=[port("mpijob-port", 16)]),
    ),
    "mpi, a port that is open": (
        {"mpi": []}, (task("worker", init=False, containers=[main(ports=[port("ssh", 22)])]),), "worker", 0,
        {"annotations": {}, "containers": [main(ports=[port("ssh", 22)])]},
    ),
    "mpi, a master without workers": ({"mpi": []}, (task("master"), task("a")), "master", 0, both()),
    "mpi, another without workers": ({"mpi": []}, (task("master"), task("a")), "a", 0, both(ports=MPI_PORT)),
    "mpi, no worker": (
        {"mpi": []}, (task("master"), task("worker", 0)), "master", 0, both(env=[env("MPI_HOST", "")], ports=MPI_PORT),
    ),
    "mpi, workers of one name": (
        {"mpi": []}, (task("master"), task("worker", 3, hostname="h", subdomain="s")), "master", 0,
        both(env=[env("MPI_HOST", "h.s")], ports=MPI_PORT),
    ),
    "pytorch, master": ({"pytorch": []}, TORCH_JOB, "master", 0, torch("0")),
    "pytorch, worker": ({"pytorch": []}, TORCH_JOB, "worker", 1, torch("2")),
    "pytorch, any other": ({"pytorch": []}, TORCH_JOB, "other", 0, torch()),
    "pytorch with flags": (
        {"pytorch": ["--master=other", "--worker=master", "--port=0b11"]}, TORCH_JOB, "master", 0,
        torch("1", "2", "j-other-0.j", 3),
    ),
    "pytorch, two masters are both 0": ({"pytorch": []}, (task("master", 2),), "master", 1, torch("0", "2")),
    "pytorch, no master": ({"pytorch": []}, (task("worker"),), "worker", 0, only()),
    "pytorch, a port that is open": (
        {"pytorch": []}, (task("master", init=False, containers=[main(ports=[port("p", 23456)])]),), "master", 0,
        {"annotations": {}, "containers": [main(ports=[port("p", 23456)], env=[
            env("MASTER_ADDR", "j-master-0.j"), env("MASTER_PORT", "23456"), env("WORLD_SIZE", "1"),
            env("RANK", "0")])]},
    ),
    "pytorch, workers that wait": (
        {"pytorch": [f"--{name}={value}" for name, value in WAITING.items()]}, TORCH_JOB, "worker", 0,
        waits(torch("1", number=1)),
    ),
    "pytorch, a master does not wait": (
        {"pytorch": [f"--{name}={value}" for name, value in WAITING.items()]}, TORCH_JOB, "master", 0,
        torch("0", number=1),
    ),
    "ray, head": ({"ray": []}, RAY_JOB, "head", 0, {"annotations": {}, "containers": [RAY_HEAD, main()]}),
    "ray, worker": (
        {"ray": []}, RAY_JOB, "worker", 1,
        {"annotations": {}, "containers": [
            {"name": "worker", "image": "w", "command": ["sh", "-c", "ray start --block --address=j-head-0.j:6379"]}]},
    ),
    "ray with flags; of equal ports each is added": (
        {"ray": RAY_SET}, (task("a"), task("b")), "a", 0,
        only(ports=[port("gcs", 7), port("dashboard", 7), port("client-server", 7)],
             command=["sh", "-c", RAY_SET_COMMAND]),
    ),
    "ray with flags, worker": (
        {"ray": RAY_SET}, (task("a"), task("b")), "b", 0,
        only(command=["sh", "-c", "ray start --block --address=j-a-0.j:7"]),
    ),
    "hcclrank, master": ({"hcclrank": []}, TORCH_JOB, "master", 0, ranked("0")),
    "hcclrank, worker": ({"hcclrank": []}, TORCH_JOB, "worker", 1, ranked("2")),
    "hcclrank, any other": ({"hcclrank": []}, TORCH_JOB, "other", 0, only()),
    "hcclrank with flags": (
        {"hcclrank": ["--master=worker", "--worker=other"]}, TORCH_JOB, "other", 0, ranked("2"),
    ),
    "hcclrank takes RANK": (
        {"hcclrank": []}, (task("a", containers=[main(env=[env("RANK", "7")])]),), "a", 0,
        ranked("7", containers=[main(env=[env("RANK", "7")])]),
    ),
    "hcclrank leaves a rank": (
        {"hcclrank": []}, (task("master", metadata={"annotations": {"hccl/rankIndex": "5"}}),), "master", 0,
        ranked("5"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_pod_is_what_its_plugin_makes_of_it(row: str) -> None:
    plugins, tasks, name, index, expected = ROWS[row]
    found = job(*tasks, plugins=plugins)
    before = json.dumps(pod_of(job(*tasks), name, index))
    assert json.loads(json.dumps(pod_of(found, name, index))) == expected
    assert json.dumps(pod_of(job(*tasks), name, index)) == before, "no plugin may change the template"


def test_plugins_change_a_pod_in_one_order_however_the_job_names_them() -> None:
    plugins = {"hcclrank": [], "pytorch": ["--wait-master-enabled"], "ssh": [], "svc": [], "env": []}
    found = job(*TORCH_JOB, plugins=plugins)
    pod = pod_of(found, "worker", 1)
    assert pod["annotations"] == {"hccl/rankIndex": "2"}, "the rank that pytorch gave"
    names_of_env = [one["name"] for one in pod["containers"][0]["env"]]
    assert names_of_env[:2] == ["VK_TASK_INDEX", "VC_TASK_INDEX"]
    assert names_of_env[2] == "VC_MASTER_HOSTS"
    assert names_of_env[-4:] == ["MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"]
    assert [one["name"] for one in pod["volumes"]] == ["j-svc", "j-ssh"]
    assert [one["name"] for one in pod["initContainers"]] == ["init", "wait-for-master"]
    assert "volumeMounts" not in pod["initContainers"][1], "svc came before it"
