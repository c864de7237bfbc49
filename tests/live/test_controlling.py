"""The controllers on a server: alone, and with a scheduler and simulated kubelets."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from stromboli.controllers.changes import Outcome
from stromboli.controllers.work import About, Work
from stromboli.errors import AccessError, Unreachable
from stromboli.kube.client import Client
from stromboli.kube.informer import UNKNOWN_PAUSE
from stromboli.kube.transport import Request, Response
from stromboli.live.controllers.controller_runner import Controllers
from tests.support.controller_world import ControllerWorld, job
from tests.support.live_world import queue
from tests.support.memory_server import MemoryServer, status
from tests.support.virtual import run

Json = dict[str, Any]


def test_jobs_run_and_complete() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        for number in range(3):
            world.server.put("jobs", job(f"j{number}", 4))
        await asyncio.sleep(10)
        assert [world.phase(f"j{number}") for number in range(3)] == ["Running"] * 3
        assert Counter(world.pods().values()) == {"n0": 3, "n1": 3, "n2": 3, "n3": 3}
        for number in range(3):
            world.end_pods(f"j{number}", "Succeeded")
        await asyncio.sleep(5)
        assert [world.phase(f"j{number}") for number in range(3)] == ["Completed"] * 3
        assert world.server.all("podgroups") == []
        reasons = {event["reason"] for event in world.server.all("events") if event["involvedObject"]["kind"] == "Job"}
        assert "FailedCreate" not in reasons
        await world.end()

    run(main())


def test_a_pod_that_is_deleted_while_no_watch_is_open_is_made_again() -> None:
    """Only the answer to its creation told of it, and the list that comes after shows it no more."""

    async def main() -> None:
        world, away = ControllerWorld(), [False]

        def pods_are_not_read(request: Request, _when: str) -> Response | None:
            is_read = request.method == "GET" and request.path == "/api/v1/pods"
            return status(503, "ServiceUnavailable", "later") if away[0] and is_read else None

        await world.go()
        world.server.faults.append(pods_are_not_read)
        away[0] = True
        world.server.cut()
        world.server.put("jobs", job("j", 3))
        await asyncio.sleep(5)
        first = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.server.all("pods")}
        assert len(first) == 3
        world.server.drop("pods", "j-t-1", "ns")
        world.server.forget()
        away[0] = False
        await asyncio.sleep(30)
        assert world.phase("j") == "Running"
        assert world.server.get("pods", "j-t-1", "ns")["metadata"]["uid"] != first["j-t-1"]
        await world.end()

    run(main())


def test_of_two_times_to_look_again_the_sooner_counts() -> None:
    """A schedule that was yearly is of each minute, and then yearly again."""

    async def main() -> None:
        world = ControllerWorld()
        await world.go(scheduling=False)
        spec = {"startingDeadlineSeconds": 30, "jobTemplate": {"spec": job("j", 1)["spec"]}}
        made = []
        for schedule in ("0 0 1 1 *", "* * * * *", "0 0 1 1 *"):
            meta = {"name": "c", "namespace": "ns"}
            world.server.put("cronjobs", {"metadata": meta, "spec": {"schedule": schedule, **spec}})
            await asyncio.sleep(61)
            made.append(len(world.server.all("jobs")))
        assert made == [0, 1, 1]
        await world.end()

    run(main())


def test_a_failing_job_is_restarted_and_then_given_up() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        policies = [{"event": "PodFailed", "action": "RestartJob"}]
        world.server.put("jobs", job("j", 3, maxRetry=2, policies=policies))
        await asyncio.sleep(8)
        first = {pod["metadata"]["uid"] for pod in world.server.all("pods")}
        world.end_pods("j", "Failed", 1)
        await asyncio.sleep(8)
        second = {pod["metadata"]["uid"] for pod in world.server.all("pods")}
        assert (world.phase("j"), len(second), first & second) == ("Running", 3, set())
        assert world.server.get("jobs", "j", "ns")["status"]["retryCount"] == 1
        world.end_pods("j", "Failed", 1)
        await asyncio.sleep(8)
        assert world.phase("j") == "Failed"
        await world.end()

    run(main())


def test_commands_suspend_and_resume_once_each() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        other = ControllerWorld.controlling(world)
        world.tasks.append(asyncio.create_task(other.run()))
        world.server.put("jobs", job("j", 2))
        await asyncio.sleep(8)
        world.command("AbortJob", "Job", "j")
        await asyncio.sleep(8)
        assert (world.phase("j"), world.server.all("pods"), world.server.all("commands")) == ("Aborted", [], [])
        world.command("ResumeJob", "Job", "j")
        await asyncio.sleep(8)
        assert world.phase("j") == "Running"
        assert world.server.get("jobs", "j", "ns")["status"]["retryCount"] == 1
        world.command("CloseQueue", "Queue", "default")
        await asyncio.sleep(3)
        assert world.server.get("queues", "default")["status"]["state"] == "Closing"
        await world.end()

    run(main())


def test_plain_pods_get_groups_and_run() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        for number in range(3):
            meta = {"name": f"p{number}", "namespace": "ns"}
            spec = {"schedulerName": "volcano", "containers": [container]}
            world.server.put("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        await asyncio.sleep(6)
        assert world.waiting() == []
        assert len(world.server.all("podgroups")) == 3
        await world.end()

    run(main())


def test_a_finished_job_goes_when_its_time_is_over() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go(scheduling=False)
        done = {"state": {"phase": "Completed", "lastTransitionTime": "2027-01-15T08:00:00Z"}}
        world.server.put("jobs", {**job("j", 1, ttlSecondsAfterFinished=3600), "status": done})
        await asyncio.sleep(60)
        assert len(world.server.all("jobs")) == 1
        await asyncio.sleep(3600)
        assert world.server.all("jobs") == []
        await world.end()

    run(main())


FAULTS = [
    pytest.param(lambda: status(409, "Conflict"), "before", id="409"),
    pytest.param(lambda: status(500, "InternalError"), "before", id="500"),
    pytest.param(lambda: status(500, "InternalError"), "after", id="500 though done"),
    pytest.param(lambda: status(429, "TooManyRequests", Retry_After="1"), "before", id="429"),
    pytest.param(None, "before", id="unreachable"),
    pytest.param(None, "after", id="unreachable though done"),
]


def test_a_job_says_what_its_last_look_was_refused_for() -> None:
    """Not what hindered an earlier one, such as a server that was away."""

    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        text = "spec.containers: no"
        writes: list[bytes] = []

        def refuses(request: Request, at: str) -> Response | None:
            if at == "before" and request.path.endswith("/jobs/j/status"):
                writes.append(request.body or b"")
            if at != "before" or request.method != "POST" or not request.path.endswith("/pods"):
                return None
            if asyncio.get_running_loop().time() < away:
                raise Unreachable("connection refused")
            return status(422, "Invalid", text)

        world.server.faults.append(refuses)
        away = asyncio.get_running_loop().time() + 20
        world.server.put("jobs", job("j", 1))
        await asyncio.sleep(60)
        assert text in world.server.get("jobs", "j", "ns")["status"]["state"]["message"]
        assert not [body for body in writes if b"connection refused" in body]
        await world.end()

    run(main())


@pytest.mark.parametrize("on", ["memory", "embedded"])
@pytest.mark.parametrize(("fault", "when"), FAULTS)
def test_every_write_may_fail_once(fault: Any, when: str, on: str) -> None:
    """Each write of the controllers fails the first time, carried out or not; all comes out the same."""

    async def main() -> None:
        world = ControllerWorld(on)
        await world.go()
        failed: set[tuple[str, str]] = set()

        def fails(request: Request, at: str) -> Response | None:
            key = (request.method, request.path)
            if at != when or request.method == "GET" or "binding" in request.path or "leases" in request.path:
                return None
            if key in failed or not any(part in request.path for part in ("/jobs", "/pods", "/podgroups", "/commands")):
                return None
            failed.add(key)
            if fault is None:
                raise Unreachable("no answer", request=str(request))
            answer: Response = fault()
            return answer

        world.server.faults.append(fails)
        world.server.put("jobs", job("j", 3))
        await asyncio.sleep(20)
        assert (world.phase("j"), len(world.server.all("pods"))) == ("Running", 3)
        world.command("RestartJob", "Job", "j")
        await asyncio.sleep(30)
        assert (world.phase("j"), len(world.server.all("pods"))) == ("Running", 3)
        status_ = world.server.get("jobs", "j", "ns")["status"]
        assert (status_["retryCount"], status_["running"]) == (1, 3)
        assert len(failed) > 8
        await world.end()

    run(main())


def test_a_plain_pod_is_told_why_it_gets_no_pod_group() -> None:
    """Otherwise it would wait for ever without a stated reason."""

    async def main() -> None:
        world = ControllerWorld()
        await world.go(scheduling=False)

        def refuses(request: Request, at: str) -> Response | None:
            refused = at == "before" and request.method == "POST" and request.path.endswith("/podgroups")
            return status(422, "Invalid", "spec.queue: no such name") if refused else None

        world.server.faults.append(refuses)
        pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"schedulerName": "volcano", "containers": []}}
        world.server.put("pods", pod)
        await asyncio.sleep(5)
        (event,) = [one for one in world.server.all("events") if one["involvedObject"]["name"] == "p"]
        assert (event["type"], event["reason"]) == ("Warning", "PodGroupError")
        assert event["message"].startswith("Failed to create PodGroup, err: ")
        await world.end()

    run(main())


def test_a_job_says_what_the_server_has_against_its_pods_until_it_gets_them() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        text = 'Pod "j-t-0" is invalid: spec.tolerations[0].operator: Unsupported value'
        writes: list[bytes] = []

        def refuses(request: Request, at: str) -> Response | None:
            if at == "before" and request.path.endswith("/jobs/j/status"):
                writes.append(request.body or b"")
            refused = at == "before" and request.method == "POST" and request.path.endswith("/pods")
            return status(422, "Invalid", text) if refused else None

        world.server.faults.append(refuses)
        world.server.put("jobs", job("j", 1))
        await asyncio.sleep(12)
        found = world.server.get("jobs", "j", "ns")["status"]
        assert (found["state"]["phase"], found["state"]["reason"]) == ("Pending", "FailedCreate")
        assert text in found["state"]["message"]
        assert text in found["conditions"][-1]["message"]
        assert sum(b"FailedCreate" in body for body in writes) == 1, "it is written when it changes"
        world.server.faults.remove(refuses)
        await asyncio.sleep(30)
        found = world.server.get("jobs", "j", "ns")["status"]
        assert (found["state"]["phase"], found["state"].get("message")) == ("Running", None)
        await world.end()

    run(main())


def test_what_hinders_a_job_may_be_refused_itself_and_is_told() -> None:
    async def main() -> None:
        world = ControllerWorld()
        await world.go()

        def refuses(request: Request, at: str) -> Response | None:
            makes = request.method == "POST" and request.path.endswith("/pods")
            hinders = request.path.endswith("/jobs/j/status") and b"FailedCreate" in (request.body or b"")
            refused = at == "before" and (makes or hinders)
            return status(403, "Forbidden", f"no {request.method} for you") if refused else None

        world.server.put("jobs", job("j", 1))
        world.server.faults.append(refuses)
        await asyncio.sleep(5)
        told = {str(row["error"]) for row in world.told.of("control_retried")}
        assert told == {"no PATCH for you", "no POST for you"}
        await world.end()

    run(main())


@pytest.mark.parametrize("on", ["memory", "embedded"])
def test_after_a_cut_and_a_crash_everything_goes_on(on: str) -> None:
    async def main() -> None:
        world = ControllerWorld(on)
        task = await world.go()
        world.server.put("jobs", job("j", 3))
        await asyncio.sleep(0.15)
        task.cancel()
        await asyncio.sleep(1)
        world.controllers = world.controlling()
        again = asyncio.create_task(world.controllers.run())
        world.tasks.append(again)
        await asyncio.sleep(2)
        world.server.forget()
        world.server.cut()
        await asyncio.sleep(10)
        assert (world.phase("j"), len(world.server.all("pods"))) == ("Running", 3)
        await world.end()

    run(main())


def test_controllers_that_do_not_lead_write_nothing_until_they_take_over() -> None:
    async def main() -> None:
        server = MemoryServer()
        server.put("queues", queue("default"))
        leads = False
        controllers = Controllers(Client(server, dice=random.Random(5)), may_write=lambda: leads)
        task = asyncio.create_task(controllers.run())
        await asyncio.sleep(1)
        server.put("jobs", job("j", 3))
        await asyncio.sleep(5)
        assert [request for request in server.requests if request.method != "GET"] == []
        leads = True
        await asyncio.sleep(2)
        assert len(server.all("podgroups")) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_a_job_that_cannot_be_served_is_terminated_in_the_end() -> None:
    async def main() -> None:
        world = ControllerWorld()
        world.controllers = world.controlling(max_requeue=3)
        await world.go(scheduling=False)
        world.server.put("jobs", job("j", 1, queue="nowhere"))
        await asyncio.sleep(5)
        assert world.phase("j") == "Terminated"
        texts = [event["message"] for event in world.server.all("events")]
        assert "Job failed on action SyncJob for retry limit reached" in texts
        told = "given up after 4 attempts, until something about it changes: queue nowhere of the job is not there"
        assert told in texts
        await world.end()

    run(main())


def test_without_another_attempt_a_job_is_given_up_at_its_first_failure() -> None:
    async def main() -> None:
        world = ControllerWorld()
        world.controllers = world.controlling(max_requeue=0)
        await world.go(scheduling=False)
        world.server.put("jobs", job("j", 1, queue="nowhere"))
        await asyncio.sleep(5)
        assert world.phase("j") == "Terminated"
        [told] = world.told.of("control_given_up")
        assert told["tries"] == 1
        await world.end()

    run(main())


def test_a_kind_that_the_server_has_only_later_is_followed_from_then_on() -> None:
    async def main() -> None:
        world = ControllerWorld()

        def unknown(request: Request, _when: str) -> Response | None:
            return status(404, "NotFound") if "hypernodes" in request.path else None

        world.server.faults.append(unknown)
        await world.go(scheduling=False)
        assert world.controllers.ready.is_set()
        assert [str(told["resource"]) for told in world.told.of("not_served")] == ["hypernodes.topology.volcano.sh"]
        world.server.faults.clear()
        selector = {"exactMatch": {"name": "n1"}}
        spec = {"tier": 1, "members": [{"type": "Node", "selector": selector}]}
        world.server.put("hypernodes", {"metadata": {"name": "rack"}, "spec": spec})
        await asyncio.sleep(UNKNOWN_PAUSE + 1)
        assert world.server.get("hypernodes", "rack")["status"]["nodeCount"] == 1
        await world.end()

    run(main())


NOT_HEARD = {
    "no server answers": lambda: raised(Unreachable("connection refused")),
    "no credentials are to be had": lambda: raised(AccessError("the credential plugin ended with 1")),
    "the credentials are refused": lambda: status(401, "Unauthorized"),
    "there is too much to do": lambda: status(429, "TooManyRequests", retry_after="1"),
}


def raised(error: Exception) -> Response:
    raise error


@pytest.mark.parametrize("trouble", NOT_HEARD)
def test_no_job_is_given_up_because_no_server_listens(trouble: str) -> None:
    async def main() -> None:
        world = ControllerWorld()
        world.controllers = world.controlling(max_requeue=3)
        await world.go()
        world.server.put("jobs", job("j", 2))
        await asyncio.sleep(5)

        def gone(request: Request, at: str) -> Response | None:
            return NOT_HEARD[trouble]() if at == "before" and request.method != "GET" else None

        world.server.faults.append(gone)
        world.end_pods("j", "Succeeded")
        await asyncio.sleep(45)
        world.server.faults.remove(gone)
        await asyncio.sleep(15)
        assert world.phase("j") == "Completed"
        await world.end()

    run(main())


def test_what_asked_for_a_look_that_fails_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command is deleted before it is carried out: it would be lost."""

    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        world.server.put("jobs", job("j", 2))
        await asyncio.sleep(8)
        look = world.controllers.manager.jobs.look

        def failing(*given: Any) -> Any:
            monkeypatch.setattr(world.controllers.manager.jobs, "look", look)
            raise TypeError("an unforeseen error")

        monkeypatch.setattr(world.controllers.manager.jobs, "look", failing)
        world.command("AbortJob", "Job", "j")
        await asyncio.sleep(8)
        assert "TypeError: an unforeseen error" in str(world.told.of("control_retried")[-1]["error"])
        assert world.phase("j") == "Aborted"
        await world.end()

    run(main())


