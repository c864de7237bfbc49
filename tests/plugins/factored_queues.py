"""Queues with an overcommit factor of their own, and the jobs that enter them."""

from __future__ import annotations

from dataclasses import replace

from stromboli.framework.config.gates import QUEUE_OVERCOMMIT as SCOPED
from stromboli.testing.builders import node, pod_group, queue
from tests.acceptance.bench import Bench, conf

NODE = node("n1", cpu=100, memory="640Gi")


def text(most="", tree=False):
    arguments = f", arguments: {{max-queue-overcommit-factor: {most}}}" if most else ""
    return conf(f"[{{name: overcommit, enableHierarchy: {str(tree).lower()}{arguments}}}]", actions="enqueue")


def factored(name, factor, **spec):
    return queue(name, annotations={"volcano.sh/overcommit-factor": factor}, **spec)


def asking(name, queue_, cpu, **least):
    return pod_group(name, queue=queue_, phase="Pending", created=ord(name[0]), minResources={"cpu": cpu, **least})


def entering(objects, conf_text=None, features=(SCOPED,)):
    bench = Bench([NODE, *objects], conf_text or text())
    bench.config = replace(bench.config, features=frozenset(features))
    plan = bench.cycle()
    return sorted(update.key.partition("/")[2] for update in plan.pod_groups if update.phase == "Inqueue"), plan
