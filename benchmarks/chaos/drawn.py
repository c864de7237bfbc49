"""Schedules of faults: what is asked of a cluster and what goes wrong meanwhile, the same for the same dice."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from e2e.clusters import Json
from e2e.objects import job, plain_pod

SCHEDULERS: Final = ("first", "second")
"""Both stand for one Lease."""
CONTROLLERS: Final = "controllers"
NODES: Final = ("4x8cpu,32Gi", "2x8cpu,32Gi,nvidia.com/gpu=4")
QUEUES: Final = {"default": 1, "red": 1, "blue": 3}
"""Weights by name."""
PRIORITIES: Final = {"lowly": 1, "lofty": 1000}
LENGTH: Final = 3.0
"""Seconds until faults end."""
CODES: Final = (409, 429, 500, 503, 0)

FAULTS: Final = (
    "kill", "kill", "terminate", "freeze", "freeze", "restart-server", "cut", "muffle", "confuse",
    "strike", "strike", "strike", "slow", "lose-node", "jump", "reload", "spoil", "delete-pod", "delete-pod",
    "delete-job", "scale", "label",
)  # fmt: skip
"""What may go wrong, the more likely the more often it is named."""


@dataclass(frozen=True)
class Step:
    """What happens ``at`` so many seconds; ``detail`` says how, by what ``kind`` it is."""

    at: float
    kind: str
    detail: Any = None

    def __str__(self) -> str:
        shown = self.detail["metadata"]["name"] if self.kind == "create" else self.detail
        return f"{self.at:.2f} s {self.kind}" + ("" if shown is None else f" {shown}")


@dataclass(frozen=True)
class Schedule:
    """Steps in their order."""

    space: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"{self.space}: " + "; ".join(map(str, self.steps))


def schedule(dice: Random, space: str) -> Schedule:
    """A workload for a namespace, and two to five faults."""
    work = [Step(_moment(dice, 0.6), "create", body) for body in _workload(dice, space)]
    faults = [_fault(dice) for _ in range(dice.randint(2, 5))]
    return Schedule(space, tuple(sorted([*work, *faults], key=lambda step: step.at)))


def _moment(dice: Random, part: float = 1.0) -> float:
    return round(dice.uniform(0.0, LENGTH * part), 2)


def _fault(dice: Random) -> Step:
    kind = dice.choice(FAULTS)
    return Step(_moment(dice), kind, _detail(dice, kind))


def _detail(dice: Random, kind: str) -> Any:
    if kind in ("kill", "terminate", "freeze"):
        return dice.choice((*SCHEDULERS, CONTROLLERS))
    if kind in ("restart-server", "slow"):
        return round(dice.uniform(0.1, 1.0 if kind == "restart-server" else 0.3), 2)
    if kind == "strike":
        return {"code": dice.choice(CODES), "done": dice.random() < 0.4, "share": dice.choice((0.1, 0.3, 0.6))}
    if kind == "jump":
        return dice.choice((-3600.0, -30.0, 30.0, 3600.0))
    if kind in ("reload", "spoil"):
        return dice.randrange(3)
    return dice.random() if kind in ("lose-node", "delete-pod", "delete-job", "confuse", "label") else None


# ---------------------------------------------------------------------- workloads


def _workload(dice: Random, space: str) -> list[Json]:
    """Low jobs that may be preempted, gangs that end, one that stays, GPU gangs, and pods of their own."""
    low = [_job(dice, space, f"low{at}", "lowly", least=1) for at in range(dice.randint(0, 2))]
    gangs = [_job(dice, space, f"gang{at}", dice.choice(tuple(PRIORITIES))) for at in range(dice.randint(1, 3))]
    stays = job(space, "stays", dice.randint(1, 3), cpu="1", command="serve", priorityClassName="lofty", queue="blue")
    learns = [_with_gpus(_job(dice, space, f"learns{at}", "lofty"), dice) for at in range(dice.randint(0, 2))]
    return [*low, *gangs, stays, *learns, *(_pod(dice, space, f"pod{at}") for at in range(dice.randint(0, 3)))]


def _job(dice: Random, space: str, name: str, priority: str, least: int | None = None) -> Json:
    cpu, command = dice.choice(("1", "2", "4")), f"sleep {dice.choice((1, 2))}"
    queue = dice.choice(tuple(QUEUES))
    # At most 20 of 48 cpu: proportion lets no queue exceed what it deserves, and half of the cluster must be enough.
    return job(space, name, dice.randint(1, 5), cpu, command, least, priorityClassName=priority, queue=queue)


def _with_gpus(found: Json, dice: Random) -> Json:
    """A job whose pods each need GPUs, as the API server stores such: limits, and requests equal to them."""
    (task,) = found["spec"]["tasks"]
    task["replicas"] = found["spec"]["minAvailable"] = min(task["replicas"], 4)
    resources = task["template"]["spec"]["containers"][0]["resources"]
    gpus = {"nvidia.com/gpu": str(dice.randint(1, 2))}
    resources["requests"] = {"cpu": "1", "memory": "100Mi", **gpus}
    resources["limits"] = gpus
    return found


def _pod(dice: Random, space: str, name: str) -> Json:
    """A pod that ends; nothing may preempt it."""
    found = plain_pod(space, name, cpu=dice.choice(("500m", "1")))
    found["spec"] |= {"restartPolicy": "Never", "priorityClassName": "lofty"}
    found["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 1"]
    return found
