"""Resource quotas: what a namespace uses of what it may, and pods that would exceed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from stromboli.cluster.body import Body, Key, meta, part
from stromboli.cluster.usage import LIMITED
from stromboli.model.names import HUGE_PAGES_PREFIX
from stromboli.model.resources.quantity import parse
from stromboli.server.admission.admission import Rule, World
from stromboli.server.amounts import canonical
from stromboli.server.schema.pod_defaults import class_of_service
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import forbidden
from stromboli.server.storage.selection import matches, of_selector
from stromboli.server.storage.store import Change, CollectionName, Entry, Store

COLLECTION: Final = ("", "resourcequotas")
_PODS: Final = ("", "pods")
_COUNTED: Final = {
    "configmaps": ("", "configmaps"),
    "persistentvolumeclaims": ("", "persistentvolumeclaims"),
    "secrets": ("", "secrets"),
    "services": ("", "services"),
}
"""Objects that are counted by their plain names; all others as ``count/<plural>.<group>``."""
_NOTHING: Final = ("", "")

Amounts = Mapping[str, Fraction]


def demand(pod: Body) -> dict[str, Fraction]:
    """What a pod uses of a quota, under all names that a quota may have for it.

    Limits count for cpu, memory and ephemeral storage alone; of extended resources only ``requests.`` counts.
    """
    found: dict[str, Fraction] = {"pods": Fraction(1), "count/pods": Fraction(1)}
    for kind in ("requests", "limits"):
        for name, amount in pod_amounts(pod, kind).items():
            if kind == "requests" or name in LIMITED:
                found[f"{kind}.{name}"] = amount
            if kind == "requests" and (name in LIMITED or name.startswith(HUGE_PAGES_PREFIX)):
                found[name] = amount
    return found


def pod_amounts(pod: Body, kind: str) -> Amounts:
    """The ``requests`` or ``limits`` of a pod, whose containers run side by side, init containers one by one before."""
    together = _sum(container_amounts(one, kind) for one in part(pod, "spec", "containers") or ())
    for one in part(pod, "spec", "initContainers") or ():
        for name, amount in container_amounts(one, kind).items():
            together[name] = max(together.get(name, Fraction(0)), amount)
    return together


def container_amounts(container: Body, kind: str) -> dict[str, Fraction]:
    """The ``requests`` or ``limits`` of a container."""
    return {name: parse(amount) for name, amount in (part(container, "resources", kind) or {}).items()}


def _sum(amounts: Iterable[Amounts]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def charge(pod: Body) -> Mapping[str, Fraction]:
    """What a pod counts for in the quotas that cover it: of one that has ended nothing but that it is there."""
    return demand(pod) if _counts(pod) else {"count/pods": Fraction(1)}


def _counts(pod: Body) -> bool:
    return part(pod, "status", "phase") not in ("Succeeded", "Failed")


_PRIORITY_CLASS: Final = "PriorityClass"


def _covers(quota: Body, pod: Body) -> bool:
    """Whether the pod is in all scopes of the quota."""
    spec = quota.get("spec") or {}
    terms = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    terms += part(spec, "scopeSelector", "matchExpressions") or ()
    return all(_in_scope(pod, term) for term in terms)


def _in_scope(pod: Body, term: Body) -> bool:
    spec, scope = pod.get("spec") or {}, term.get("scopeName", "")
    if scope == _PRIORITY_CLASS:
        name = spec.get("priorityClassName")
        selector = {"matchExpressions": [{**term, "key": scope}]}
        return matches(of_selector(selector) or (), {scope: name} if name else {})
    found = {
        "BestEffort": class_of_service(spec) == "BestEffort",
        "Terminating": spec.get("activeDeadlineSeconds") is not None,
        "CrossNamespacePodAffinity": _looks_elsewhere(spec),
    }
    return found.get(scope.removeprefix("Not"), False) is not scope.startswith("Not")


def _looks_elsewhere(spec: Body) -> bool:
    """Whether the pod's affinity is about pods of other namespaces."""
    kinds = [part(spec, "affinity", kind) or {} for kind in ("podAffinity", "podAntiAffinity")]
    required = [term for kind in kinds for term in kind.get("requiredDuringSchedulingIgnoredDuringExecution") or ()]
    preferred = [
        one.get("podAffinityTerm") or {}
        for kind in kinds
        for one in kind.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    ]
    return any(term.get("namespaces") or "namespaceSelector" in term for term in (*required, *preferred))


def _collection_of(name: str) -> tuple[str, str]:
    """Group and plural of the objects that are counted under ``name``, empty for what is no number of objects."""
    plural, _, group = name.removeprefix("count/").partition(".")
    return (group, plural) if name.startswith("count/") else _COUNTED.get(name, _NOTHING)


