"""Jobs in queues, and the pods that a cycle binds or evicts among them."""

from __future__ import annotations

from stromboli.testing.builders import pod, pod_group
from tests.acceptance.bench import Bench, conf

TAKING = conf("gang predicates capacity", actions="reclaim")


def job(name, queue_, pods=1, running=0, cpu=1, on="n1", requests=None, **fields):
    """A PodGroup in a queue, the first ``running`` of its pods on a node."""
    fields.setdefault("phase", "Running" if running else "Inqueue")
    own = [
        pod(f"{name}-{i}", group=name, cpu=cpu, memory=0, requests=requests, on=on if i < running else "")
        for i in range(pods)
    ]
    return [pod_group(name, queue=queue_, **fields), *own]


def evicted(*objects, text=TAKING, **options):
    plan = Bench([*objects], text, **options).cycle()
    return sorted(eviction.key.partition("/")[2] for eviction in plan.evictions)


def many(count, *names, **fields):
    """So many jobs of one running pod each in every queue."""
    fields.setdefault("min_member", 0)
    return [each for name in names for i in range(count) for each in job(f"{name}-{i}", name, running=1, **fields)]
