"""What goes wrong, done to real processes, to the way to the server, and to the objects in it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.chaos.drawn import CONTROLLERS, NODES, SCHEDULERS, Schedule
from benchmarks.chaos.rest import gave_up_leading, refused_conf
from e2e.clusters import MERGE, Json, Refused
from e2e.proxy import Proxy, Rule, Strike, let_pass
from e2e.real import UNREACHABLE, ended
from e2e.stage import JOBS, Stage
from stromboli.live.installation.configurations import CONFIGURATION

GOOD: Final = CONFIGURATION.replace("allocate,", "allocate, preempt, reclaim,")
RELOADS: Final = (
    GOOD.replace("  - name: binpack\n", ""),
    GOOD.replace("preempt, reclaim,", "preempt,"),
    GOOD.replace("proportion", "capacity"),
)
SPOILT: Final = ("actions: [\n", GOOD.replace("binpack", "no-such-plugin"), "")
TERMS: Final = (
    "--leader-elect=true", "--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=300ms",
)  # fmt: skip
FLAGS: Final = (*TERMS, "--feature-gates=PipelinedStatePersistence=true")


class World:
    """Two schedulers and controllers behind a proxy; whatever ends is begun again, as a cluster does it."""

    def __init__(self, stage: Stage, proxy: Proxy, jump: Callable[[float], None]) -> None:
        self.stage, self.proxy, self._jump = stage, proxy, jump
        self.deleted: set[str] = set()
        self._expected: set[int] = set()
        """Processes that were told to end."""
        self._began: dict[str, int] = {}
        """The size of each process's log in bytes when it was started last."""
        self._kinds: dict[str, Callable[[Any], None]] = {
            "kill": self._kill, "terminate": self._terminate, "freeze": self._freeze, "cut": lambda _: proxy.cut(),
            "muffle": self._muffle, "confuse": self._confuse, "strike": self._strike, "slow": self._slow,
            "restart-server": self._restart_server, "lose-node": self._lose_node, "jump": jump,
            "reload": lambda at: self._configure(RELOADS[at]), "spoil": lambda at: self._configure(SPOILT[at]),
            "delete-pod": self._delete_pod, "delete-job": self._delete_job, "scale": self._scale,
            "label": self._label, "create": stage.create,
        }  # fmt: skip

    def begin(self) -> None:
        """Begin what does not run."""
        if CONTROLLERS in self.stage.running:
            ended(self.stage.running[CONTROLLERS])
        self._start(CONTROLLERS)
        for name in SCHEDULERS:
            self._start(name)

    def _start(self, name: str) -> None:
        path = self._path(name)
        self._began[name] = path.stat().st_size if path.exists() else 0
        if name == CONTROLLERS:
            self.stage.control(self.proxy.url)
        else:
            self.stage.schedule(*FLAGS, conf=GOOD, name=name, through=self.proxy.url)

    def play(self, drawn: Schedule) -> None:
        """Do step by step what a schedule says, each at its time or as soon as the ones before are done."""
        self.deleted.clear()
        self._space, began = drawn.space, time.monotonic()
        for step in drawn.steps:
            time.sleep(max(0.0, began + step.at - time.monotonic()))
            self._kinds[step.kind](step.detail)

    def heal(self) -> None:
        """No more faults; what had ended runs again."""
        self.proxy.rule, self.proxy.delay, self.proxy.confused = let_pass, 0.0, None
        self._jump(0.0)
        self._configure(GOOD)
        for name in (*SCHEDULERS, CONTROLLERS):
            self.stage.running[name].send_signal(signal.SIGCONT)
        self.ended()

    def ended(self) -> list[str]:
        """Processes that have ended by themselves and not for a lost Lease; all that have ended run again."""
        wrong = []
        for name in (*SCHEDULERS, CONTROLLERS):
            process = self.stage.running[name]
            if (code := process.poll()) is None:
                continue
            log = self._path(name).read_bytes()[self._began[name] :].decode(errors="replace")
            may_end = (code == 1 and gave_up_leading(log)) or (code == 2 and refused_conf(log))
            if process.pid not in self._expected and not may_end:
                wrong.append(f"{name} has ended by itself with {code}: {log[-600:]}")
            self._start(name)
        return wrong

    def _path(self, name: str) -> Path:
        return self.stage.folder / f"{name}.log"

    def leader(self) -> str:
        """The scheduler that began to lead last and runs; empty if there is none."""
        begun = {name: self._began_to_lead(name) for name in SCHEDULERS if self.stage.running[name].poll() is None}
        leads = {name: moment for name, moment in begun.items() if moment}
        return max(leads, key=leads.__getitem__) if leads else ""

    def _began_to_lead(self, name: str) -> str:
        said = [line for line in self.stage.logged(name) if line["key"] in ("leading", "waiting_for_lease")]
        return str(said[-1]["ts"]) if said and said[-1]["key"] == "leading" else ""

    # ------------------------------------------------------------------ processes

    def _kill(self, name: str) -> None:
        process = self.stage.running[name]
        self._expected.add(process.pid)
        process.kill()
        process.wait()
        self._start(name)

    def _terminate(self, name: str) -> None:
        process = self.stage.running[name]
        self._expected.add(process.pid)
        process.send_signal(signal.SIGCONT)
        ended(process)
        self._start(name)

    def _freeze(self, name: str) -> None:
        self.stage.running[name].send_signal(signal.SIGSTOP)

    def _configure(self, conf: str) -> None:
        for name in SCHEDULERS:
            self.stage.configure(conf, name)

    def _restart_server(self, away: float) -> None:
        self.stage.server.kill()
        time.sleep(away)
        self.stage.server.start()

    # ------------------------------------------------------------------ the way to the server

    def _muffle(self, _: None) -> None:
        """Watches stay open without news, as behind a proxy whose server goes away: requests fail meanwhile."""
        self.proxy.muffle()
        self.proxy.rule = lambda _method, _path, _body: Strike(503)

    def _confuse(self, seed: float) -> None:
        self.proxy.confused = Random(seed)
        self.proxy.cut()

    def _strike(self, how: Json) -> None:
        self.proxy.rule = _striking(Random(str(how)), how["share"], Strike(how["code"], how["done"], _after(how)))

    def _slow(self, seconds: float) -> None:
        self.proxy.delay = seconds

    # ------------------------------------------------------------------ objects

    def _lose_node(self, which: float) -> None:
        """A node is deleted, its pods with it, as a cloud does when a machine is gone; then another one comes."""
        ended(self.stage.running["kubelets"])
        nodes = sorted(one["metadata"]["name"] for one in self.stage.items("/api/v1/nodes"))
        lost = nodes[int(which * len(nodes))]
        self.stage.delete(f"/api/v1/nodes/{lost}")
        for pod in self.stage.pods(self._space):
            if pod["spec"].get("nodeName") == lost:
                self._remove(pod)
        self.stage.add_nodes(*NODES)

    def _remove(self, pod: Json) -> None:
        name = pod["metadata"]["name"]
        self.deleted.add(name)
        with suppress(Refused, *UNREACHABLE):
            path = f"/api/v1/namespaces/{self._space}/pods/{name}"
            self.stage.api.call("DELETE", path, {"gracePeriodSeconds": 0})

    def _delete_pod(self, which: float) -> None:
        if pods := sorted(self.stage.pods(self._space), key=lambda pod: str(pod["metadata"]["name"])):
            self._remove(pods[int(which * len(pods))])

    def _delete_job(self, which: float) -> None:
        path = JOBS.format(self._space)
        if jobs := sorted(one["metadata"]["name"] for one in self.stage.items(path)):
            name = jobs[int(which * len(jobs))]
            self.deleted.add(name)
            self.stage.delete(f"{path}/{name}")

    def _scale(self, _: None) -> None:
        """The job that stays gets a pod more."""
        path = f"{JOBS.format(self._space)}/stays"
        with suppress(Refused):
            spec = self.stage.api.call("GET", path)["spec"]
            spec["tasks"][0]["replicas"] += 1
            self.stage.api.call("PATCH", path, {"spec": {"tasks": spec["tasks"]}}, MERGE)

    def _label(self, which: float) -> None:
        if pods := self.stage.pods(self._space):
            name = pods[int(which * len(pods))]["metadata"]["name"]
            with suppress(Refused):
                path = f"/api/v1/namespaces/{self._space}/pods/{name}"
                self.stage.api.call("PATCH", path, {"metadata": {"labels": {"looked-at": "yes"}}}, MERGE)


def _after(how: Json) -> str:
    return "1" if how["code"] == 429 else ""


def _striking(dice: Random, share: float, strike: Strike) -> Rule:
    """A share of requests is struck; conflicts come of writes alone."""

    def rule(method: str, _path: str, _body: bytes) -> Strike | None:
        if strike.code == 409 and method == "GET":
            return None
        return strike if dice.random() < share else None

    return rule