class Tally:
    """What one quota is used of, kept up from change to change; made of a fresh count."""

    def __init__(self, quota: Body, world: World) -> None:
        self.quota = quota
        namespace = meta(quota).get("namespace", "")
        self.hard: Mapping[str, str] = part(quota, "spec", "hard") or {}
        counted = {_collection_of(name) for name in self.hard} - {_PODS, _NOTHING}
        self._numbers = {one: sum(1 for _ in world.bodies(*one, namespace)) for one in counted}
        self._pods: dict[str, Fraction] = {}
        for pod in world.bodies(*_PODS, namespace):
            self._add(pod, 1)

    def _add(self, pod: Body | None, times: int) -> None:
        """Count a pod in, or with ``times`` -1 out."""
        if pod is not None and _covers(self.quota, pod):
            for name, amount in charge(pod).items():
                self._pods[name] = self._pods.get(name, Fraction(0)) + times * amount

    def note(self, collection: CollectionName, before: Body | None, after: Body | None) -> bool:
        """Count a change of one object of the namespace; whether it makes a difference."""
        if collection == _PODS:
            return self._note_pod(before, after)
        differs = collection in self._numbers and (before is None) is not (after is None)
        if differs:
            self._numbers[collection] += 1 if before is None else -1
        return differs

    def _note_pod(self, before: Body | None, after: Body | None) -> bool:
        stays = before is not None and after is not None and before.get("spec") == after.get("spec")
        if stays and _counts(before or {}) == _counts(after or {}):
            return False
        self._add(before, -1)
        self._add(after, 1)
        return True

    def used(self) -> dict[str, Fraction]:
        """What is used of each resource that the quota limits."""
        return {name: self._used(name) for name in self.hard}

    def _used(self, name: str) -> Fraction:
        return self._pods.get(name) or Fraction(self._numbers.get(_collection_of(name), 0))

    def status(self) -> Body:
        """The status that the quota should have."""
        used = {name: shown(amount, self.hard[name]) for name, amount in self.used().items()}
        return {"hard": self.hard, "used": used}


class Usage:
    """What all quotas of a store are used of; ``touched`` are those whose status may have to change."""

    def __init__(self, store: Store, world: World) -> None:
        self._world = world
        self._of: dict[str, dict[str, Tally]] = {}
        self.touched: dict[Key, None] = {}
        for entry in store.of(COLLECTION).sorted():
            self._begin(entry)
        store.listeners.append(self.note)

    def of(self, namespace: str) -> Iterable[Tally]:
        """The tallies of a namespace's quotas."""
        return self._of.get(namespace, {}).values()

    def status_of(self, quota: Body, _world: World) -> Body:
        """The status that a quota should have."""
        return self._of[meta(quota).get("namespace", "")][meta(quota)["name"]].status()

    def taken(self) -> dict[Key, None]:
        """The touched quotas, which count as looked after from now on."""
        touched, self.touched = self.touched, {}
        return touched

    def note(self, collection: CollectionName, change: Change) -> None:
        """Take a change of the store in."""
        namespace = change.entry.key[0]
        before, after = change.before, None if change.type == "DELETED" else change.entry
        for name, tally in self._of.get(namespace, {}).items():
            if tally.note(collection, before.body if before else None, after.body if after else None):
                self.touched[namespace, name] = None
        if collection == COLLECTION:
            self._note_quota(change)

    def _note_quota(self, change: Change) -> None:
        """A quota is counted from scratch when it is new or says something else."""
        namespace, name = change.entry.key
        if change.type == "DELETED":
            self._of[namespace].pop(name)
            if not self._of[namespace]:
                del self._of[namespace]
        elif change.before is None or change.before.body.get("spec") != change.entry.body.get("spec"):
            self._begin(change.entry)

    def _begin(self, entry: Entry) -> None:
        namespace, name = entry.key
        self._of.setdefault(namespace, {})[name] = Tally(entry.body, self._world)
        self.touched[entry.key] = None


def shown(amount: Fraction, like: str) -> str:
    """An amount in the family of suffixes of another."""
    binary = like.endswith("i") and amount.denominator == 1 and amount % 1024 == 0
    return canonical(f"{amount.numerator // 1024}Ki") if binary and amount else canonical(_decimal(amount))


def _decimal(amount: Fraction) -> str:
    """An amount as a decimal number; amounts are whole thousandths."""
    return str(amount.numerator) if amount.denominator == 1 else f"{amount * 1000}m"


class Quotas(Rule):
    """New objects fit into what is left of their namespace's quotas."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The object as it is, if every quota has room for it."""
        if old is None and resource.namespaced:
            for tally in self._usage.of(meta(body).get("namespace", "")):
                if resource.collection != _PODS:
                    _refuse(resource, body, _numbers(resource), tally)
                elif _covers(tally.quota, body):
                    _refuse_untold(resource, body, tally.quota)
                    _refuse(resource, body, demand(body), tally)
        return body


def _numbers(resource: Resource) -> Amounts:
    """What any object uses of a quota: one of its kind."""
    names = [name for name, counted in _COUNTED.items() if counted == resource.collection]
    return dict.fromkeys([*names, f"count/{resource.title}"], Fraction(1))


def _refuse_untold(resource: Resource, pod: Body, quota: Body) -> None:
    wanted = demand(pod)
    missing = sorted(one for one in part(quota, "spec", "hard") or {} if one not in wanted and _must_be_told(one))
    if missing:
        containers = ",".join(str(one.get("name", "")) for one in part(pod, "spec", "containers") or ())
        told = "; ".join(f"{one} for: {containers}" for one in missing)
        why = f"failed quota: {meta(quota)['name']}: must specify {told}"
        raise forbidden(resource, meta(pod).get("name", ""), why)


def _refuse(resource: Resource, body: Body, wanted: Amounts, tally: Tally) -> None:
    hard = tally.hard
    if hard.keys().isdisjoint(wanted):
        return
    now = tally.used()
    over = sorted(one for one in hard if one in wanted and wanted[one] + now[one] > parse(hard[one]))
    if over:
        asked = ",".join(f"{one}={shown(wanted[one], hard[one])}" for one in over)
        taken = ",".join(f"{one}={shown(now[one], hard[one])}" for one in over)
        most = ",".join(f"{one}={hard[one]}" for one in over)
        why = f"exceeded quota: {meta(tally.quota)['name']}, requested: {asked}, used: {taken}, limited: {most}"
        raise forbidden(resource, meta(body).get("name", ""), why)


def _must_be_told(name: str) -> bool:
    bare = name.removeprefix("requests.").removeprefix("limits.")
    return bare in ("cpu", "memory")
