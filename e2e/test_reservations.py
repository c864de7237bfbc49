"""Room about to become free is held on each kind of server, through the end of a scheduler, and paid for once."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.clusters import Json, Refused
from e2e.objects import job, priority_class
from e2e.stage import Stage, until
from stromboli.cluster.lives import STOP_AFTER
from stromboli.live.installation.configurations import CONFIGURATION
from stromboli.live.proofs.keys import SECRET
from stromboli.model.names import NAMESPACE, PIPELINED_NODE
from stromboli.model.reservation import KEYS, Held
from stromboli.model.reservation import stated as annotations_of

GRACE = 15
"""Seconds that a victim takes to end."""

TAKEN = 2
"""Pods of low priority that have to go: there are four nodes of eight cpus, full of pods of four."""

GATE = "--feature-gates=PipelinedStatePersistence={}"
CONF = CONFIGURATION.replace("allocate,", "allocate, preempt,")
FORGED = annotations_of(Held("node-0"))


def slow(space: str) -> Json:
    """A job of low priority that fills the cluster and whose pods end slowly."""
    found = job(space, "low", 8, cpu="4", least=1, priorityClassName="lowly", queue="slow")
    template = found["spec"]["tasks"][0]["template"]
    template["metadata"] = {"annotations": {STOP_AFTER: f"{GRACE}s"}}
    template["spec"]["terminationGracePeriodSeconds"] = 2 * GRACE
    return found


def prepared(stage: Stage, space: str) -> set[str]:
    """The pods that fill the cluster, by uid."""
    if not [found for found in stage.items("/apis/scheduling.k8s.io/v1/priorityclasses") if _name(found) == "lowly"]:
        stage.create(priority_class("lowly", 1), priority_class("lofty", 1000))
        stage.queue("slow", weight=1)
    stage.create(slow(space))
    return set(stage.until_bound(space, "low", 8))


def contend(stage: Stage, space: str) -> None:
    """A gang of two arrives, which two of the pods that run have to make room for; overcommit lets no more in."""
    stage.create(job(space, "high", 2, cpu="3", priorityClassName="lofty", queue="slow"))


def _name(found: Json) -> str:
    name: str = found["metadata"]["name"]
    return name


def stated(stage: Stage, space: str) -> dict[str, dict[str, str]]:
    """By pod, what it says of a reservation; those that say nothing are left out."""
    notes = {_name(pod): pod["metadata"].get("annotations", {}) for pod in stage.pods(space)}
    said = {name: {key: found[key] for key in KEYS if key in found} for name, found in notes.items()}
    return {name: found for name, found in said.items() if found}


def held(stage: Stage, space: str) -> dict[str, str] | None:
    """By pod of the gang, the node that it holds room on, once both do."""
    found = {name: notes[PIPELINED_NODE] for name, notes in stated(stage, space).items() if PIPELINED_NODE in notes}
    return found if len(found) == 2 else None


def going(stage: Stage, space: str, before: set[str]) -> set[str]:
    """Those of the pods that ran ``before`` which are going or gone."""
    stay = {pod["metadata"]["uid"] for pod in stage.pods(space, "low") if "deletionTimestamp" not in pod["metadata"]}
    return before - stay


def patched(stage: Stage, space: str) -> list[Json]:
    """What the scheduler has patched of pods, statuses left out, where the server writes that down."""
    entries = [entry for entry in stage.server.audit() if entry["verb"] == "patch"]
    targets = [(entry, entry.get("objectRef", {})) for entry in entries if "scheduler" in entry.get("userAgent", "")]
    return [
        entry
        for entry, target in targets
        if (target.get("resource"), target.get("namespace"), target.get("subresource")) == ("pods", space, None)
    ]


def explained(stage: Stage, space: str) -> str:
    """The explanation of the gang by ``stromboli job explain``, in one line."""
    command = [*stage.command, "job", "explain", "-N", "high", "-n", space, f"--kubeconfig={stage.server.kubeconfig}"]
    conf = ["-c", str(stage.folder / "scheduler" / "volcano-scheduler.conf")]
    found = subprocess.run(
        [*command, *conf], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "500"}
    )
    return " ".join(found.stdout.split())


def ends_well(stage: Stage, space: str, nodes: dict[str, str], before: set[str]) -> None:
    """The gang gets the room that it held, no other pod has been evicted for it, and nothing is left over."""
    stage.until_phase(space, "high", "Running")
    assert {_name(pod): pod["spec"]["nodeName"] for pod in stage.pods(space, "high")} == nodes
    assert len(going(stage, space, before)) == TAKEN
    until(lambda: not stated(stage, space), "nothing is said of reservations any more")


def test_room_is_held_and_each_change_is_written_once(stage: Stage, space: str) -> None:
    with stage.scheduler(GATE.format("true"), conf=CONF):
        before = prepared(stage, space)
        contend(stage, space)
        nodes = until(lambda: held(stage, space), "both hold room")
        written = len(patched(stage, space))
        told = explained(stage, space)  # takes many cycles, and less than the victims do
        assert len(patched(stage, space)) == written
        assert held(stage, space) == nodes
        since = r" since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ" if stage.kind == "real" else ""
        for name, node in nodes.items():
            assert re.search(f"{name} holds a reservation on node {node}{since}, waits for", told), told
        ends_well(stage, space, nodes, before)
        if stage.kind == "real":
            codes = [entry["responseStatus"]["code"] for entry in patched(stage, space)]
            assert codes == [200] * 4  # two are set, two are cleared


@pytest.mark.parametrize("away", [1.0, GRACE + 2.0], ids=["soon", "late"])
def test_a_reservation_survives_the_scheduler(stage: Stage, space: str, away: float) -> None:
    with stage.scheduler(GATE.format("true"), conf=CONF, name="killed") as first:
        before = prepared(stage, space)
        contend(stage, space)
        nodes = until(lambda: held(stage, space), "both hold room")
        first.kill()
        first.wait()
    time.sleep(away)
    with stage.scheduler(GATE.format("true"), conf=CONF):
        ends_well(stage, space, nodes, before)


def forged(space: str, name: str) -> Json:
    """A pod that claims room which the scheduler has not given it, on a node that has none."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": space, "annotations": FORGED},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


