"""Plain Kubernetes objects as the plan checker reads them.

Nothing here imports the package under test: what both sides read from one function, neither can judge. Amounts are
exact Fractions in the unit of the quantity itself (cores, bytes, pieces), never floats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

Obj = Mapping[str, Any]
Amounts = dict[str, Fraction]

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
ROLE_ANNOTATION = "volcano.sh/task-spec"
SUFFIXES = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15),
    "E": Fraction(10**18), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?")


def quantity(value: object) -> Fraction:
    """The exact number a Kubernetes quantity stands for; ValueError when it is none."""
    found = QUANTITY.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"not a quantity: {value!r}")
    number, suffix, exponent = found.groups()
    return Fraction(number) * SUFFIXES[suffix or ""] * Fraction(10) ** int(exponent or 0)


def name_of(obj: Obj) -> str:
    """metadata.name."""
    return str(obj["metadata"]["name"])


def key_of(obj: Obj) -> str:
    """namespace/name, the namespace being `default` where the object leaves it out."""
    return f"{namespace_of(obj)}/{name_of(obj)}"


def namespace_of(obj: Obj) -> str:
    """metadata.namespace, else `default`."""
    return str(obj["metadata"].get("namespace") or "default")


def labels_of(obj: Obj) -> dict[str, str]:
    """metadata.labels, empty when there are none."""
    return dict(obj["metadata"].get("labels") or {})


def amounts(resources: Obj | None) -> Amounts:
    """A resource list as exact amounts."""
    return {name: quantity(value) for name, value in (resources or {}).items()}


def added(left: Amounts, right: Amounts) -> Amounts:
    """The sum of two resource lists."""
    return {name: left.get(name, Fraction(0)) + right.get(name, Fraction(0)) for name in (*left, *right)}


def larger(left: Amounts, right: Amounts) -> Amounts:
    """The larger amount of each resource."""
    return {name: max(left.get(name, Fraction(0)), right.get(name, Fraction(0))) for name in (*left, *right)}


def container_request(container: Obj) -> Amounts:
    """What a container (or a pod-level resources field) asks for; a limit stands in for a missing request."""
    stated = container.get("resources") or {}
    return {**amounts(stated.get("limits")), **amounts(stated.get("requests"))}


def init_peak(containers: Iterable[Obj]) -> tuple[Amounts, Amounts]:
    """(the largest step of initialisation, the sum of sidecars): each step runs beside the sidecars begun before it."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in containers:
        step = added(sidecars, container_request(container))
        peak = larger(peak, step)
        if container.get("restartPolicy") == "Always":
            sidecars = step
    return peak, sidecars


def pod_request(pod: Obj) -> Amounts:
    """The pod's effective request without the place it takes itself (`pods`)."""
    spec = pod["spec"]
    peak, total = init_peak(spec.get("initContainers") or ())
    for container in spec.get("containers") or ():
        total = added(total, container_request(container))
    total = {**larger(total, peak), **container_request(spec)}
    return {name: amount for name, amount in added(total, amounts(spec.get("overhead"))).items() if amount}


@dataclass(frozen=True)
class Pod:
    """A pod and what the plan does with it. `node` is where it was before the cycle, `bound` and `reserved` where the
    plan puts it, `held` the one that an earlier cycle reserved for it."""

    key: str
    raw: Obj
    request: Amounts
    bound: str | None = None
    reserved: str | None = None
    evicted: bool = False
    held: str | None = None

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.key.partition("/")[0]

    @property
    def spec(self) -> Obj:
        """The pod's spec."""
        spec: Obj = self.raw["spec"]
        return spec

    @property
    def labels(self) -> dict[str, str]:
        """The pod's labels."""
        return labels_of(self.raw)

    @property
    def node(self) -> str | None:
        """spec.nodeName before the cycle."""
        return self.spec.get("nodeName") or None

    @property
    def phase(self) -> str:
        """status.phase, Pending when absent."""
        return str((self.raw.get("status") or {}).get("phase") or "Pending")

    @property
    def finished(self) -> bool:
        """Whether it holds no resources any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def terminating(self) -> bool:
        """Whether its deletion had begun before the cycle."""
        return bool(self.raw["metadata"].get("deletionTimestamp"))

    @property
    def gated(self) -> bool:
        """Whether a scheduling gate keeps it from being scheduled."""
        return bool(self.spec.get("schedulingGates"))

    @property
    def best_effort(self) -> bool:
        """Whether it asks for nothing."""
        return not self.request

    @property
    def group(self) -> str | None:
        """namespace/name of its PodGroup, None without the annotation."""
        name = (self.raw["metadata"].get("annotations") or {}).get(GROUP_ANNOTATION)
        return f"{self.namespace}/{name}" if name else None

    @property
    def role(self) -> str:
        """Its role in the job (annotation volcano.sh/task-spec)."""
        return str((self.raw["metadata"].get("annotations") or {}).get(ROLE_ANNOTATION) or "")

    @property
    def place(self) -> str | None:
        """The node it stands on or is bound to when the plan is done; None when it stands nowhere."""
        return None if self.finished else self.node or self.bound

    @cached_property
    def footprint(self) -> Amounts:
        """The request together with the pod's own place."""
        return {**self.request, "pods": Fraction(1)}


