"""The way from another scheduler to ours and back: a shadow beside it, then the Lease, and no pod restarts.

The other scheduler is one that holds the same Lease and decides as the reference does (``--compat volcano``).
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from typing import Final

from e2e.clusters import STROMBOLI, Json
from e2e.objects import job
from e2e.proxy import Proxy
from e2e.real import free_port
from e2e.stage import Stage, until

READS: Final = frozenset({"GET"})
TERMS: Final = (
    "--leader-elect=true", "--leader-elect-lease-duration=40s", "--leader-elect-renew-deadline=30s",
    "--leader-elect-retry-period=500ms",
)  # fmt: skip
"""Of leaders that give the Lease back in order, and lose it to no pause of a busy machine."""

OTHER: Final = ("--compat=volcano", *TERMS)


def told(url: str) -> Json:
    """What the page /shadow says."""
    with urllib.request.urlopen(f"{url}/shadow", timeout=10) as answer:
        found: Json = json.load(answer)
    return found


def starts(stage: Stage, space: str) -> dict[str, str]:
    """When the pods that run were started, by uid."""
    return {pod["metadata"]["uid"]: pod["status"].get("startTime", "") for pod in stage.pods(space)}


def test_a_shadow_compares_and_writes_nothing(stage: Stage, space: str) -> None:
    proxy, port = Proxy(stage.login), free_port()
    url, where = f"http://127.0.0.1:{port}", f"--listen-address=127.0.0.1:{port}"
    with (
        proxy.running(),
        stage.scheduler("--shadow", "--enable-metrics", where, name="shadow", through=proxy.url) as shadow,
        stage.scheduler(*OTHER, "--schedule-period=3s", name="other"),  # later than the shadow, which has to plan first
    ):
        until(lambda: told(url)["plans"] > 2, "plans of the shadow")
        stage.create(job(space, "fits", 6))
        stage.until_bound(space, "fits", 6)
        until(lambda: sum(told(url)["counts"].values()) >= 6, "the shadow's comparison")
        found = told(url)
        assert shadow.poll() is None
    assert {asked.method for asked in proxy.asked} == READS
    written = [one for one in stage.server.audit() if one.get("userAgent") == "stromboli-shadow"]
    assert {one["verb"] for one in written} <= {"get", "list", "watch"}
    assert (stage.kind == "real") is bool(written)
    assert found["counts"].get("bound only there", 0) == 0
    assert found["counts"].get("agreed", 0) + found["counts"].get("bound elsewhere", 0) == 6
    assert all(one["why"] for one in found["differences"])


def test_the_lease_hands_over_and_back_and_no_pod_restarts(stage: Stage, space: str) -> None:
    with stage.scheduler(*OTHER, name="reference") as other:
        until(lambda: stage.led("reference"), "the other leads")
        stage.create(job(space, "before", 4))
        stage.until_bound(space, "before", 4)
        until(lambda: len([one for one in starts(stage, space).values() if one]) == 4, "pods run")
        first = starts(stage, space)
        with stage.scheduler(*TERMS, name="ours") as ours:
            time.sleep(2)
            assert not stage.led("ours")
            other.terminate()
            other.wait(30)
            until(lambda: stage.led("ours"), "we lead")
            stage.create(job(space, "ours", 4))
            stage.until_bound(space, "ours", 4)
            with stage.scheduler(*OTHER, name="again"):
                time.sleep(2)
                assert not stage.led("again")
                ours.terminate()
                ours.wait(30)
                until(lambda: stage.led("again"), "the other leads again")
                stage.create(job(space, "after", 4))
                stage.until_bound(space, "after", 4)
                now = starts(stage, space)
    assert {uid: now.get(uid) for uid in first} == first
    assert len(now) == 12


def test_check_reads_a_cluster_and_writes_nothing(stage: Stage, space: str) -> None:
    stage.create(job(space, "one", 1))
    proxy = Proxy(stage.login)
    with proxy.running():
        where = [f"--kubeconfig={stage.server.kubeconfig}", f"--master={proxy.url}"]
        command = [*STROMBOLI, "migrate", "check", "--output=json", *where]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert any("1 Job" in one["text"] for one in told["findings"] if one["rule"] == "in-use")
    assert {asked.method for asked in proxy.asked} == READS