def refusal(stage: Stage, method: str, path: str, body: Json) -> str:
    """What the server says against a request; empty where it does as asked."""
    try:
        stage.api.call(method, path, body, "application/json" if method == "POST" else "application/merge-patch+json")
    except Refused as error:
        return str(error)
    return ""


def test_reservations_stated_by_others_are_refused_or_taken_off(stage: Stage, space: str) -> None:
    """Our policy refuses it; what gets past it, as on clusters without the policy, is taken off."""
    path = f"/api/v1/namespaces/{space}/pods"
    with stage.scheduler(GATE.format("true"), conf=CONF):
        told = until(lambda: refusal(stage, "POST", f"{path}?dryRun=All", forged(space, "f")), "the policy holds")
        assert told.startswith("403: ")
        assert "leave them out" in told
        plain = forged(space, "f")
        del plain["metadata"]["annotations"]
        assert refusal(stage, "POST", path, plain) == ""
        for below in ("", "/status"):  # a change of the status may bring annotations along
            told = refusal(stage, "PATCH", f"{path}/f{below}", {"metadata": {"annotations": FORGED}})
            assert told.startswith("403: "), told
            assert refusal(stage, "PATCH", f"{path}/f{below}", {"metadata": {"annotations": {"a/b": "c"}}}) == ""
        with without_policy(stage):
            until(
                lambda: not refusal(stage, "PATCH", f"{path}/f", {"metadata": {"annotations": FORGED}}), "none refuses"
            )
            until(lambda: not stated(stage, space), "what is forged is taken off")
            until(lambda: "ReservationIgnored" in reasons(stage, space), "its pod is told")
    secret = stage.api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
    assert set(secret["data"]) == {"key", "made"}


@contextmanager
def without_policy(stage: Stage) -> Iterator[None]:
    """No policy guards reservations meanwhile."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    bound = stage.api.call("GET", f"{path}/stromboli-reservations")
    stage.api.call("DELETE", f"{path}/stromboli-reservations")
    try:
        yield
    finally:
        stage.api.call("POST", path, {**bound, "metadata": {"name": bound["metadata"]["name"]}})


def reasons(stage: Stage, space: str) -> set[str]:
    """Reasons of the events there."""
    return {found["reason"] for found in stage.items(f"/api/v1/namespaces/{space}/events")}


def test_without_the_gate_nothing_is_written(stage: Stage, space: str) -> None:
    with stage.scheduler(GATE.format("false"), conf=CONF):
        before = prepared(stage, space)
        contend(stage, space)
        until(lambda: len(going(stage, space, before)) >= TAKEN, "two make room")
        for _ in range(20):
            assert not stated(stage, space)
            time.sleep(0.1)
        stage.until_phase(space, "high", "Running")
        assert patched(stage, space) == []
