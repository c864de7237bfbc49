"""Whether a pod template can become pods: the parts of Kubernetes' own rules that a job's author gets wrong.

The API server checks each pod in full when it is made; this tells early what would fail every one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from stromboli.crds.admission.texts import dns_label, duplicate, invalid, not_found, required, unsupported
from stromboli.errors import QuantityError
from stromboli.model.resources import quantity

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_HIGHEST_PORT: Final = 65535
HIGHEST_DEADLINE: Final = (1 << 31) - 1
"""Seconds for which a pod may be active at most."""
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_OF_QUOTAS: Final = (
    "pods", "storage", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
)  # fmt: skip
"""Standard resources that quotas count, and no container asks for."""
Value = Mapping[str, object]


def check_template(template: Value) -> Iterator[str]:
    """What is wrong with a PodTemplateSpec, field by field."""
    return check_pod_spec(_mapping(template.get("spec")), "template.spec")


def check_pod_spec(spec: Value, path: str) -> Iterator[str]:
    """What is wrong with a PodSpec that stands at ``path``, field by field."""
    volumes = _rows(spec.get("volumes"))
    names = [str(volume.get("name") or "") for volume in volumes]
    yield from _check_names(names, f"{path}.volumes")
    containers = _rows(spec.get("containers"))
    if not containers:
        yield required(f"{path}.containers")
    taken: dict[str, None] = {}
    for part, rows in (("containers", containers), ("initContainers", _rows(spec.get("initContainers")))):
        for number, container in enumerate(rows):
            yield from _check_container(container, f"{path}.{part}[{number}]", names, taken)
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= HIGHEST_DEADLINE:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {HIGHEST_DEADLINE}, inclusive")
    yield from _supported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)


def _check_names(names: Iterable[str], path: str) -> Iterator[str]:
    taken: dict[str, None] = {}
    for number, name in enumerate(names):
        yield from _check_name(name, f"{path}[{number}].name", taken)


def _check_name(name: str, path: str, taken: dict[str, None]) -> Iterator[str]:
    if not name:
        yield required(path)
        return
    yield from (invalid(path, name, problem) for problem in dns_label(name))
    if name in taken:
        yield duplicate(path, name)
    taken[name] = None


def _check_container(container: Value, path: str, volumes: list[str], taken: dict[str, None]) -> Iterator[str]:
    yield from _check_name(str(container.get("name") or ""), f"{path}.name", taken)
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from _supported(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    for number, port in enumerate(_rows(container.get("ports"))):
        yield from _check_port(port, f"{path}.ports[{number}]")
    for number, mount in enumerate(_rows(container.get("volumeMounts"))):
        yield from _check_mount(mount, f"{path}.volumeMounts[{number}]", volumes)
    for number, variable in enumerate(_rows(container.get("env"))):
        if not variable.get("name"):
            yield required(f"{path}.env[{number}].name")
    yield from _check_resources(_mapping(container.get("resources")), f"{path}.resources")


def _check_port(port: Value, path: str) -> Iterator[str]:
    number = port.get("containerPort")
    if not number:
        yield required(f"{path}.containerPort")
    elif not isinstance(number, int) or not 0 < number <= _HIGHEST_PORT:
        yield invalid(f"{path}.containerPort", number, f"must be between 1 and {_HIGHEST_PORT}, inclusive")
    yield from _supported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)


def _check_mount(mount: Value, path: str, volumes: list[str]) -> Iterator[str]:
    name = mount.get("name")
    if not name:
        yield required(f"{path}.name")
    elif name not in volumes:
        yield not_found(f"{path}.name", name)
    if not mount.get("mountPath"):
        yield required(f"{path}.mountPath")


def _check_resources(resources: Value, path: str) -> Iterator[str]:
    limits, requests = _mapping(resources.get("limits")), _mapping(resources.get("requests"))
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from (invalid(f"{path}.{part}[{name}]", name, wrong) for wrong in name_problems(name))
            problem = amount_problem(amount) or _fraction_problem(name, amount)
            if problem:
                yield invalid(f"{path}.{part}[{name}]", amount, problem)
                return
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is not None:
            yield from _check_limit(name, amount, limit, f"{path}.requests")
        elif not _may_be_exceeded(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def name_problems(name: str) -> Iterator[str]:
    """What is wrong with a resource's name in a container: those of devices begin with a domain (nvidia.com/gpu)."""
    standard = name in _STANDARD or name.startswith("hugepages-")
    if "/" not in name and not standard:
        if name not in _OF_QUOTAS and not name.startswith(("requests.", "limits.")):
            yield "must be a standard resource type or fully qualified"
        yield "must be a standard resource for containers"


def _check_limit(name: str, amount: object, limit: object, path: str) -> Iterator[str]:
    asked, most = quantity.parse(_amount(amount)), quantity.parse(_amount(limit))
    if asked != most and not _may_be_exceeded(name):
        yield invalid(path, str(amount), f"must be equal to {name} limit of {limit}")
    elif asked > most:
        yield invalid(path, str(amount), f"must be less than or equal to {name} limit of {limit}")


def _may_be_exceeded(name: str) -> bool:
    """Whether containers may use more of a resource than they ask for: of none that devices or huge pages offer."""
    return not _is_extended(name) and not name.startswith("hugepages-")


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _fraction_problem(name: str, amount: object) -> str:
    fraction = _is_extended(name) and quantity.parse(_amount(amount)).denominator != 1
    return "must be an integer" if fraction else ""


def amount_problem(amount: object) -> str:
    """What is wrong with an amount: that it cannot be read, or is negative."""
    try:
        negative = quantity.parse(_amount(amount)) < 0
    except QuantityError:
        return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    return "must be greater than or equal to 0" if negative else ""


def _amount(amount: object) -> str | int | float:
    return amount if isinstance(amount, str | int | float) else str(amount)


def _supported(path: str, value: object, supported: tuple[str, ...]) -> Iterator[str]:
    if value and value not in supported:
        yield unsupported(path, value, supported)


def _mapping(value: object) -> Value:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> list[Value]:
    return [_mapping(row) for row in value] if isinstance(value, list | tuple) else []