def test_a_look_may_fail_for_weeks() -> None:
    async def main() -> None:
        world = ControllerWorld()
        world.controllers = world.controlling(max_requeue=-1)
        running = await world.go(scheduling=False)
        world.server.put("jobs", job("j", 1, queue="nowhere"))
        work = Work(About.job, ("ns", "j"))
        await asyncio.sleep(1)
        world.controllers._failures[work] = 10_000
        world.controllers.manager.ready[work] = None
        world.controllers._wake.set()
        await asyncio.sleep(2000)
        assert (world.controllers._failures[work] > 10_001, running.done()) == (True, False)
        await world.end()

    run(main())


def test_a_command_that_may_not_be_deleted_is_forgotten_in_the_end() -> None:
    async def main() -> None:
        world = ControllerWorld()
        world.controllers = world.controlling(max_requeue=2)
        await world.go(scheduling=False)
        world.server.put("jobs", job("j", 1))

        bodies: list[bytes | None] = []

        def refuses(request: Request, at: str) -> Response | None:
            if at != "before" or "/commands/" not in request.path:
                return None
            bodies.append(request.body)
            return status(403, "Forbidden")

        world.server.faults.append(refuses)
        world.command("AbortJob", "Job", "j")
        await asyncio.sleep(5)
        assert bodies
        assert all(b"preconditions" in (body or b"") for body in bodies), "another one of its name is not deleted"
        assert len(world.told.of("control_given_up")) == 1
        assert world.controllers.manager.commands.taking == {}
        await world.end()

    run(main())


