"""A scene decided, cycle by cycle: what the plan says in words, and what everything else comes to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from io import StringIO
from typing import Any, Final

import msgspec
from prometheus_client import CollectorRegistry

from stromboli.api.topology import NodeShardSpec
from stromboli.builtin import builtin_registry
from stromboli.cluster.events import Added, Deleted, Modified
from stromboli.cluster.kinds import Metadata, NodeShard
from stromboli.cluster.objects import from_value
from stromboli.cluster.rim import ShardingSet
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.books.plan_codec import encode_plan
from stromboli.framework.config.config import Config, load_config
from stromboli.framework.config.gates import parse_gates, switched_on
from stromboli.metrics.logs import LogObserver
from stromboli.metrics.prometheus import MetricsObserver
from stromboli.model.objects.shard import NodeShardStatus
from stromboli.model.usage import NodeUsage
from stromboli.narration.observe import Several
from stromboli.sim.between import apply_plan
from stromboli.sim.explanation.evicting import eviction_steps, evicts
from stromboli.sim.explanation.explain import _steps as steps_of
from stromboli.sim.planning import Planning
from stromboli.testing.builders import state
from tests.recorded.scene import BEGINNING, Scene, Turn

REGISTRY: Final = builtin_registry()
LEVEL: Final = 5
"""The level of the log whose lines are kept."""

Parts = dict[str, str]
"""What a cycle came to, by part; parts that say nothing are left out."""

IN_WORDS: Final = ("binds", "evictions", "reservations", "promises", "groups", "annotations", "gates", "failures")
"""Parts that are kept as they are; of the others, which are long, a digest is kept."""


@cache
def config_of(text: str, compat: bool, gates: str) -> Config:
    """A configuration, read."""
    found = load_config(
        text, source="conf", compat=compat, known_plugins=REGISTRY.plugin_names, known_actions=REGISTRY.action_names
    )
    return replace(found, features=switched_on(parse_gates(gates)))


def decided(scene: Scene) -> Iterator[Parts]:
    """What each cycle of a scene comes to, in full."""
    config, now = replace(config_of(scene.conf, scene.compat, scene.gates), sampling=scene.sampling), BEGINNING
    cluster = state(*scene.turns[0].objects)
    cluster.set_gates(config.gates)
    divide(cluster, *scene.shard)
    seen = MetricsObserver(CollectorRegistry(), clock=lambda: now, timer=lambda: 0.0)
    leaving: list[str] = []
    for number, turn in enumerate(scene.turns):
        now += turn.seconds
        for key in leaving:
            if key in cluster.tasks:
                cluster.remove_task(cluster.tasks[key])
        happen(cluster, turn, now, everything=number > 0)
        lines = StringIO()
        log = LogObserver(lines, LEVEL, clock=float, pid=1)
        snapshot = cluster.snapshot()
        silent = run_cycle(snapshot, config, REGISTRY, now)
        plan = run_cycle(snapshot, config, REGISTRY, now, 0, Several((log, seen)))
        log.flush()
        unlike = "" if encode_plan(silent) == encode_plan(plan) else texts_of(silent)
        rest = {"texts": texts_of(plan), "log": told(lines.getvalue()), "metrics": shown(seen), "unheard": unlike}
        if number == len(scene.turns) - 1:
            rest["reasons"] = explained(cluster, config, now)
        yield {**in_words(plan), **rest}
        becomes = "Bound" if scene.bound else ""
        apply_plan(cluster, plan, becomes, "terminating" if scene.lingers else "")
        leaving = [each.key for each in plan.evictions]


def divide(cluster: ClusterState, mode: str, nodes: tuple[str, ...]) -> None:
    """Let the scheduler be one of several, with these nodes of its own."""
    if mode:
        ShardingSet(mode, "ours").make(cluster)
        shard = NodeShard(Metadata(name="ours"), NodeShardSpec(nodes), NodeShardStatus(nodes))
        cluster.apply(Added("NodeShard", shard))


def happen(cluster: ClusterState, turn: Turn, now: float, *, everything: bool) -> None:
    """Let a turn's changes come true."""
    for each in turn.objects if everything else ():
        cluster.apply(Modified(each["kind"], from_value(each["kind"], each)))
    for each in turn.gone:
        cluster.apply(Deleted(each["kind"], from_value(each["kind"], each)))
    if turn.usage:
        cluster.measured(
            {
                name: NodeUsage(now, {"10m": cpu, "5m": cpu}, {"10m": memory, "5m": memory})
                for name, (cpu, memory) in turn.usage.items()
            }
        )


