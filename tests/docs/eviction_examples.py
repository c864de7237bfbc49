"""The worked examples of the page on eviction: read, and decided."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import load_config
from stromboli.testing.builders import Manifest, cluster, node, pod, pod_group, queue

PAGE = Path(__file__).parents[2] / "docs" / "eviction.md"


CONF = """
actions: "enqueue, allocate, {action}"
{compat}
tiers:
- plugins: [{{name: conformance}}, {{name: gang}}, {{name: priority}}, {{name: proportion}}, {{name: predicates}}]
configurations: [{{name: {action}, arguments: {{{arguments}}}}}]
"""


EXAMPLE = re.compile(
    r"### (?P<name>\w+): .*\naction: (?P<action>\w+)(?: with (?P<arguments>.*))?; nodes: (?P<nodes>.*)\n\n"
    r"\| job .*\n\|[-|]+\n(?P<jobs>(?:\|.*\n)+)(?:.*\n)*?\n"
    r"evicted: (?P<evicted>[^;]*); waiting: (?P<waiting>[^;\n]*)"
    r"(?:; compat: evicted: (?P<old_evicted>[^;]*); waiting: (?P<old_waiting>[^;\n]*))?\n"
)


POD = re.compile(r"(\w+) (\d+)(?: on (\w+))?(?: \((\d+)\))?")


@cache
def examples() -> dict[str, dict[str, str]]:
    text = PAGE.read_text(encoding="utf-8")
    return {found["name"]: found.groupdict() for found in EXAMPLE.finditer(text)}


def objects_of(example: dict[str, str]) -> list[Manifest]:
    """The cluster that an example describes."""
    found = []
    for each in example["nodes"].split(", "):
        name, cores = each.split()
        found.append(node(name, cpu=int(cores), memory=f"{cores}Gi"))
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in example["jobs"].splitlines()]
    for number, (job, inside, priority, least, pods) in enumerate(rows):
        found += [] if queue(inside) in found else [queue(inside)]
        found.append({"kind": "PriorityClass", "metadata": {"name": f"class-{priority}-{job}"}, "value": int(priority)})
        phase = "Running" if " on " in pods else "Inqueue"
        made = [POD.fullmatch(each) for each in pods.split("; ")]
        found.append(
            pod_group(
                job,
                min_member=int(least),
                queue=inside,
                phase=phase,
                priorityClassName=f"class-{priority}-{job}",
                created=number + 1,
            )
        )
        for match in made:
            assert match, pods
            name, cores, on, own = match.groups()
            found.append(
                pod(name, group=job, cpu=int(cores), memory=f"{cores}Gi", on=on or "", priority=int(own or priority))
            )
    return found


def plan_of(name: str, compat: bool = False) -> Plan:
    example, registry = examples()[name], builtin_registry()
    text = CONF.format(
        action=example["action"], arguments=example["arguments"] or "", compat="compat: volcano" if compat else ""
    )
    config = load_config(
        text, source="example", known_plugins=registry.plugin_names, known_actions=registry.action_names
    )
    return run_cycle(cluster(*objects_of(example)), config, registry)
