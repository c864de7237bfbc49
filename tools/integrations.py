"""The page docs/integrations.md: what other projects write and how it is taken.

`make test-e2e ARGS=e2e/integrations` notes in `build/` what it has played to its end on which server;
`python -m tools.integrations` adds that to `tests/integrations/played.json`, which the page's matrix shows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from stromboli.cluster.owners.kinds import TABLE, OwnerKind

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "tests" / "integrations" / "recorded"
PLAYED = ROOT / "tests" / "integrations" / "played.json"
NOTED = ROOT / "build" / "e2e" / "played"
"""Where it is noted what has been played to its end."""
SERVERS = ("embedded", "real")
"""The kinds of server on which recordings are played."""
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
MATRIX = """
## On which server

What was played to its end with real processes, on the version of the server that is named; `-` where the server has
not got the objects. `make test-e2e ARGS=e2e/integrations` plays it again, `python -m tools.integrations` takes down
what came of it.

| recording | embedded server | kube-apiserver |
|---|---|---|
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

`stromboli plan`, `lint` and `eta` group the pods of files in the same way, by annotations and by the owners that the
files hold. An owner that would decide and is not there is told. So is one below which nothing is listed: which pods it
leads to is its operator's doing, and they count once they, or the Kubernetes workloads that make them, are listed too.

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
  `gangpreempt` and `gangreclaim` evict all of them or none. Once all evictions are accepted the PodGroup has the
  condition `DisruptionTarget`, which becomes False when the group is placed anew.

The condition `PodGroupInitiallyScheduled` (v1alpha2: `PodGroupScheduled`) tells how it stands; once it is True it
stays so. The embedded server serves PodGroup and Workload in v1beta1 and CompositePodGroup in v1alpha3, and judges
their policies, claims, templates and statuses as Kubernetes does; `kubectl get podgroups` means Volcano's there,
`podgroups.scheduling.k8s.io` these.

* `resourceClaims`: claims that a pod and its PodGroup name alike are the group's. They are reserved for the PodGroup
  (`status.reservedFor`), so that any number of pods share them, and their devices stay the group's until it goes. On
  the embedded cluster claims from templates are made once for the group, and its pods' statuses name them.
* `parentCompositePodGroupName`: CompositePodGroups are not looked at; an event `CompositePodGroupIgnored` says so.
"""


def page() -> str:
    """The text of the page."""
    paths, played = sorted(RECORDED.glob("*.yaml")), json.loads(PLAYED.read_text(encoding="utf-8"))
    rows = [f"| {' | '.join(_cells(path))} |\n" for path in paths]
    servers = [f"| {path.stem} | {' | '.join(_standing(path, played))} |\n" for path in paths]
    owners = [f"| {' | '.join(_owner(row))} |\n" for row in TABLE]
    return HEAD + "".join(rows) + MATRIX + "".join(servers) + OWNERS + "".join(owners) + FOOT


def digest(path: Path) -> str:
    """What tells one state of a recording from another."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def _head(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = next(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
    return found


def _standing(path: Path, played: Mapping[str, str]) -> Iterator[str]:
    """What became of a recording on each server."""
    for server in SERVERS:
        version, _, state = played.get(f"{path.stem}.{server}", "").partition(" ")
        if server not in _head(path).get("servers", SERVERS):
            yield "-"
        else:
            found = version if state == digest(path) else f"another state of it: {version}"
            yield found if version else "not played yet"


def _cells(path: Path) -> Iterator[str]:
    head = _head(path)
    cells = (head["project"], head["version"], head["objects"], "; ".join(head["shows"]))
    yield from (cell.replace("<", "&lt;") for cell in cells)


def _owner(row: OwnerKind) -> Iterator[str]:
    yield f"{row.kind}{f' ({row.group})' if row.group else ''}"
    counts = [" x ".join((role.at, *role.counts)).removeprefix(" x ") or role.name.lstrip("=") for role in row.roles]
    yield "each below it by itself" if row.apart else " + ".join(f"`{one}`" for one in counts) or "what is below it"
    yield ", ".join(f"`{label}`" for label in (row.part, row.sub_gang) if label)
    yield f"`{row.minimum}`" if row.minimum else ""


def main() -> None:
    """Take down what has been played since it was last taken down."""
    played = json.loads(PLAYED.read_text(encoding="utf-8"))
    played |= {path.name: path.read_text(encoding="utf-8").strip() for path in sorted(NOTED.glob("*"))}
    there = {f"{path.stem}.{server}" for path in RECORDED.glob("*.yaml") for server in SERVERS}
    kept = {name: played[name] for name in sorted(played) if name in there}
    PLAYED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
