"""What Kubernetes refuses of types that stand in objects of many kinds, such as selectors; texts are its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from stromboli.cluster.body import Body
from stromboli.model.resources.quantity import parse
from stromboli.server.schema.names import no_label_key, no_label_value
from stromboli.server.status_errors import Cause, closed, required, unsupported, wrong

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_APPS: Final = "io.k8s.api.apps.v1"
_CORE: Final = "io.k8s.api.core.v1"
_LISTED: Final = ("In", "NotIn")
_BARE: Final = ("Exists", "DoesNotExist")
_COMPARED: Final = ("Gt", "Lt")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_HIGHEST_PORT: Final = 65535
_PERCENT: Final = re.compile(r"[0-9]+%")
_PERCENT_TEXT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)
Rule: TypeAlias = Callable[[Body, str], Iterator[Cause]]
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NO_OPERATOR: Final = "not a valid selector operator"


def of_type(name: str, value: Body, path: str) -> Iterator[Cause]:
    """What is wrong with a value of the type of this name; nothing for types without rules."""
    rule = _RULES.get(name)
    if rule is not None:
        yield from rule(value, path)


def _labels(selector: Body, path: str) -> Iterator[Cause]:
    """A LabelSelector."""
    where = f"{path}.matchLabels"
    for key, value in (selector.get("matchLabels") or {}).items():
        if told := no_label_key(key):
            yield wrong(where, key, told)
        if told := no_label_value(value):
            yield wrong(where, value, told)


def _label_term(term: Body, path: str) -> Iterator[Cause]:
    """A LabelSelectorRequirement."""
    yield from _term(term, path, ())
    if told := no_label_key(term.get("key", "")):
        yield wrong(f"{path}.key", term.get("key", ""), told)


def _node_term(term: Body, path: str) -> Iterator[Cause]:
    """A NodeSelectorRequirement."""
    yield from _term(term, path, _COMPARED)
    if not term.get("key"):
        yield required(f"{path}.key")


def _term(term: Mapping[str, Any], path: str, compared: Sequence[str]) -> Iterator[Cause]:
    operator, values = term.get("operator", ""), term.get("values") or ()
    if operator in _LISTED and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _BARE and values:
        yield closed(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in compared and len(values) != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    elif operator not in (*_LISTED, *_BARE, *compared):
        yield wrong(f"{path}.operator", operator, _NO_OPERATOR)


def _owner(owner: Body, path: str) -> Iterator[Cause]:
    """An OwnerReference."""
    for name in ("apiVersion", "kind", "name", "uid"):
        if not owner.get(name):
            yield wrong(
                f"{path}.{name}", "", "version must not be empty" if name == "apiVersion" else "must not be empty"
            )


def _taint(taint: Body, path: str) -> Iterator[Cause]:
    if told := no_label_key(taint.get("key", "")):
        yield wrong(f"{path}.key", taint.get("key", ""), told)
    if not taint.get("effect"):
        yield required(f"{path}.effect")
    elif taint["effect"] not in _EFFECTS:
        yield unsupported(f"{path}.effect", taint["effect"], _EFFECTS)


def _toleration(toleration: Body, path: str) -> Iterator[Cause]:
    operator = toleration.get("operator") or "Equal"
    if not toleration.get("key") and operator != "Exists":
        told = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield wrong(f"{path}.operator", operator, told)
    if operator == "Exists" and toleration.get("value"):
        yield wrong(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        told = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield wrong(f"{path}.effect", toleration.get("effect", ""), told)


def _affinity(term: Body, path: str) -> Iterator[Cause]:
    """A PodAffinityTerm."""
    if not term.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")


def _spread(constraint: Body, path: str) -> Iterator[Cause]:
    """A TopologySpreadConstraint."""
    if constraint.get("maxSkew", 0) <= 0:
        yield wrong(f"{path}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
    if not constraint.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    if constraint.get("whenUnsatisfiable") not in _UNSATISFIABLE:
        yield unsupported(f"{path}.whenUnsatisfiable", constraint.get("whenUnsatisfiable", ""), _UNSATISFIABLE)


def _budget(spec: Body, path: str) -> Iterator[Cause]:
    """A PodDisruptionBudgetSpec."""
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            yield from _share(spec[name], f"{path}.{name}")


def _rolling(strategy: Body, path: str) -> Iterator[Cause]:
    """How many pods a rolling update may have too many, or too few."""
    for name in ("maxSurge", "maxUnavailable"):
        if name in strategy:
            yield from _share(strategy[name], f"{path}.{name}")


def _share(value: int | str, path: str) -> Iterator[Cause]:
    """A number of pods, or a percentage of them."""
    if isinstance(value, int):
        yield from _not_negative(value, path)
    elif not _PERCENT.fullmatch(value):
        yield wrong(path, value, _PERCENT_TEXT)
    elif len(value) > len("100%") or int(value[:-1]) > 100:
        yield wrong(path, value, "must not be greater than 100%")


def _not_negative(value: Any, path: str) -> Iterator[Cause]:
    if value is not None and value < 0:
        yield wrong(path, value, "must be greater than or equal to 0")


def _counts(*names: str) -> Rule:
    """Fields that hold numbers of things or of seconds."""

    def rule(value: Body, path: str) -> Iterator[Cause]:
        for name in names:
            yield from _not_negative(value.get(name), f"{path}.{name}")

    return rule


def _amounts(*names: str) -> Rule:
    """Fields that hold amounts of resources."""

    def rule(value: Body, path: str) -> Iterator[Cause]:
        for name in names:
            for resource, amount in (value.get(name) or {}).items():
                if parse(amount) < 0:
                    yield wrong(f"{path}.{name}[{resource}]", amount, "must be greater than or equal to 0")

    return rule


def _lease(spec: Body, path: str) -> Iterator[Cause]:
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield wrong(f"{path}.leaseDurationSeconds", seconds, "must be greater than 0")


def _port(port: Body, path: str) -> Iterator[Cause]:
    """A ServicePort."""
    if not 0 < port.get("port", 0) <= _HIGHEST_PORT:
        told = f"must be between 1 and {_HIGHEST_PORT}, inclusive"
        yield wrong(f"{path}.port", port.get("port", 0), told)


def _subject(subject: Body, path: str) -> Iterator[Cause]:
    """A user, group or service account that a role is given to."""
    if not subject.get("name"):
        yield required(f"{path}.name")


def _job(spec: Body, path: str) -> Iterator[Cause]:
    yield from _counts(*_OF_JOBS)(spec, path)
    numbered = spec.get("completionMode") == "Indexed" and spec.get("parallelism") is not None
    if numbered and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")


_OF_JOBS: Final = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
_REPLICAS: Final = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
_RULES: Final[Mapping[str, Rule]] = {
    f"{_META}.LabelSelector": _labels,
    f"{_META}.LabelSelectorRequirement": _label_term,
    f"{_META}.OwnerReference": _owner,
    f"{_CORE}.NodeSelectorRequirement": _node_term,
    f"{_CORE}.NodeStatus": _amounts("capacity", "allocatable"),
    f"{_CORE}.PersistentVolumeSpec": _amounts("capacity"),
    f"{_CORE}.PodAffinityTerm": _affinity,
    f"{_CORE}.PodSpec": _amounts("overhead"),
    f"{_CORE}.ReplicationControllerSpec": _counts("replicas", "minReadySeconds"),
    f"{_CORE}.ResourceQuotaSpec": _amounts("hard"),
    f"{_CORE}.ServicePort": _port,
    f"{_CORE}.Taint": _taint,
    f"{_CORE}.Toleration": _toleration,
    f"{_CORE}.TopologySpreadConstraint": _spread,
    f"{_APPS}.DeploymentSpec": _counts(*_REPLICAS),
    f"{_APPS}.DaemonSetSpec": _counts(*_REPLICAS),
    f"{_APPS}.ReplicaSetSpec": _counts(*_REPLICAS),
    f"{_APPS}.StatefulSetSpec": _counts(*_REPLICAS),
    f"{_APPS}.RollingUpdateDaemonSet": _rolling,
    f"{_APPS}.RollingUpdateDeployment": _rolling,
    "io.k8s.api.batch.v1.JobSpec": _job,
    "io.k8s.api.coordination.v1.LeaseSpec": _lease,
    "io.k8s.api.policy.v1.PodDisruptionBudgetSpec": _budget,
    "io.k8s.api.rbac.v1.Subject": _subject,
}