def test_an_unexpected_object_troubles_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        world = ControllerWorld()
        look = world.controllers.manager.look

        def failing(work: Work, now: float) -> Outcome:
            if work.key[1] == "odd":
                raise TypeError("an unforeseen error")
            return look(work, now)

        monkeypatch.setattr(world.controllers.manager, "look", failing)
        await world.go()
        for name in ("odd", "even"):
            world.server.put("jobs", job(name, 2))
        await asyncio.sleep(8)
        assert (world.phase("odd"), world.phase("even")) == ("", "Running")
        assert "TypeError: an unforeseen error" in str(world.told.of("control_retried")[-1]["error"])
        await world.end()

    run(main())


def test_pods_that_start_together_cost_one_status() -> None:
    """A job's status is written a few times in its life, however many pods it has."""

    async def main() -> None:
        world = ControllerWorld()
        world.server.requests.clear()
        await world.go()
        for number in range(4):
            world.server.put("jobs", job(f"j{number}", 4))
        await asyncio.sleep(10)
        statuses = [request for request in world.server.requests if request.path.endswith("/status")]
        of_jobs = [request for request in statuses if "/jobs/" in request.path and request.method == "PATCH"]
        assert len(of_jobs) <= 4 * 4
        await world.end()

    run(main())


def test_looks_that_are_over_are_not_kept() -> None:
    """In months there are millions of them."""

    async def main() -> None:
        world = ControllerWorld()
        await world.go()
        world.server.put("jobs", job("j", 4))
        await asyncio.sleep(10)
        assert world.controllers.looks > 0
        assert (world.controllers._looking, world.controllers._busy) == (set(), set())
        await world.end()

    run(main())


def test_an_order_to_a_queue_reaches_the_queues_below_it() -> None:
    async def main() -> None:
        world = ControllerWorld()
        for name, parent in (("top", "root"), ("low", "top")):
            world.server.put("queues", {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}})
        await world.go(scheduling=False)
        for action, state in (("CloseQueue", "Closed"), ("OpenQueue", "Open")):
            world.command(action, "Queue", "top")
            await asyncio.sleep(5)
            states = {name: world.server.get("queues", name)["status"]["state"] for name in ("top", "low")}
            assert states == {"top": state, "low": state}
        await world.end()

    run(main())
