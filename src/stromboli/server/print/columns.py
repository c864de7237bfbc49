"""The columns that kubectl shows of each kind, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from stromboli.cluster.body import Body, meta, part, seconds_of
from stromboli.server.print.conditions import readiness
from stromboli.server.print.durations import age, human
from stromboli.server.print.pod_status import summary

Cell = Callable[[Body, float], Any]
"""What stands in a column of an object, at a time in seconds since 1970."""


class Column(NamedTuple):
    """A column: those of priority 1 are shown by ``-o wide`` alone."""

    name: str
    cell: Cell
    priority: int = 0
    type: str = "string"
    format: str = ""
    description: str = ""


NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"


def at(*path: str, missing: Any = NONE) -> Cell:
    """The value at a path."""

    def cell(body: Body, now: float) -> Any:
        value = part(body, *path)
        return missing if value in (None, "") else value

    return cell


def count(*path: str) -> Cell:
    """How many there are at a path."""
    return lambda body, now: len(part(body, *path) or ())


def since(*path: str) -> Cell:
    """How long ago the time at a path was."""
    return lambda body, now: age(part(body, *path), now)


def _name(body: Body, now: float) -> Any:
    return meta(body).get("name", "")


NAME: Final = Column("Name", _name, format="name")
AGE: Final = Column("Age", since("metadata", "creationTimestamp"))


def _wide(name: str, cell: Cell) -> Column:
    return Column(name, cell, 1)


# ------------------------------------------------------------------------------------------------ pods and nodes


def _nominated(body: Body, now: float) -> str:
    return str(part(body, "status", "nominatedNodeName") or NONE)


def _gates(body: Body, now: float) -> str:
    gates = [gate.get("conditionType") for gate in part(body, "spec", "readinessGates") or ()]
    conditions = part(body, "status", "conditions") or ()
    met = sum(1 for one in conditions if one.get("type") in gates and one.get("status") == "True")
    return f"{met}/{len(gates)}" if gates else NONE


def _node_status(body: Body, now: float) -> str:
    words = [{"True": "Ready", "": "Unknown"}.get(readiness(body), "NotReady")]
    if part(body, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(body: Body, now: float) -> str:
    prefix, found = "node-role.kubernetes.io/", []
    for key, value in (meta(body).get("labels") or {}).items():
        if key.startswith(prefix) and key != prefix:
            found.append(key.removeprefix(prefix))
        elif key == "kubernetes.io/role" and value:
            found.append(value)
    return ",".join(sorted(found)) or NONE


def _node_address(kind: str) -> Cell:
    def cell(body: Body, now: float) -> str:
        addresses = part(body, "status", "addresses") or ()
        return next((one.get("address", "") for one in addresses if one.get("type") == kind), NONE)

    return cell


_kubelet = at("status", "nodeInfo", "kubeletVersion", missing="")


def _info(name: str) -> Cell:
    return at("status", "nodeInfo", name, missing=UNKNOWN)


# ------------------------------------------------------------------------------------------------ parts of other kinds


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Labels as one text."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A LabelSelector as one text."""
    if selector is None:
        return NONE
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    words = {"In": "in", "NotIn": "notin"}
    for term in selector.get("matchExpressions") or ():
        key, operator = term.get("key"), term.get("operator")
        if operator in words:
            terms.append(f"{key} {words[operator]} ({','.join(sorted(term.get('values') or ()))})")
        else:
            terms.append(str(key) if operator == "Exists" else f"!{key}")
    return ",".join(terms) or NONE


def _selector(body: Body, now: float) -> str:
    return selector_text(part(body, "spec", "selector"))


def _containers(key: str) -> Column:
    def cell(body: Body, now: float) -> str:
        containers = part(body, "spec", "template", "spec", "containers") or ()
        return ",".join(str(one.get(key, "")) for one in containers)

    return _wide("Containers" if key == "name" else "Images", cell)


_TEMPLATE: Final = (_containers("name"), _containers("image"))
_SELECTED: Final = (*_TEMPLATE, _wide("Selector", _selector))


