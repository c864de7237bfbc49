"""The page docs/integrations.md: what other projects write and how it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from stromboli.cluster.owners.kinds import TABLE, OwnerKind

RECORDED = Path(__file__).parent.parent / "tests" / "integrations" / "recorded"
HEAD = """\
# Other projects' objects

This page is generated from the recordings in `tests/integrations/recorded/` and from `cluster/owners/kinds.py`.

## What is played

Each recording holds what a project's operator writes, in its order, with updates and deletions; pods are reduced to
what scheduling reads. The tests play it on the embedded server with scheduler, controllers and simulated kubelets in
virtual time; `make test-e2e` plays it with real processes on the embedded server and on a kube-apiserver
(`e2e/integrations/`).

| project | form | objects | what is checked |
|---|---|---|---|
"""
OWNERS = """
## Gangs by their owners

A pod of ours that names no PodGroup gets one for its controlling owner, with minMember 1 or what the owner's
annotation `scheduling.volcano.sh/group-min-member` says, as Volcano does it. All pods below one owner become one
gang where it is asked for:

* the annotation `scheduling.volcano.sh/group-by: top-owner` on the pod or on any owner of it: the highest owner counts;
* `stromboli controllers --group-by-owner-kinds=JobSet,TrainJob`: the highest owner of these kinds counts.

The highest owner that says how many pods there are makes the gang; roles that start later than others are not
waited for. Its annotations and fields name queue, priority class and network topology; `group-min-member` there is
the gang's size. Owners are read one by one when their pods come, at most every 10 s and 8 above each other. One
that cannot be read is told on the pod (event `OwnerNotRead`), and what lies below it is the gang.

| kind | gang | parted by | fewer by |
|---|---|---|---|
"""
FOOT = """
## Kubernetes' own PodGroups

Pods with `spec.schedulingGroup.podGroupName` and our scheduler's name belong to the PodGroup of `scheduling.k8s.io`
(v1beta1, v1alpha3 or v1alpha2, whichever the server has). It is a job called `<name>@scheduling.k8s.io`:
`schedulingPolicy.gang.minCount` is its minMember (`basic`: 1), `priority`, else `priorityClassName`, its priority,
`preemptionPolicy: Never` lets it evict nothing. The annotation `scheduling.volcano.sh/queue-name` names its
queue: on the PodGroup, else on its Workload, else on its namespace.

* `schedulingConstraints.topology`: all pods lie within one HyperNode of the tier called like the key. Where there
  are no HyperNodes, nodes with one value of that label are a domain; nodes without the label do not count. Later pods
  go there, too. No plugin is needed for that. A gang that no domain takes waits, and is told what each lacks.
* `disruptionMode: {all: {}}` (v1alpha2: `PodGroup`): `preempt` and `reclaim`, which take single pods, spare its pods;
  `gangpreempt` and `gangreclaim` evict all of them or none.

The condition `PodGroupInitiallyScheduled` tells how it stands; once it is True it stays so. Not read yet:
`resourceClaims`, CompositePodGroups.
"""


def page() -> str:
    """The text of the page."""
    rows = [f"| {' | '.join(_cells(path))} |\n" for path in sorted(RECORDED.glob("*.yaml"))]
    owners = [f"| {' | '.join(_owner(row))} |\n" for row in TABLE]
    return HEAD + "".join(rows) + OWNERS + "".join(owners) + FOOT


def _cells(path: Path) -> Iterator[str]:
    head = next(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
    cells = (head["project"], head["version"], head["objects"], "; ".join(head["shows"]))
    yield from (cell.replace("<", "&lt;") for cell in cells)


def _owner(row: OwnerKind) -> Iterator[str]:
    yield f"{row.kind}{f' ({row.group})' if row.group else ''}"
    counts = [" x ".join((role.at, *role.counts)).removeprefix(" x ") or role.name.lstrip("=") for role in row.roles]
    yield "each below it by itself" if row.apart else " + ".join(f"`{one}`" for one in counts) or "what is below it"
    yield ", ".join(f"`{label}`" for label in (row.part, row.sub_gang) if label)
    yield f"`{row.minimum}`" if row.minimum else ""
