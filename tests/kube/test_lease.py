"""Leader election tells of itself on the Lease, in the words of Kubernetes' own programs."""

from __future__ import annotations

import asyncio
import random

import pytest

from stromboli.errors import LostLease, Unreachable
from stromboli.kube.client import Client
from stromboli.kube.lease import FAREWELL, Election, Terms
from stromboli.kube.recorder import Recorder
from stromboli.kube.transport import Request, Response
from tests.support.memory_server import MemoryServer
from tests.support.virtual import run


def clock() -> float:
    return 1_800_000_000.0 + asyncio.get_running_loop().time()


def candidate(server: MemoryServer, name: str) -> tuple[Election, Recorder]:
    client = Client(server, dice=random.Random(name))
    recorder = Recorder(client, "volcano", clock)
    return Election(client, Terms("home", "volcano", name), clock=clock, recorder=recorder), recorder


def told(server: MemoryServer) -> list[str]:
    """The texts of the events on the Lease; all else of them is checked here."""
    events = server.all("events")
    lease = server.get("leases", "volcano", "home")["metadata"]
    about = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": "home", "name": "volcano"}
    for event in events:
        assert event["involvedObject"] == {**about, "uid": lease["uid"]}
        assert (event["type"], event["reason"], event["metadata"]["namespace"]) == ("Normal", "LeaderElection", "home")
        assert event["source"] == {"component": "volcano"}
    return [event["message"] for event in events]


def test_beginning_and_stopping_to_lead_is_said_once() -> None:
    async def main() -> None:
        server = MemoryServer()
        first, recorder = candidate(server, "first")
        sending = asyncio.create_task(recorder.run())
        await first.win()
        holding = asyncio.create_task(first.hold())
        await asyncio.sleep(20)
        assert told(server) == ["first became leader"]
        holding.cancel()
        sending.cancel()
        await asyncio.gather(holding, sending, return_exceptions=True)
        await first.release()
        await first.release()
        assert told(server) == ["first became leader", "first stopped leading"]
        second, recorder = candidate(server, "second")
        sending = asyncio.create_task(recorder.run())
        await second.win()
        await recorder.drain()
        assert told(server)[2:] == ["second became leader"]
        sending.cancel()

    run(main())


def test_a_candidate_that_never_led_writes_nothing_at_its_release() -> None:
    async def main() -> None:
        server = MemoryServer()
        first, _ = candidate(server, "first")
        await first.win()
        second, _ = candidate(server, "second")
        waiting = asyncio.create_task(second.win())
        await asyncio.sleep(5)
        waiting.cancel()
        await second.release()
        assert told(server) == []
        assert server.get("leases", "volcano", "home")["spec"]["holderIdentity"] == "first"

    run(main())


ODD = b'{"metadata": {}, "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": "long"}}'


@pytest.mark.parametrize("answer", [b"<html>", b"{}", ODD])
def test_an_answer_that_is_no_lease_costs_an_attempt(answer: bytes) -> None:
    async def main() -> None:
        server = MemoryServer()
        first, _ = candidate(server, "first")
        await first.win()
        second, _ = candidate(server, "second")
        server.faults.append(lambda request, _: Response(200, {}, answer) if request.method == "GET" else None)
        tasks = [asyncio.create_task(first.hold()), asyncio.create_task(second.win())]
        await asyncio.sleep(5)
        server.faults.clear()
        await asyncio.sleep(60)
        assert (first.leads, [task.done() for task in tasks]) == (True, [False, False])
        for task in tasks:
            task.cancel()

    run(main())


@pytest.mark.parametrize("cut", ["the Lease", "everything"])
def test_the_last_word_of_a_process_that_lost_the_lease_takes_no_time(cut: str) -> None:
    async def main() -> None:
        server = MemoryServer()
        election, _ = candidate(server, "me")
        await election.win()

        def fault(request: Request, _when: str) -> Response | None:
            if cut == "everything" or "/leases" in request.path:
                raise Unreachable("cut", request=str(request))
            return None

        server.faults.append(fault)
        with pytest.raises(LostLease):
            await election.hold()
        lost = asyncio.get_running_loop().time()
        if cut == "everything":
            server.faults.clear()
            server.latency = 30.0
        await election.release()
        assert asyncio.get_running_loop().time() - lost <= FAREWELL
        assert told(server) == ([] if cut == "everything" else ["me stopped leading"])

    run(main())
