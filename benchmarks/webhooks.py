"""Latency of the webhook server: reviews of pods at a steady rate over TLS, as an API server sends them.

``python -m benchmarks.webhooks --rate 200 --seconds 20`` starts an embedded API server and a webhook server as
processes, and prints quantiles of the time from the moment a review was due to its answer.  What the machine does
besides counts, so the CPU that each review costs the server is printed, too: it does not depend on that.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
import yaml

from benchmarks.live.processes import cost_of
from benchmarks.workloads import Json
from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.crds.registration import Registration, configurations

STROMBOLI: Final = (sys.executable, "-m", "stromboli.cli.main")
PORT, HEALTH, API = 18443, 18444, 18445
NAMES: Final = Registration("", "volcano-system", f"https://127.0.0.1:{PORT}")
TARGET: Final = 0.010
"""Seconds that the slowest but one percent may take at 200 reviews a second."""


def pod(number: int) -> Json:
    """A pod as users write it, with what an API server has filled in."""
    container = {
        "name": "main", "image": "registry.example/train:1.2", "command": ["python", "train.py"],
        "env": [{"name": f"VARIABLE_{one}", "value": "x" * 40} for one in range(12)],
        "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"memory": "16Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}], "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    }  # fmt: skip
    notes = {"scheduling.volcano.sh/queue-allocation-gate": "true", "volcano.sh/jdb-min-available": "50%"}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"p-{number}", "namespace": "default", "annotations": notes, "labels": {"app": "train"}},
        "spec": {"schedulerName": "volcano", "containers": [container], "restartPolicy": "Never",
                 "volumes": [{"name": "data", "emptyDir": {}}], "tolerations": []},
    }  # fmt: skip


def review(path: str, number: int) -> bytes:
    """A review of a pod's creation."""
    group, version, plural = ALL_PATHS[path].place
    request = {
        "uid": f"00000000-0000-4000-8000-{number:012}", "operation": "CREATE", "namespace": "default",
        "resource": {"group": group, "version": version, "resource": plural}, "name": f"p-{number}",
        "userInfo": {"username": "admin"}, "object": pod(number), "oldObject": None, "dryRun": False,
    }  # fmt: skip
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


@contextmanager
def running(folder: Path) -> Iterator[tuple[bytes, subprocess.Popen[bytes]]]:
    """The servers; what is yielded are the authorities, and the webhook server's process."""
    config = folder / "kubeconfig"
    options = ["--no-scheduler", "--no-controllers", "--nodes=0x1cpu", f"--port={API}", f"--kubeconfig={config}"]
    gates = "--feature-gates=SchedulingGatesQueueAdmission=true"
    flags = [
        f"--kubeconfig={config}", f"--webhook-url={NAMES.url}", "--webhook-namespace=volcano-system", f"--port={PORT}",
        "--listen-address=127.0.0.1", "--enable-healthz", f"--healthz-address=127.0.0.1:{HEALTH}", gates,
    ]  # fmt: skip
    started: list[subprocess.Popen[bytes]] = []
    with (folder / "log").open("wb") as log:
        try:
            started.append(subprocess.Popen([*STROMBOLI, "up", *options], stdout=log, stderr=log, cwd=folder))
            _until(lambda: config.exists() and _namespaced(config))
            started.append(subprocess.Popen([*STROMBOLI, "webhooks", *flags], stdout=log, stderr=log))
            _until(lambda: urllib.request.urlopen(f"http://127.0.0.1:{HEALTH}/readyz").status == 200)
            secret = _call(config, "GET", "/api/v1/namespaces/volcano-system/secrets/volcano-admission-secret")
            yield base64.b64decode(secret["data"]["ca.crt"]), started[-1]
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(60)


def _namespaced(config: Path) -> bool:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}
    try:
        _call(config, "POST", "/api/v1/namespaces", body)
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise
    for found in configurations(ALL_PATHS.values(), NAMES):
        _call(config, "POST", f"/apis/admissionregistration.k8s.io/v1/{str(found['kind']).lower()}s", dict(found))
    return True


def _call(config: Path, method: str, path: str, body: Json | None = None) -> Json:
    found = yaml.load(config.read_text(), yaml.CSafeLoader)
    cluster, token = found["clusters"][0]["cluster"], found["users"][0]["user"]["token"]
    trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(cluster["server"] + path, data, headers, method=method)
    with urllib.request.urlopen(request, context=trust, timeout=20) as answer:
        answered: Json = json.loads(answer.read())
    return answered


def _until(look: Callable[[], bool], seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError, KeyError, TypeError):  # it is not there yet
            if look():
                return
        time.sleep(0.1)
    raise TimeoutError("a server did not come up")


async def measured(path: str, rate: float, seconds: float, authorities: bytes) -> list[float]:
    """Seconds from when each review was due to its answer."""
    trust = ssl.create_default_context(cadata=authorities.decode())
    found: list[float] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64, ssl=trust)) as session:

        async def ask(number: int, due: float) -> None:
            body = review(path, number)
            headers = {"Content-Type": "application/json"}
            async with session.post(f"{NAMES.url}{path}", data=body, headers=headers) as answer:
                text = await answer.read()
            found.append(asyncio.get_running_loop().time() - due)
            if answer.status != 200 or not msgspec.json.decode(text)["response"]["allowed"]:
                raise ValueError(f"{answer.status}: {text[:200]!r}")

        await asyncio.gather(*(ask(number, asyncio.get_running_loop().time()) for number in range(16)))
        found.clear()
        begun = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for number in range(int(rate * seconds)):
                due = begun + number / rate
                await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0))
                group.create_task(ask(number, due))
    return sorted(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 1 when a quantile is over the target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.webhooks", description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="reviews a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="for how long")
    options = parser.parse_args(arguments)
    late = False
    print("| path | reviews | p50 ms | p90 ms | p99 ms | longest ms | CPU ms a review |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as (authorities, process):
        for path in ("/pods/mutate", "/pods/validate"):
            before = cost_of(process.pid).cpu
            found = asyncio.run(measured(path, options.rate, options.seconds, authorities))
            spent = 1000 * (cost_of(process.pid).cpu - before) / len(found)
            shown = [found[min(int(len(found) * part), len(found) - 1)] for part in (0.5, 0.9, 0.99, 1.0)]
            late = late or shown[2] > TARGET
            columns = " | ".join(f"{1000 * one:.2f}" for one in shown)
            print(f"| {path} | {len(found)} | {columns} | {spent:.2f} |")
        print(f"\nmemory of the server: {cost_of(process.pid).mib:.0f} MiB")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
