"""Prints what Jobs with plugins cost the controllers: ``python -m benchmarks.live.job_plugins [--jobs N] [--size N]``.

The embedded API server stands in this process and lets the PodGroups in; the controllers are a process of their own.
Beside CPU it counts their requests, by verb and resource; with ``--keys`` it only says what a key costs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from benchmarks.live.load import NAMESPACE, NAMESPACES, Load, submit
from benchmarks.live.processes import Processes, in_threads
from benchmarks.tables import figure, head, machine, row
from stromboli.cluster.body import changed, part
from stromboli.kube.access import from_kubeconfig
from stromboli.kube.client import Client
from stromboli.kube.resources import QUEUES
from stromboli.live.controllers.ssh_keys import BITS, completed_keys
from stromboli.server.addresses import address_of
from stromboli.server.api import Api
from stromboli.server.http.http import Front
from stromboli.server.http.serving import serving

LIMIT: Final = 2.5
"""CPU milliseconds of the controllers for each pod, without the making of keys."""
COLUMNS: Final = ("plugins", "ms/pod", "of it keys", "without", "ms/Job", "requests/Job", "requests/pod")
KEYS_MADE: Final = 40
SPACE: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
GIVEN: Final = ["--ssh-private-key=given", "--ssh-public-key=given"]
CASES: Final[Mapping[str, dict[str, list[str]]]] = {
    "none": {},
    "svc": {"svc": []},
    "svc, ssh with a given key": {"svc": [], "ssh": GIVEN},
    "svc, ssh": {"svc": [], "ssh": []},
}
_OURS: Final = "load"
"""What requests of this process are marked with."""
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_QUEUES: Final = ("scheduling.volcano.sh", "queues")
_GROUPS: Final = ("scheduling.volcano.sh", "podgroups")


class Cost(NamedTuple):
    """CPU seconds of the controllers until all pods have been made, those of ``threads`` (the keys) among them."""

    cpu: float
    threads: float
    requests: Counter[str]


class Counting(Front):
    """A server that counts what others than this process ask it for, but for watches."""

    def __init__(self, api: Api, requests: Counter[str]) -> None:
        super().__init__(api)
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count one request, and answer it."""
        request = Request(scope)
        address = address_of(str(scope["path"]))
        if address is not None and "watch" not in request.query_params and request.headers.get("user-agent") != _OURS:
            verb = "list" if request.method == "GET" and not address.name else _VERBS[request.method]
            what = "/".join(word for word in (address.plural, address.subresource) if word)
            self._requests[f"{verb} {what}"] += 1
        await super().__call__(scope, receive, send)


async def cost_of(load: Load, plugins: dict[str, list[str]]) -> Cost:
    """What the controllers take until all pods have been made."""
    requests: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name, Processes(Path(name)) as processes:
        async with serving(Path(name) / "server", front=lambda api: Counting(api, requests)) as served:
            kubeconfig = str(served.access.kubeconfig)
            command = ["controllers", f"--kubeconfig={kubeconfig}", "--leader-elect=false"]
            processes.start("controllers", [sys.executable, "-m", "stromboli.cli.main", *command])
            access = from_kubeconfig([kubeconfig])
            async with Client.reaching(access, qps=5000, burst=10000, agent=_OURS) as client:
                await client.create(NAMESPACES, SPACE)
                await client.create(QUEUES, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
                while not _is_open(served.api):
                    await asyncio.sleep(0.5)
                pid = processes.pid("controllers")
                before, threads = processes.costs()["controllers"].cpu, in_threads(pid)
                requests.clear()
                await submit(client, [(kind, _with(body, plugins)) for kind, body in load.items()])
                while len(served.api.store.of(("", "pods")).entries) < load.pods:
                    _admit(served.api)
                    await asyncio.sleep(0.2)
                await asyncio.sleep(3.0)
                return Cost(processes.costs()["controllers"].cpu - before, in_threads(pid) - threads, requests)


def _with(body: dict[str, Any], plugins: dict[str, list[str]]) -> dict[str, Any]:
    return {**body, "spec": {**body["spec"], "plugins": plugins}}


def _is_open(api: Api) -> bool:
    queue = api.store.get(_QUEUES, ("", "default"))
    return queue is not None and part(queue.body, "status", "state") == "Open"


def _admit(api: Api) -> None:
    """What a scheduler with room does."""
    for entry in list(api.store.of(_GROUPS).sorted()):
        if part(entry.body, "status", "phase") in (None, "Pending"):
            api.store.put(_GROUPS, changed(entry.body, status={"phase": "Inqueue"}))


def key_cost() -> float:
    """CPU milliseconds of one key, the mean of some."""
    before = time.process_time()
    for _ in range(KEYS_MADE):
        completed_keys({})
    return (time.process_time() - before) / KEYS_MADE * 1000


def main() -> int:
    """Print the tables; 1 when a case costs more than its limit, keys aside."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.job_plugins")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--size", type=int, default=5, help="pods of a Job")
    parser.add_argument("--keys", action="store_true", help="only what a key costs")
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help="default: all")
    options = parser.parse_args()
    print(f"{machine()}\n\nan RSA key of {BITS} bits: {key_cost():.1f} ms")
    return 0 if options.keys else _compared(options)


def _compared(options: argparse.Namespace) -> int:
    """Print what each case costs; 1 when one costs too much."""
    load = Load("jobs", "jobs", options.jobs, options.size, backlog=False)
    names = options.cases or list(CASES)
    print("\n" + head(COLUMNS))
    costs = {}
    for name in names:
        costs[name] = cost = asyncio.run(cost_of(load, CASES[name]))
        print(_row(name, cost, load), flush=True)
    kinds = sorted({kind for cost in costs.values() for kind in cost.requests})
    print("\n" + head(("requests a Job", *names)))
    for kind in kinds:
        print(row((kind, *(figure(costs[name].requests[kind] / load.groups) for name in names))))
    return 0 if all(1000 * (cost.cpu - cost.threads) / load.pods <= LIMIT for cost in costs.values()) else 1


def _row(name: str, cost: Cost, load: Load) -> str:
    each, keys = (1000 * seconds / load.pods for seconds in (cost.cpu, cost.threads))
    sent = sum(cost.requests.values())
    numbers = (each, keys, each - keys, each * load.size, sent / load.groups, sent / load.pods)
    return row((name, *map(figure, numbers)))


if __name__ == "__main__":
    sys.exit(main())
