"""Parts of recorded scenes that several families share: machines, queues, gangs, and configurations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stromboli.model.names import COOLDOWN_TIME, GPU, PREEMPTABLE, TASK_PRIORITY, TOPOLOGY_ZONE
from stromboli.model.values.times import stamp
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.recorded.drawing import Dice
from tests.recorded.scene import BEGINNING

RANKS = {"low": 1, "mid": 50, "high": 100}
CRITICAL = "system-cluster-critical"
APPS = ("a", "b")
COMING = ("high", "high", "high", "mid", "low")
"""What gangs that come are worth."""


def classes() -> list[Manifest]:
    """The priority classes."""
    known = {**RANKS, CRITICAL: 2_000_000_000}
    return [{"kind": "PriorityClass", "metadata": {"name": name}, "value": value} for name, value in known.items()]


def configuration(actions: str, *tiers: str, more: str = "") -> str:
    """The text of a configuration; of a tier plugins with semicolons between them, arguments in braces behind some."""
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        plugins = [f"{{name: {name}}}" for name in (each.strip() for each in tier.split(";")) if name]
        lines.append(f"- plugins: [{', '.join(plugins)}]")
    return "\n".join([*lines, more, ""])


def machines(dice: Dice, least: int, most: int, *, gpus: bool = False) -> list[Manifest]:
    """So many nodes of a few sizes in two zones."""
    found = []
    for number in range(dice.number(least, most)):
        cpu = dice.one((2, 2, 4, 4, 8))
        labels = {TOPOLOGY_ZONE: dice.one(("east", "west")), "disk": dice.one(("ssd", "hdd"))}
        resources = {GPU: dice.one((1, 2, 4))} if gpus and not dice.one_in(3) else {}
        memory = f"{cpu * dice.one((2, 2, 4))}Gi"
        found.append(node(f"n{number}", cpu=cpu, memory=memory, pods=dice.one((4, 110, 110)), resources=resources,
                          labels=labels))  # fmt: skip
    return found


def names_of(objects: Iterable[Manifest], kind: str = "Node") -> list[str]:
    """The names of the objects of a kind."""
    return [each["metadata"]["name"] for each in objects if each["kind"] == kind]


SIZES: tuple[dict[str, Any], ...] = (
    {"cpu": 1},
    {"cpu": 1},
    {"cpu": 1},
    {"cpu": 2},
    {"cpu": "500m", "memory": "2Gi"},
    {"cpu": 2},
    {"cpu": "1500m", "memory": "500Mi"},
    {"cpu": 0, "memory": 0},
    {"cpu": 1, "requests": {"example.com/unknown": 1}},
)


def residents(
    dice: Dice, nodes: Sequence[Manifest], homes: Sequence[str], groups: str = "abcd", *, full: int = 10
) -> list[Manifest]:
    """Groups whose pods run, end or are about to start on the nodes, which they fill to so many tenths."""
    found: list[Manifest] = []
    members = dict.fromkeys(groups, 0)
    ranks = {group: dice.one(("low", "low", "mid")) for group in groups}
    for each in nodes:
        left = int(each["status"]["allocatable"]["cpu"]) * full // 10 + 2 * dice.one_in(12)
        while left > 0:
            size, group = min(left, dice.one((1, 1, 2))), dice.one(groups)
            left -= size
            members[group] += 1
            found.append(resident(dice, f"{group}-{members[group]}", group, ranks[group], each, size))
    for group, count in members.items():
        least = dice.one((0, 0, 1, 1, max(1, count - 1), count))
        phase = dice.one(("Running", "Running", "Inqueue"))
        found.append(pod_group(group, min_member=least, queue=dice.one(homes), phase=phase, created=dice.number(1, 3),
                               priorityClassName=ranks[group]))  # fmt: skip
    return found


def resident(dice: Dice, name: str, group: str, rank: str, on: Manifest, size: int) -> Manifest:
    """A pod on a node."""
    notes: dict[str, str] = {}
    if dice.one_in(6):
        notes[PREEMPTABLE] = dice.one(("false", "true"))
    if dice.one_in(6):
        notes[COOLDOWN_TIME] = dice.one(("30s", "2h", "soon"))
    if dice.one_in(8):
        notes[TASK_PRIORITY] = dice.one(("3", "70"))
    memory = dice.one(("1Gi", "1Gi", "2Gi", "0"))
    spec: dict[str, Any] = {"priority": RANKS[rank], "priorityClassName": rank}
    if dice.one_in(12):
        spec = {"priority": 2_000_000_000, "priorityClassName": CRITICAL}
    if not dice.one_in(3):
        spec["terminationGracePeriodSeconds"] = dice.one((0, 5, 30, 90, 600))
    labels = {"app": dice.one(APPS)} if not dice.one_in(9) else {}
    made = pod(name, group=group, on=on["metadata"]["name"], cpu=size, memory=memory, annotations=notes, labels=labels,
               created=dice.number(1, 9), deleting=dice.one_in(14),
               phase=dice.one(("Running", "Running", "Running", "Pending")), **spec)  # fmt: skip
    if COOLDOWN_TIME in notes:
        since = dice.one((5, 60, 4000))
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(int(BEGINNING) - since)}]
        made = changed(made, status={"conditions": conditions})
    if dice.one_in(3):
        made["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": group, "controller": True}]
    return made


def gang(
    dice: Dice, name: str, homes: Sequence[str], *, most: int = 4, ranks: Sequence[str] = COMING,
    sizes: Sequence[dict[str, Any]] = SIZES, group: dict[str, Any] | None = None, want: dict[str, Any] | None = None,
) -> list[Manifest]:  # fmt: skip
    """A group that waits, of one or two kinds of pods; ``group`` and ``want`` are further fields of it and of them."""
    rank, found = dice.one(ranks), list[Manifest]()
    app = dice.one((*APPS, ""))
    fields: dict[str, Any] = {"priority": RANKS[rank], "priorityClassName": rank, **(want or {})}
    roles = {}
    for kind in ("w", "m")[: 1 if dice.one_in(2) else 2]:
        size, count = dice.one(sizes), dice.number(1, most)
        roles[kind] = count
        for number in range(count):
            more: dict[str, Any] = {"preemptionPolicy": "Never"} if dice.one_in(30) else {}
            if dice.one_in(40):
                more["schedulingGates"] = [{"name": dice.one(("example.com/later", "other"))}]
            more["labels"] = fields.get("labels") or {"app": app or dice.one(APPS)}
            found.append(pod(f"{name}-{kind}{number}", group=name, role=kind, created=2 if app else dice.number(1, 3),
                             **{**size, **fields, **more}))  # fmt: skip
    spec: dict[str, Any] = {"priorityClassName": rank, **(group or {})}
    if dice.one_in(4):
        spec["minTaskMember"] = {role: dice.number(1, count) for role, count in roles.items()}
    if dice.one_in(3):
        spec["minResources"] = {"cpu": str(dice.number(1, 6)), "memory": "2Gi"}
    least = dice.one((1, len(found), len(found), dice.number(0, len(found) + 1)))
    made = pod_group(name, min_member=least, queue=dice.one(homes), created=dice.number(1, 4),
                     phase=dice.one(("Pending", "Inqueue")), **spec)  # fmt: skip
    return [made, *found]


def bare(dice: Dice, name: str) -> list[Manifest]:
    """A group of one pod that asks for nothing."""
    return [pod_group(name, phase="Inqueue"), pod(f"{name}-0", group=name, cpu=0, memory=0, labels={"app": "a"})]


def changed(made: Manifest, **parts: dict[str, Any]) -> Manifest:
    """The object with other fields in its parts."""
    return {**made, **{part: {**made.get(part, {}), **fields} for part, fields in parts.items()}}


def ended(made: Manifest) -> Manifest:
    """The pod, whose work is done."""
    return changed(made, status={"phase": "Succeeded"})
