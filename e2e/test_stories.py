"""What users rely on: stories written once and played on each kind of server with real processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from e2e.objects import cron_job, job, job_flow, job_template, plain_pod, priority_class
from e2e.stage import GROUPS, PATIENCE, TERMS, Stage, until
from stromboli.live.installation.configurations import CONFIGURATION


def _waits(stage: Stage, space: str, name: str) -> bool:
    """Whether the scheduler has said of a job's group that it cannot be placed."""
    groups = [found for found in stage.items(GROUPS.format(space)) if found["metadata"]["name"].startswith(name)]
    conditions = [one for found in groups for one in found.get("status", {}).get("conditions") or ()]
    return any((one["type"], one["status"]) == ("Unschedulable", "True") for one in conditions)


def _deleted(stage: Stage, space: str, name: str) -> None:
    stage.delete(f"/apis/batch.volcano.sh/v1alpha1/namespaces/{space}/jobs/{name}")
    for pod in stage.pods(space, name):
        stage.delete(f"/api/v1/namespaces/{space}/pods/{pod['metadata']['name']}")


# There are four nodes of eight cpus.  Two pods of three or four cpus fit on each: eight in all.


def test_gang_starts_whole_or_not_at_all(stage: Stage, space: str) -> None:
    with stage.scheduler():
        stage.create(job(space, "first", 5, cpu="3"))
        stage.until_phase(space, "first", "Running")
        stage.create(job(space, "second", 4, cpu="3", command="sleep 1"))
        until(lambda: _waits(stage, space, "second"), "second waits")
        assert not stage.bound(space, "second")
        assert len(stage.bound(space, "first")) == 5
        _deleted(stage, space, "first")
        assert stage.until_phase(space, "second", "Completed")["succeeded"] == 4


def test_queue_gives_no_more_than_its_capability(stage: Stage, space: str) -> None:
    stage.queue("limited", capability={"cpu": "8"})
    path = "/apis/scheduling.volcano.sh/v1beta1/queues/limited"
    with stage.scheduler():
        stage.create(job(space, "first", 2, cpu="4", queue="limited"))
        stage.until_phase(space, "first", "Running")
        until(lambda: stage.api.call("GET", path)["status"].get("allocated", {}).get("cpu") == "8", "queue is full")
        stage.create(job(space, "second", 1, queue="limited", command="sleep 1"), job(space, "other", 1))
        stage.until_phase(space, "other", "Running")
        assert not stage.bound(space, "second")
        _deleted(stage, space, "first")
        stage.until_phase(space, "second", "Completed")


def test_job_restarts_when_a_pod_fails(stage: Stage, space: str) -> None:
    restart = [{"event": "PodFailed", "action": "RestartJob"}]
    with stage.scheduler(), stage.lawful() as seen:
        stage.create(job(space, "unlucky", 2, command="sleep 1; exit 3", maxRetry=2, policies=restart))
        status = stage.until_phase(space, "unlucky", "Failed")
        assert status["retryCount"] == 2
        assert len(seen.placed) >= 4  # all pods are new after a restart


def test_higher_priority_takes_the_place_of_lower(stage: Stage, space: str) -> None:
    stage.create(priority_class("high", 1000), priority_class("low", 1))
    stage.queue("contested", weight=1)
    with stage.scheduler(conf=CONFIGURATION.replace("allocate,", "allocate, preempt,")):
        stage.create(job(space, "low", 8, cpu="4", least=1, priorityClassName="low", queue="contested"))
        before = stage.until_bound(space, "low", 8)
        stage.create(job(space, "high", 1, cpu="4", priorityClassName="high", queue="contested"))
        stage.until_phase(space, "high", "Running")
        until(lambda: len(stage.bound(space, "low")) == 7, "one pod of low made room")
        assert set(stage.bound(space, "low")) < set(before)


def test_plain_pods_get_groups_and_scale(stage: Stage, space: str) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": plain_pod(space, "web")["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{space}/replicasets"
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec}
    owner = {**body, **stage.api.call("POST", path, body)}
    with stage.scheduler():
        stage.create(
            plain_pod(space, "alone"), *(plain_pod(space, f"web-{number}", owner=owner) for number in range(2))
        )
        until(lambda: len(stage.bound(space)) == 3, "plain pods bound")
        assert len(stage.items(GROUPS.format(space))) == 2
        stage.create(*(plain_pod(space, f"web-{number}", owner=owner) for number in range(2, 6)))
        until(lambda: len(stage.bound(space)) == 7, "more pods of the same owner bound")
        assert len(stage.items(GROUPS.format(space))) == 2