def _amount(name: str, *path: str) -> Column:
    return Column(name, at(*path, missing=0), type="integer")


def _of_wanted(status: str) -> Cell:
    return lambda body, now: f"{part(body, 'status', status) or 0}/{part(body, 'spec', 'replicas') or 0}"


def _job_status(body: Body, now: float) -> str:
    true = {one.get("type") for one in part(body, "status", "conditions") or () if one.get("status") == "True"}
    for word in ("Complete", "Failed", "SuccessCriteriaMet", "Suspended", "FailureTarget"):
        if word in true:
            return word
    return "Terminating" if "deletionTimestamp" in meta(body) else "Running"


def _completions(body: Body, now: float) -> str:
    done, wanted = part(body, "status", "succeeded") or 0, part(body, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = part(body, "spec", "parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(body: Body, now: float) -> str:
    began, ended = (seconds_of(part(body, "status", name)) for name in ("startTime", "completionTime"))
    return "" if began is None else human((ended or now) - began)


def _ports(body: Body, now: float) -> str:
    return ",".join(_port(port) for port in part(body, "spec", "ports") or ()) or NONE


def _port(port: Body) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"


def _external(body: Body, now: float) -> str:
    spec = body.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", NONE))
    missing = "<pending>" if spec.get("type") == "LoadBalancer" else NONE
    return ",".join(spec.get("externalIPs") or ()) or missing


def _event_object(body: Body, now: float) -> str:
    involved = body.get("involvedObject") or {}
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


def _event_time(*names: str) -> Cell:
    def cell(body: Body, now: float) -> str:
        return age(next((body[name] for name in names if body.get(name)), None), now)

    return cell


def _event_last(body: Body, now: float) -> str:
    last = part(body, "series", "lastObservedTime") or body.get("lastTimestamp") or body.get("eventTime")
    return age(last, now)


def _source(body: Body, now: float) -> str:
    source = body.get("source") or {}
    given = [source.get("component") or body.get("reportingComponent", ""), source.get("host") or ""]
    return ", ".join(filter(None, given))


def _data(body: Body, now: float) -> int:
    return len(body.get("data") or ()) + len(body.get("binaryData") or ())


def _used(kind: str) -> Cell:
    def cell(body: Body, now: float) -> str:
        hard, used = (part(body, "status", name) or part(body, "spec", name) or {} for name in ("hard", "used"))
        chosen = sorted(name for name in hard if name.startswith("limits.") == (kind == "limits"))
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in chosen)

    return cell


_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(body: Body, now: float) -> str:
    modes = set(part(body, "spec", "accessModes") or ())
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _claim(body: Body, now: float) -> str:
    found = part(body, "spec", "claimRef")
    return f"{found.get('namespace')}/{found.get('name')}" if found else ""


def _default_class(body: Body, now: float) -> str:
    default = (meta(body).get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{_name(body, now)} (default)" if default else str(_name(body, now))


def _role(body: Body, now: float) -> str:
    found = body.get("roleRef") or {}
    return f"{found.get('kind')}/{found.get('name')}"


def _subjects(kind: str) -> Cell:
    def cell(body: Body, now: float) -> str:
        found = [one for one in body.get("subjects") or () if one.get("kind") == kind]
        qualified = kind == "ServiceAccount"
        names = [str(one.get("name", "")) for one in found]
        places = [f"{one.get('namespace')}/" if qualified else "" for one in found]
        return ", ".join(map("".join, zip(places, names, strict=True)))

    return cell


_BINDING: Final = (
    NAME, Column("Role", _role), AGE, _wide("Users", _subjects("User")), _wide("Groups", _subjects("Group")),
    _wide("ServiceAccounts", _subjects("ServiceAccount")),
)  # fmt: skip
_BUDGET_UNSET: Final = "N/A"
_VOLUME_CLASS: Final = Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", missing=UNSET))
_WEBHOOKS: Final = (NAME, Column("Webhooks", count("webhooks"), type="integer"), AGE)
_DATED: Final = (NAME, Column("Created At", at("metadata", "creationTimestamp", missing="")))


def _pod_cell(field: str) -> Cell:
    return lambda body, now: getattr(summary(body, now), field)


COLUMNS: Final[Mapping[tuple[str, str], Iterable[Column]]] = {
    ("", "pods"): (
        NAME, Column("Ready", _pod_cell("ready")), Column("Status", _pod_cell("status")),
        Column("Restarts", _pod_cell("restarts")), AGE, _wide("IP", at("status", "podIP")),
        _wide("Node", at("spec", "nodeName")), _wide("Nominated Node", _nominated), _wide("Readiness Gates", _gates),
    ),
    ("", "nodes"): (
        NAME, Column("Status", _node_status), Column("Roles", _roles), AGE, Column("Version", _kubelet),
        _wide("Internal-IP", _node_address("InternalIP")), _wide("External-IP", _node_address("ExternalIP")),
        _wide("OS-Image", _info("osImage")), _wide("Kernel-Version", _info("kernelVersion")),
        _wide("Container-Runtime", _info("containerRuntimeVersion")),
    ),
    ("", "namespaces"): (NAME, Column("Status", at("status", "phase")), AGE),
    ("", "services"): (
        NAME, Column("Type", at("spec", "type")), Column("Cluster-IP", at("spec", "clusterIP")),
        Column("External-IP", _external), Column("Port(s)", _ports), AGE,
        _wide("Selector", lambda body, now: labels_text(part(body, "spec", "selector"))),
    ),
    ("", "endpoints"): (NAME, Column("Endpoints", at("subsets")), AGE),
    ("", "configmaps"): (NAME, Column("Data", _data), AGE),
    ("", "secrets"): (NAME, Column("Type", at("type")), Column("Data", _data), AGE),
    ("", "serviceaccounts"): (NAME, AGE),
    ("", "limitranges"): _DATED,
    ("", "resourcequotas"): (NAME, Column("Request", _used("requests")), Column("Limit", _used("limits")), AGE),
    ("", "podtemplates"): (NAME, AGE),
    ("", "events"): (
        Column("Last Seen", _event_last), Column("Type", at("type", missing="")),
        Column("Reason", at("reason", missing="")), Column("Object", _event_object),
        _wide("Subobject", at("involvedObject", "fieldPath", missing="")), _wide("Source", _source),
        Column("Message", lambda body, now: (body.get("message") or "").strip()),
        _wide("First Seen", _event_time("firstTimestamp", "eventTime")),
        _wide("Count", lambda body, now: part(body, "series", "count") or body.get("count") or 1),
        Column("Name", _name, 1, format="name"),
    ),
    ("", "persistentvolumes"): (
        NAME, Column("Capacity", at("spec", "capacity", "storage", missing="")), Column("Access Modes", _modes),
        Column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy", missing="")),
        Column("Status", at("status", "phase", missing="")), Column("Claim", _claim),
        Column("StorageClass", at("spec", "storageClassName", missing="")), _VOLUME_CLASS,
        Column("Reason", at("status", "reason", missing="")), AGE,
        _wide("VolumeMode", at("spec", "volumeMode", missing=UNSET)),
    ),
    ("", "persistentvolumeclaims"): (
        NAME, Column("Status", at("status", "phase", missing="")),
        Column("Volume", at("spec", "volumeName", missing="")),
        Column("Capacity", at("status", "capacity", "storage", missing="")), Column("Access Modes", _modes),
        Column("StorageClass", at("spec", "storageClassName", missing="")), _VOLUME_CLASS, AGE,
        _wide("VolumeMode", at("spec", "volumeMode", missing=UNSET)),
    ),
    ("", "replicationcontrollers"): (
        NAME, _amount("Desired", "spec", "replicas"), _amount("Current", "status", "replicas"),
        _amount("Ready", "status", "readyReplicas"), AGE, *_TEMPLATE,
        _wide("Selector", lambda body, now: labels_text(part(body, "spec", "selector"))),
    ),
    ("apps", "replicasets"): (
        NAME, _amount("Desired", "spec", "replicas"), _amount("Current", "status", "replicas"),
        _amount("Ready", "status", "readyReplicas"), AGE, *_SELECTED,
    ),
    ("apps", "deployments"): (
        NAME, Column("Ready", _of_wanted("readyReplicas")), _amount("Up-to-date", "status", "updatedReplicas"),
        _amount("Available", "status", "availableReplicas"), AGE, *_SELECTED,
    ),
    ("apps", "statefulsets"): (NAME, Column("Ready", _of_wanted("readyReplicas")), AGE, *_TEMPLATE),
    ("apps", "daemonsets"): (
        NAME, _amount("Desired", "status", "desiredNumberScheduled"),
        _amount("Current", "status", "currentNumberScheduled"), _amount("Ready", "status", "numberReady"),
        _amount("Up-to-date", "status", "updatedNumberScheduled"), _amount("Available", "status", "numberAvailable"),
        Column("Node Selector", lambda body, now: labels_text(part(body, "spec", "template", "spec", "nodeSelector"))),
        AGE, *_SELECTED,
    ),
    ("apps", "controllerrevisions"): (
        NAME, Column("Controller", at("metadata", "ownerReferences", missing=NONE)),
        Column("Revision", at("revision", missing=0)), AGE,
    ),
    ("batch", "jobs"): (
        NAME, Column("Status", _job_status), Column("Completions", _completions), Column("Duration", _duration), AGE,
        *_SELECTED,
    ),
    ("batch", "cronjobs"): (
        NAME, Column("Schedule", at("spec", "schedule")), Column("Timezone", at("spec", "timeZone")),
        Column("Suspend", lambda body, now: str(part(body, "spec", "suspend") or False)),
        Column("Active", count("status", "active"), type="integer"),
        Column("Last Schedule", lambda body, now: age(part(body, "status", "lastScheduleTime"), now)
               if part(body, "status", "lastScheduleTime") else NONE), AGE,
    ),
    ("networking.k8s.io", "networkpolicies"): (
        NAME, Column("Pod-Selector", lambda body, now: selector_text(part(body, "spec", "podSelector"))), AGE,
    ),
    ("policy", "poddisruptionbudgets"): (
        NAME, Column("Min Available", at("spec", "minAvailable", missing=_BUDGET_UNSET)),
        Column("Max Unavailable", at("spec", "maxUnavailable", missing=_BUDGET_UNSET)),
        _amount("Allowed Disruptions", "status", "disruptionsAllowed"), AGE,
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
    ("scheduling.k8s.io", "priorityclasses"): (
        NAME, Column("Value", at("value", missing=0), type="integer"),
        Column("Global-Default", lambda body, now: bool(body.get("globalDefault")), type="boolean"), AGE,
        Column("PreemptionPolicy", at("preemptionPolicy")),
    ),
    ("coordination.k8s.io", "leases"): (NAME, Column("Holder", at("spec", "holderIdentity", missing="")), AGE),
    ("rbac.authorization.k8s.io", "roles"): _DATED,
    ("rbac.authorization.k8s.io", "clusterroles"): _DATED,
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
    ("storage.k8s.io", "storageclasses"): (
        Column("Name", _default_class, format="name"), Column("Provisioner", at("provisioner", missing="")),
        Column("ReclaimPolicy", at("reclaimPolicy", missing="Delete")),
        Column("VolumeBindingMode", at("volumeBindingMode", missing="Immediate")),
        Column("AllowVolumeExpansion", lambda body, now: bool(body.get("allowVolumeExpansion"))), AGE,
    ),
    ("storage.k8s.io", "csidrivers"): (NAME, AGE),
    ("storage.k8s.io", "csinodes"): (NAME, Column("Drivers", count("spec", "drivers"), type="integer"), AGE),
    ("apiextensions.k8s.io", "customresourcedefinitions"): _DATED,
}  # fmt: skip
"""Columns by collection; another kind shows name and age."""