@dataclass(frozen=True)
class Node:
    """A node: its labels, its taints and what it can give."""

    name: str
    raw: Obj
    room: Amounts = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        return labels_of(self.raw)

    @property
    def spec(self) -> Obj:
        """The node's spec, empty when absent."""
        return self.raw.get("spec") or {}


def node_from(raw: Obj) -> Node:
    """A node with its allocatable amounts (capacity where the status has no allocatable)."""
    status = raw.get("status") or {}
    return Node(name_of(raw), raw, amounts(status.get("allocatable") or status.get("capacity")))


# ---------------------------------------------------------------- selectors


def expression_holds(expression: Obj, values: Mapping[str, str]) -> bool:
    """One requirement of a label selector or node selector term against labels (or fields)."""
    have = values.get(expression["key"])
    wanted = [str(value) for value in expression.get("values") or ()]
    match expression["operator"]:
        case "In":
            return have in wanted
        case "NotIn":
            return have not in wanted
        case "Exists":
            return have is not None
        case "DoesNotExist":
            return have is None
        case "Gt" | "Lt" as operator:
            return compared(have, wanted, operator)
    raise ValueError(f"unknown operator {expression['operator']!r}")


def compared(have: str | None, wanted: list[str], operator: str) -> bool:
    """Gt and Lt: both sides whole numbers, anything else holds never."""
    try:
        left, right = int(have or ""), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def selects(selector: Obj | None, labels: Mapping[str, str]) -> bool:
    """A label selector: none selects nothing, an empty one everything."""
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(expression_holds(one, labels) for one in selector.get("matchExpressions") or ())


def term_holds(term: Obj, node: Node) -> bool:
    """One node selector term; a term without any requirement matches no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    on_fields = all(expression_holds(one, {"metadata.name": node.name}) for one in fields)
    return on_fields and all(expression_holds(one, node.labels) for one in expressions)


def affinity_matches(pod: Pod, node: Node) -> bool:
    """nodeSelector and required node affinity."""
    if any(node.labels.get(key) != value for key, value in (pod.spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(term_holds(term, node) for term in required.get("nodeSelectorTerms") or ())


# ---------------------------------------------------------------- taints and the static verdict


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """Whether one toleration covers one taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerated(pod: Pod, taint: Obj) -> bool:
    """Whether the pod tolerates the taint."""
    return any(tolerates(one, taint) for one in pod.spec.get("tolerations") or ())


def taints_tolerated(pod: Pod, node: Node) -> bool:
    """Every NoSchedule and NoExecute taint is tolerated."""
    hard = [taint for taint in node.spec.get("taints") or () if taint["effect"] in ("NoSchedule", "NoExecute")]
    return all(tolerated(pod, taint) for taint in hard)


UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
UNSCHEDULABLE = "node(s) were unschedulable"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"


def static_refusal(pod: Pod, node: Node) -> str | None:
    """The first of the refusals that no placement changes, in the order the filters run; None when the node is fine."""
    if node.spec.get("unschedulable") and not tolerated(pod, UNSCHEDULABLE_TAINT):
        return UNSCHEDULABLE
    if not affinity_matches(pod, node):
        return AFFINITY
    return None if taints_tolerated(pod, node) else TAINTED
