"""FGD's table: how much of a cluster's GPUs each policy allocates when tasks ask for 130 % of them.

``python -m benchmarks.fragmentation NODES.csv PODS.csv [--seeds N] [--policy NAME]`` with the files of the openb trace.
With several lists of tasks it prints for each of them what the policies allocate, and whether their order is the
published one.

Method and published figures: Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
Fragmentation Gradient Descent", USENIX ATC 2023, figure 9, and its artifact: the tasks of the trace in random order,
then tasks drawn from it at random while the sum of what was asked for stays within 130 % of the nodes' GPUs; one
arrives after the other on the nodes that have GPUs, a task that does not fit is dropped, and no task ends.  Here all
tasks stand in one queue, and one cycle of the scheduler places them in the order of their creation.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.tables import figure, head, machine, row
from stromboli.sim.runner import run_scenario
from stromboli.sim.traces.openb import GPU
from stromboli.sim.traces.trace_objects import membership, origin, pod_group, queue
from stromboli.sim.traces.traces import import_openb

Json = dict[str, Any]

DEMAND: Final = 1.3
FIRST_SEED: Final = 42
CPU_LIMIT: Final = 60.0
"""CPU seconds that a run may take."""
ORDERED: Final = 15 / 17
"""The share of traces on which the policies must come in the published order."""

CONF: Final = """
actions: "enqueue, allocate"
tie-break: {ties}
tiers:
- plugins:
  - name: gang
- plugins:
  - name: predicates
  - name: deviceshare
    arguments: {{deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: "{cards}"}}
"""
SCORE: Final = """  - name: fragmentation
    arguments: {{fragmentation.policy: {policy}}}
"""


@dataclass(frozen=True)
class Policy:
    """A configuration, the mean that is published for it, and how far below or above it may lie (None: any)."""

    conf: str
    published: float
    below: float
    above: float | None

    def holds(self, mean: float) -> bool:
        """Whether a mean of ten seeds is what it should be."""
        return mean >= self.published - self.below and (self.above is None or mean <= self.published + self.above)


POLICIES: Final = {  # from the least that is allocated to the most, in all 17 traces of the paper
    "random": Policy(CONF.format(ties="seeded", cards=""), 87.47, 1.0, 1.0),
    "best-fit": Policy(CONF.format(ties="first", cards="binpack") + SCORE.format(policy="best-fit"), 93.08, 1.0, 1.0),
    "gradient": Policy(CONF.format(ties="first", cards="binpack") + SCORE.format(policy="gradient"), 95.39, 0.0, None),
}


class Trace(NamedTuple):
    """The nodes with GPUs, the tasks, and what each of them asks for in thousandths of a GPU."""

    nodes: list[Json]
    tasks: list[Json]
    asks: list[int]
    offered: int


class Outcome(NamedTuple):
    """Percent of the GPUs that were allocated, tasks that were placed, and CPU seconds with loading."""

    allocated: float
    placed: int
    cpu: float


def read(nodes: Path, pods: Path) -> Trace:
    """The trace from its files.  Raises ManifestError."""
    objects: list[Json] = list(import_openb(nodes, pods))
    with_gpus = [one for one in objects if one["kind"] == "Node" and _offer(one)]
    tasks = [one for one in objects if one["kind"] == "Pod"]
    return Trace(with_gpus, tasks, [_ask(one) for one in tasks], sum(map(_offer, with_gpus)))


def _offer(node: Json) -> int:
    return int(node["status"]["allocatable"].get("volcano.sh/vgpu-memory", 0))


def _ask(task: Json) -> int:
    asked = task["spec"]["containers"][0]["resources"].get("limits", {})
    return int(asked.get("volcano.sh/vgpu-number", 0)) * int(asked.get("volcano.sh/vgpu-memory", 0))


def arrivals(asks: Sequence[int], offered: int, dice: Random) -> list[int]:
    """Numbers of tasks in the order of their arrival."""
    order = dice.sample(range(len(asks)), len(asks))
    total = sum(asks)
    while total + min(asks[drawn := dice.randrange(len(asks))], GPU) <= DEMAND * offered:
        order.append(drawn)
        total += asks[drawn]
    return order


def scenario(trace: Trace, order: Sequence[int], conf: str, dice: Random) -> Json:
    """One cluster in which all tasks wait; nodes of equal score are taken in an order that the dice give."""
    places = dice.sample(range(len(trace.nodes)), len(trace.nodes))
    tasks = list(_tasks(trace, order))
    return {
        "name": "fragmentation",
        "conf": conf,
        "nodes": [_named(trace.nodes[place], f"n{at:05d}") for at, place in enumerate(places)],
        "queues": [queue("default")],
        "podGroups": [group for group, _ in tasks],
        "pods": [pod for _, pod in tasks],
    }


def _named(node: Json, name: str) -> Json:
    return {**node, "metadata": {**node["metadata"], "name": name}}


def _tasks(trace: Trace, order: Sequence[int]) -> Iterator[tuple[Json, Json]]:
    for at, drawn in enumerate(order):
        name, task = f"t{at:06d}", trace.tasks[drawn]
        known = {"name": name, "namespace": "default", **origin(at, at), "annotations": membership(name)}
        spec = {key: value for key, value in task["spec"].items() if key != "priorityClassName"}
        yield pod_group(name, at, at, {"minMember": 1, "queue": "default"}), {**task, "metadata": known, "spec": spec}


def run(trace: Trace, policy: Policy, seed: int) -> Outcome:
    """One run."""
    dice = Random(seed)
    order = arrivals(trace.asks, trace.offered, dice)
    answer = run_scenario(msgspec.json.encode(scenario(trace, order, policy.conf, dice)))
    binds = answer["outcome"]["binds"]
    got = sum(trace.asks[order[int(key.rpartition("/t")[2])]] for key in binds)
    timing = answer["timing"]
    return Outcome(100.0 * got / trace.offered, len(binds), timing["load_cpu_s"] + timing["cycle_cpu_s"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 1 where a mean, an order or a time is not what it should be."""
    options = _options(arguments)
    print(machine())
    chosen = {name: POLICIES[name] for name in POLICIES if name in (options.policy or POLICIES)}
    if len(options.pods) > 1 and len(chosen) < 2:
        raise SystemExit("several lists of tasks show an order of policies: name two --policy or more, or none")
    if len(options.pods) == 1:
        return _published(read(options.nodes, options.pods[0]), chosen, options.seeds)
    return _in_order(options.nodes, options.pods, chosen, options.seeds)


