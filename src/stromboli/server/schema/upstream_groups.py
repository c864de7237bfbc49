"""What Kubernetes refuses of its own PodGroups, CompositePodGroups and Workloads; texts are its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from stromboli.cluster.body import Body, part
from stromboli.model.claims import MOST_GROUP_CLAIMS
from stromboli.server.schema.names import no_label
from stromboli.server.status_errors import Cause, duplicate, required, shown, wrong

Parts = Mapping[str, Any]
GROUP: Final = "scheduling.k8s.io"
MOST_TEMPLATES: Final = 8
DEEPEST: Final = 4
"""Levels of templates that a Workload has at most: those at the lowest are for PodGroups alone."""
_GROUPS: Final = "podGroupTemplates"
_COMPOSITES: Final = "compositePodGroupTemplates"
_CHILDLESS: Final = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
FIXED: Final[Mapping[tuple[str, str], Sequence[str]]] = {
    (GROUP, "podgroups"): (
        "parentCompositePodGroupName", "workloadRef", "schedulingPolicy.basic", "schedulingConstraints",
        "resourceClaims", "disruptionMode", "priorityClassName", "priority", "preemptionPolicy",
    ),
    (GROUP, "compositepodgroups"): (
        "parentCompositePodGroupName", "workloadRef", "schedulingPolicy.basic", "schedulingConstraints",
        "disruptionMode", "priorityClassName", "priority", "preemptionPolicy",
    ),
    (GROUP, "workloads"): ("controllerRef", _GROUPS, _COMPOSITES),
}  # fmt: skip
"""Fields of a spec that never change; of a policy only how many are wanted may."""


def wrong_group(body: Body) -> Iterator[Cause]:
    """What is wrong with a PodGroup."""
    spec = body.get("spec") or {}
    yield from _template(spec, "spec")
    yield from _child(spec)


def wrong_composite(body: Body) -> Iterator[Cause]:
    """What is wrong with a CompositePodGroup."""
    spec = body.get("spec") or {}
    yield from _placing(spec, "spec", "minGroupCount")
    if not spec.get("workloadRef"):
        yield required("spec.workloadRef")


def wrong_workload(body: Body) -> Iterator[Cause]:
    """What is wrong with a Workload."""
    spec = body.get("spec") or {}
    yield from _one_of(spec, "spec", (_GROUPS, _COMPOSITES))
    names: set[str] = set()
    priorities = set()
    for path, found in _lists(spec, "spec"):
        yield from _named(found, path, names)
        yield from _listed(found, path)
        priorities |= {(one.get("priorityClassName") or "", one.get("priority")) for one in found}
    for index, one in enumerate(spec.get(_COMPOSITES) or ()):
        if _is_too_deep(one):
            told = f"maximum template hierarchy depth is {DEEPEST}"
            yield wrong(f"spec.{_COMPOSITES}[{index}]", one.get(_COMPOSITES), told)
    if len(priorities) > 1:
        yield wrong("spec", None, "detected multiple priority configurations")


def _child(spec: Parts) -> Iterator[Cause]:
    if spec.get("parentCompositePodGroupName") and not spec.get("workloadRef"):
        yield required("spec.workloadRef", "must be set when parentCompositePodGroupName is set")


def _lists(spec: Parts, path: str, level: int = 1) -> Iterator[tuple[str, Sequence[Parts]]]:
    """The lists of templates of a Workload with their paths, each before those below it, as deep as may be."""
    for name in (_GROUPS, _COMPOSITES):
        yield f"{path}.{name}", spec.get(name) or ()
    for index, one in enumerate(spec.get(_COMPOSITES) or () if level < DEEPEST else ()):
        if index < MOST_TEMPLATES:
            yield from _lists(one, f"{path}.{_COMPOSITES}[{index}]", level + 1)


def _is_too_deep(composite: Parts, level: int = 1) -> bool:
    """Whether a composite template has others below it that are deeper than may be."""
    below = composite.get(_COMPOSITES) or ()
    return level == DEEPEST or any(_is_too_deep(one, level + 1) for one in below)


def _named(found: Sequence[Parts], path: str, others: set[str]) -> Iterator[Cause]:
    """What is wrong with the names of a list, which are labels, none of them twice; those of ``others`` are taken."""
    own: set[str] = set()
    for index, one in enumerate(found):
        name, where = one.get("name") or "", f"{path}[{index}]"
        if not name:
            yield required(f"{where}.name")
        elif told := no_label(name):
            yield wrong(f"{where}.name", name, told)
        elif name in own or name in others:
            yield duplicate(where if name in own else f"{where}.name", name)
        own.add(name)
    others |= own


def _listed(found: Sequence[Parts], path: str) -> Iterator[Cause]:
    """What is wrong with the templates of one list by themselves."""
    yield from _at_most(found, path, MOST_TEMPLATES)
    for index, one in enumerate(found[:MOST_TEMPLATES]):
        where = f"{path}[{index}]"
        if path.endswith(f".{_GROUPS}"):
            yield from _template(one, where)
            continue
        yield from _placing(one, where, "minGroupCount")
        if not one.get(_GROUPS) and not one.get(_COMPOSITES):
            yield wrong(where, one.get("name", ""), _CHILDLESS)


def _template(spec: Parts, path: str) -> Iterator[Cause]:
    """What PodGroups and the templates of such say alike."""
    yield from _placing(spec, path, "minCount")
    claims = spec.get("resourceClaims") or ()
    yield from _at_most(claims, f"{path}.resourceClaims", MOST_GROUP_CLAIMS)
    yield from _named(claims[:MOST_GROUP_CLAIMS], f"{path}.resourceClaims", set())
    for index, claim in enumerate(claims[:MOST_GROUP_CLAIMS]):
        where = f"{path}.resourceClaims[{index}]"
        yield from _one_of(claim, where, ("resourceClaimName", "resourceClaimTemplateName"))


def _placing(spec: Parts, path: str, least: str) -> Iterator[Cause]:
    """Policy, topology and disruption, which groups of groups state, too."""
    policy = spec.get("schedulingPolicy") or {}
    yield from _one_of(policy, f"{path}.schedulingPolicy", ("basic", "gang"))
    if policy.get("gang") is not None:
        yield from _count(policy["gang"].get(least, 0), f"{path}.schedulingPolicy.gang.{least}")
    yield from _at_most(
        part(spec, "schedulingConstraints", "topology") or (), f"{path}.schedulingConstraints.topology", 1
    )
    if spec.get("disruptionMode") is not None:
        yield from _one_of(spec["disruptionMode"], f"{path}.disruptionMode", ("single", "all"))


def _count(value: int, path: str) -> Iterator[Cause]:
    if value == 0:
        yield required(path)
    elif value < 0:
        yield wrong(path, value, "must be greater than or equal to 1")


def _one_of(found: Parts, path: str, names: Sequence[str]) -> Iterator[Cause]:
    """Exactly one of several fields must be there."""
    there = [name for name in names if found.get(name) is not None]
    choice = ", ".join(f"`{name}`" for name in names)
    if not there:
        yield wrong(path, "", f"must specify one of: {choice}")
    elif len(there) > 1:
        yield wrong(path, f"{{{', '.join(there)}}}", f"must specify exactly one of: {choice}")


def _at_most(found: Sequence[Any], path: str, most: int) -> Iterator[Cause]:
    if len(found) > most:
        told = f"Too many: {shown(len(found))}: must have at most {most} item{'s' if most > 1 else ''}"
        yield Cause(path, "FieldValueTooMany", told)