def test_configuration_is_reloaded_and_a_bad_one_stays_out(stage: Stage, space: str) -> None:
    with stage.scheduler(name="reloading"):

        def told(key: str) -> int:
            return sum(line["key"] == key for line in stage.logged("reloading"))

        stage.create(job(space, "before", 1))
        stage.until_phase(space, "before", "Running")
        stage.configure(CONFIGURATION.replace("name: drf", "name: nonesuch"), "reloading")
        until(lambda: told("config_invalid") == 1, "the bad one is refused")
        stage.create(job(space, "meanwhile", 1))
        stage.until_phase(space, "meanwhile", "Running")
        loaded = told("config_loaded")
        stage.configure(CONFIGURATION.replace("allocate, ", ""), "reloading")
        until(lambda: told("config_loaded") > loaded, "the one without allocate is read")
        stage.create(job(space, "waiting", 1))
        until(lambda: stage.pods(space, "waiting"), "its pods are there")
        stage.configure(CONFIGURATION, "reloading")
        stage.until_phase(space, "waiting", "Running")


def test_another_scheduler_takes_over_from_a_killed_leader(stage: Stage, space: str) -> None:
    with stage.scheduler(*TERMS, name="one") as one:
        until(lambda: stage.led("one"), "one leads")
        with stage.scheduler(*TERMS, name="two"):
            stage.create(job(space, "before", 2))
            stage.until_phase(space, "before", "Running")
            assert not stage.led("two")
            one.kill()
            stage.create(job(space, "after", 2))
            stage.until_phase(space, "after", "Running")
            until(lambda: stage.led("two"), "two says that it leads")
            until(lambda: len(_takings(stage)) >= 2, "events tell of both leaders")


def _takings(stage: Stage) -> list[str]:
    """What events say of candidates that became leaders."""
    told = [event["message"] for event in stage.items("/api/v1/namespaces/volcano-system/events")]
    return [text for text in told if text.endswith(" became leader")]


def test_a_leader_that_was_stopped_writes_no_more(stage: Stage, space: str) -> None:
    with stage.scheduler(*TERMS, name="frozen") as frozen:
        until(lambda: stage.led("frozen"), "the first leads")
        with stage.scheduler(*TERMS, name="fresh"):
            frozen.send_signal(signal.SIGSTOP)
            until(lambda: stage.led("fresh"), "the second leads")
            since = len(stage.server.audit())
            stage.create(job(space, "after", 2))
            os.kill(frozen.pid, signal.SIGCONT)
            assert frozen.wait(PATIENCE) == 1
            stage.until_phase(space, "after", "Running")
            writers = {_credential(entry) for entry in stage.server.audit()[since:] if _binds(entry)}
            assert len(writers) == (1 if stage.kind == "real" else 0)  # only the real server logs the clients


def _binds(entry: dict[str, object]) -> bool:
    target = entry.get("objectRef")
    return isinstance(target, dict) and target.get("subresource") == "binding"


def _credential(entry: dict[str, object]) -> str:
    return str(entry["user"])


def test_no_secret_is_logged(stage: Stage, space: str) -> None:
    with stage.scheduler() as process:
        stage.create(job(space, "quick", 1, command="sleep 1"))
        stage.until_phase(space, "quick", "Completed")
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            process.send_signal(number)
        until(lambda: list((stage.folder / "scheduler").glob("snapshot-*.json")), "the snapshot")
    texts = [path.read_text(errors="replace") for path in _written(stage.folder)]
    assert len(texts) >= 4
    assert not [secret for secret in stage.secrets if any(secret in text for text in texts)]


def _written(folder: Path) -> list[Path]:
    return [*folder.glob("*.log"), *folder.glob("*/snapshot-*.json"), *folder.glob("server/up.log")]


def test_jobs_are_made_by_flows_and_by_the_clock(stage: Stage, space: str) -> None:
    """A diamond of four jobs runs from top to bottom and is taken away; a schedule makes a job of its own meanwhile."""
    flow = f"/apis/flow.volcano.sh/v1alpha1/namespaces/{space}"
    cron = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{space}/cronjobs/clock"
    jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{space}/jobs"
    with stage.scheduler():
        stage.create(cron_job(space, "clock", "@every 2s", command="sleep 1"))
        for name in "abcd":
            stage.create(job_template(space, name, command="sleep 1"))
        stage.create(job_flow(space, "diamond", {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}))
        until(lambda: "lastSuccessfulTime" in stage.api.call("GET", cron).get("status", {}), "a job of the schedule")

        def ended() -> bool:
            found = stage.api.call("GET", f"{flow}/jobflows/diamond").get("status", {})
            assert found.get("state", {}).get("phase") != "Failed", found
            return bool(found.get("state", {}).get("phase") == "Succeed")

        until(ended, "the flow has succeeded")
        rows = stage.api.call("GET", f"{flow}/jobflows/diamond")["status"]["jobStatusList"]
        began = {row["name"]: row["startTimestamp"] for row in rows}
        assert sorted(began, key=lambda name: (began[name], name)) == [f"diamond-{name}" for name in "abcd"]
        until(
            lambda: not any(found["metadata"]["name"].startswith("diamond") for found in stage.items(jobs)), "clean-up"
        )
        stage.delete(cron)
        stage.delete(f"{flow}/jobflows/diamond")