def _runs(trace: Trace, policy: Policy, seeds: int) -> list[Outcome]:
    return [run(trace, policy, FIRST_SEED + number) for number in range(seeds)]


def _mean(outcomes: Iterable[Outcome]) -> float:
    return statistics.mean(one.allocated for one in outcomes)


def _slowest(outcomes: Iterable[Outcome]) -> float:
    return max(one.cpu for one in outcomes)


def _published(trace: Trace, policies: Mapping[str, Policy], seeds: int) -> int:
    """A row for each policy, held against the mean that is published for the default trace."""
    print(head(("policy", "allocated %", "deviation", "published", "seeds", "tasks placed", "CPU s a run", "verdict")))
    fine = True
    for name, policy in policies.items():
        outcomes = _runs(trace, policy, seeds)
        mean, slowest = _mean(outcomes), _slowest(outcomes)
        good = policy.holds(mean) and slowest <= CPU_LIMIT
        fine &= good
        cells = (
            name, figure(mean), figure(statistics.pstdev(one.allocated for one in outcomes)),
            figure(policy.published), str(seeds), figure(statistics.mean(one.placed for one in outcomes), 0),
            figure(slowest, 1), "ok" if good else "MISSED",
        )  # fmt: skip
        print(row(cells), flush=True)
    return 0 if fine else 1


def _in_order(nodes: Path, lists: Sequence[Path], policies: Mapping[str, Policy], seeds: int) -> int:
    """A row for each trace: what each policy allocates, and whether each allocates more than the one before it."""
    print(head(("trace", *(f"{name} %" for name in policies), "CPU s a run", "verdict")))
    ordered = 0
    for pods in lists:
        trace = read(nodes, pods)
        outcomes = [_runs(trace, policy, seeds) for policy in policies.values()]
        means, slowest = [*map(_mean, outcomes)], max(map(_slowest, outcomes))
        good = all(less < more for less, more in pairwise(means)) and slowest <= CPU_LIMIT
        ordered += good
        print(row((pods.stem, *map(figure, means), figure(slowest, 1), "ok" if good else "MISSED")), flush=True)
    print(f"{ordered} of {len(lists)} traces in the published order; seeds: {seeds}")
    return 0 if ordered >= ORDERED * len(lists) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fragmentation", description="How full GPUs get.")
    parser.add_argument("nodes", type=Path, metavar="NODES.csv", help="openb's list of nodes")
    parser.add_argument("pods", type=Path, nargs="+", metavar="PODS.csv", help="openb's list of tasks, or several")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="runs of each policy; default: 10")
    parser.add_argument("--policy", action="append", choices=list(POLICIES), help="this policy alone, more than once")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
