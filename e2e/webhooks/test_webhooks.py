"""The webhook server as two processes behind an address, asked by API servers: rules, rotation, replicas that end."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from e2e.clusters import STROMBOLI, Json, Refused
from e2e.conftest import place_of
from e2e.real import UNREACHABLE, ended, free_port
from e2e.stage import Stage, begun, until
from e2e.webhooks.balancer import Replica, balanced, is_ready
from e2e.webhooks.scene import answer, furnish, said
from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.crds.registration import Registration, configurations
from tests.support.admission_cases import CASES, job
from tests.support.admission_writes import ONE_WRITE, is_refused_by_its_schema, wanted, whole

NAMESPACE = "volcano-system"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/volcano-admission-secret"
SERVED = ",".join(ALL_PATHS)
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@contextmanager
def webhooks(stage: Stage, *flags: str) -> Iterator[Callable[[int], None]]:
    """Two replicas behind a balancer, registered with the server; what is yielded replaces one of them by a new one."""
    front, replicas = free_port(), [Replica(free_port(), free_port()) for _ in range(2)]
    url = f"https://127.0.0.1:{front}"
    login = stage._kubeconfig("webhooks", "")

    def start(number: int) -> None:
        one = replicas[number]
        stage.start(
            f"webhooks-{number}", "webhooks", f"--kubeconfig={login}", f"--webhook-url={url}",
            f"--webhook-namespace={NAMESPACE}", f"--port={one.port}", "--listen-address=127.0.0.1",
            "--enable-healthz", f"--healthz-address=127.0.0.1:{one.health_port}", "--drain-time=4s",
            f"--enabled-admission={SERVED}", "--log-format=json", "-v=5", "--log-flush-frequency=1s", *flags,
        )  # fmt: skip

    def served(number: int) -> None:
        until(lambda: is_ready(replicas[number]), "a replica is ready")
        time.sleep(2)  # until the balancer and, through it, the API server have seen it

    def replace(number: int) -> None:
        ended(stage.running[f"webhooks-{number}"])
        start(number)
        served(number)

    for number in range(2):
        start(number)
    with balanced(front, replicas):
        for number in range(2):
            served(number)
        registered = configurations(ALL_PATHS.values(), Registration("", NAMESPACE, url))
        stage.apply(registered, "--force-conflicts")
        until(lambda: stage.items(CONFIGURATIONS) and all(
            one["webhooks"][0]["clientConfig"].get("caBundle") == stage.api.call("GET", SECRET)["data"]["ca.crt"]
            for one in stage.items(CONFIGURATIONS) if one["metadata"]["name"].startswith("volcano-admission-service")
        ), "authorities")  # fmt: skip
        until(lambda: are_asked(stage), "webhooks that the API server asks")
        try:
            yield replace
        finally:
            for number in range(2):
                ended(stage.running[f"webhooks-{number}"])


@pytest.fixture(scope="module", params=["embedded", "real"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with our kinds and accounts, and with the queues of the cases."""
    with begun(*place_of(request, tmp_path_factory)) as found:
        printed = subprocess.run([*STROMBOLI, "manifests"], capture_output=True, text=True, check=True).stdout
        documents = [text for text in printed.split("\n---\n") if "WebhookConfiguration" not in text]
        found.define("\n---\n".join(documents))
        furnish(found)
        yield found


def test_every_rule_through_the_api_server(stage: Stage) -> None:
    """All at once: what differs is listed together."""

    with webhooks(stage):
        wrong, by_schema = [], []
        for case in ONE_WRITE:
            told = said(stage, case)
            if is_refused_by_its_schema(case, told):
                by_schema.append(case.name)
            elif told[: len(wanted(case)) or None] != wanted(case):
                wrong.append((case.name, wanted(case), told))
        assert not wrong, "\n".join(map(str, wrong))
        assert len(by_schema) < len(CASES) / 4, by_schema


@contextmanager
def load(stage: Stage, made: Callable[[int], Json], path: str) -> Iterator[list[str]]:
    """Objects are created, one after the other, while the block lasts; what fails is noted."""
    failures: list[str] = []
    over = threading.Event()
    count = 0

    def create() -> None:
        nonlocal count
        while not over.is_set():
            count += 1
            try:
                stage.api.call("POST", f"{path}?dryRun=All", made(count))
            except (Refused, *UNREACHABLE) as error:
                failures.append(f"{count}: {error}")
            time.sleep(0.02)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield failures
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert count > 20, "the load was none"


def fresh_job(number: int) -> Json:
    found = whole("jobs.batch.volcano.sh", job(name=f"j{number}-{time.monotonic_ns()}"))
    del found["spec"]["queue"]
    return found


def are_asked(stage: Stage) -> bool:
    """Whether the API server's own caches have both configurations, with authorities that it trusts."""
    wrong = fresh_job(0)
    wrong["spec"]["minAvailable"] = 99
    code, said = answer(stage, "POST", f"{JOBS}?dryRun=All", wrong, "application/json")
    right = stage.api.call("POST", f"{JOBS}?dryRun=All", fresh_job(0))
    return code != 200 and "denied the request" in said["message"] and right["spec"].get("queue") == "default"


JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs"


def test_certificates_are_replaced_under_load_and_no_request_fails(stage: Stage) -> None:
    stage.delete(SECRET)
    with webhooks(stage, "--certificate-pause=4s"), load(stage, fresh_job, JOBS) as failures:
        first = stage.api.call("GET", SECRET)["data"]
        note = {"metadata": {"annotations": {"stromboli.dev/rotate-certificate": "now"}}}
        stage.api.call("PATCH", SECRET, note, "application/merge-patch+json")

        def is_replaced() -> bool:
            data = stage.api.call("GET", SECRET)["data"]
            return "next.crt" not in data and data["tls.crt"] != first["tls.crt"] and data["ca.crt"] != first["ca.crt"]

        until(is_replaced, "another certificate")
        time.sleep(10)
        assert failures == []


def test_replicas_end_one_by_one_under_load_and_no_creation_is_refused(stage: Stage) -> None:
    with webhooks(stage) as replace, load(stage, fresh_job, JOBS) as failures:
        for number in (0, 1, 0):
            replace(number)
        assert failures == []
    assert not stage.server.forbidden()
