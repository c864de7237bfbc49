"""What Kubernetes refuses of its own PodGroups, CompositePodGroups and Workloads; texts are its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from stromboli.cluster.body import Body, part
from stromboli.server.status_errors import Cause, required, shown, wrong

Parts = Mapping[str, Any]
GROUP: Final = "scheduling.k8s.io"
MOST_CLAIMS: Final = 4
MOST_TEMPLATES: Final = 8
DEEPEST: Final = 4
"""How many CompositePodGroups stand one in another at most."""
FIXED: Final[Mapping[tuple[str, str], Sequence[str]]] = {
    (GROUP, "podgroups"): (
        "parentCompositePodGroupName", "workloadRef", "schedulingPolicy.basic", "schedulingConstraints",
        "resourceClaims", "disruptionMode", "priorityClassName", "priority", "preemptionPolicy",
    ),
    (GROUP, "compositepodgroups"): (
        "parentCompositePodGroupName", "workloadRef", "schedulingPolicy.basic", "schedulingConstraints",
        "disruptionMode", "priorityClassName", "priority", "preemptionPolicy",
    ),
    (GROUP, "workloads"): ("controllerRef", "podGroupTemplates", "compositePodGroupTemplates"),
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
    yield from _one_of(spec, "spec", ("podGroupTemplates", "compositePodGroupTemplates"))
    yield from _templates(spec, "spec", 1)


def _child(spec: Parts) -> Iterator[Cause]:
    if spec.get("parentCompositePodGroupName") and not spec.get("workloadRef"):
        yield required("spec.workloadRef", "must be set when parentCompositePodGroupName is set")


def _templates(spec: Parts, path: str, depth: int) -> Iterator[Cause]:
    """The templates below a Workload, or below one of its composite templates, whose depth is bounded."""
    groups, composites = (spec.get(name) or () for name in ("podGroupTemplates", "compositePodGroupTemplates"))
    yield from _at_most(groups, f"{path}.podGroupTemplates", MOST_TEMPLATES)
    yield from _at_most(composites, f"{path}.compositePodGroupTemplates", MOST_TEMPLATES)
    for index, one in enumerate(groups[:MOST_TEMPLATES]):
        yield from _template(one, f"{path}.podGroupTemplates[{index}]")
    for index, one in enumerate(composites[:MOST_TEMPLATES]):
        where = f"{path}.compositePodGroupTemplates[{index}]"
        if depth > DEEPEST:
            yield wrong(where, one, f"maximum template hierarchy depth is {DEEPEST}")
            return
        yield from _placing(one, where, "minGroupCount")
        yield from _templates(one, where, depth + 1)


def _template(spec: Parts, path: str) -> Iterator[Cause]:
    """What PodGroups and the templates of such say alike."""
    yield from _placing(spec, path, "minCount")
    claims = spec.get("resourceClaims") or ()
    yield from _at_most(claims, f"{path}.resourceClaims", MOST_CLAIMS)
    for index, claim in enumerate(claims[:MOST_CLAIMS]):
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