# ---------------------------------------------------------------------- what is kept


def in_words(plan: Plan) -> Parts:
    """What a plan decides, part by part."""
    return {
        "binds": joined(f"{short(each.key)}>{each.node}" for each in plan.binds),
        "evictions": joined(f"{short(each.key)}<{each.node}:{each.reason}" for each in plan.evictions),
        "reservations": joined(
            f"{short(each.key)}>{each.node}{'!' if each.evicted else ''}" for each in plan.reservations
        ),
        "promises": joined(
            [
                *(f"{short(each.job)}/{each.sub_job}>{each.hyper_node}" for each in plan.nominations),
                *(f"{short(each.key)}@{each.hyper_node}" for each in plan.hyper_nodes),
            ]
        ),
        "groups": joined(
            f"{short(each.key)}:{each.phase}:{each.running}:{each.succeeded}:{each.failed}" for each in plan.pod_groups
        ),
        "annotations": joined(f"{short(each.key)}>{each.held.node if each.held else ''}" for each in plan.annotations),
        "gates": joined(short(each.key) for each in plan.gates),
        "failures": "; ".join(plan.inconsistencies),
    }


def short(key: str) -> str:
    """A key without the usual namespace."""
    return key.removeprefix("default/")


def joined(found: Iterable[str]) -> str:
    """Words in their order."""
    return " ".join(found)


def texts_of(plan: Plan) -> str:
    """Everything that a plan says, a field of each entry a line."""
    return "\n".join(_lines("", msgspec.to_builtins(plan)))


def _lines(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _lines(f"{path}.{key}", inner)
    elif isinstance(value, list | tuple) and value:
        for place, inner in enumerate(value):
            yield from _lines(f"{path}[{place}]", inner)
    else:
        yield f"{path} = {value!r}"


def explained(cluster: ClusterState, config: Config, now: float) -> str:
    """Why jobs wait after a cycle more, step by step."""
    planning = Planning(config, REGISTRY, now=now)
    planning.state = cluster
    cycle = planning.run()
    reasons = cycle.reasons()
    lines = [f"{uid}: {reason}" for uid, reason in reasons.items()]
    for job in (job for job in cycle.jobs() if job.uid in reasons):
        lines += map(str, steps_of(cycle, job, reasons[job.uid]))
    if reasons and evicts(planning):
        lines += map(str, eviction_steps(planning, next(iter(reasons))))
    return "\n".join(lines)


def told(lines: str) -> str:
    """The lines of a log without their heads, and without those on pairs that were compared.

    Which pairs a sort compares depends on the version of Python, what comes of it does not.
    """
    texts = (line.partition("] ")[2] for line in lines.splitlines())
    return "\n".join(text for text in texts if "OrderFn: " not in text)


def shown(metrics: MetricsObserver) -> str:
    """The samples of all metrics; of a histogram its count and sum."""
    samples = (sample for metric in metrics.collect() for sample in metric.samples)
    return "\n".join(
        f"{sample.name} {sample.labels} {sample.value}" for sample in samples if not sample.name.endswith("_bucket")
    )


def kept(parts: Parts) -> Parts:
    """What is kept of a cycle: words, and digests of the rest."""
    return {
        name: text if name in IN_WORDS else hashlib.sha256(text.encode()).hexdigest()[:10]
        for name, text in parts.items()
        if text
    }
