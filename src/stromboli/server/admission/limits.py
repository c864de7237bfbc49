"""Limit ranges: what the containers of a namespace get that say nothing, and what they may say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from stromboli.cluster.body import Body, meta, part, with_meta
from stromboli.model.resources.quantity import parse
from stromboli.server.admission.admission import Rule, World
from stromboli.server.admission.quotas import Amounts, container_amounts, pod_amounts, shown
from stromboli.server.schema.pod_defaults import class_of_service
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import forbidden

COLLECTION: Final = ("", "limitranges")
NOTE: Final = "kubernetes.io/limit-ranger"
"""Annotation of a pod that says what was filled in."""
_PODS: Final = ("", "pods")
_CLAIMS: Final = ("", "persistentvolumeclaims")
_PARTS: Final = (("containers", "container"), ("initContainers", "init container"))
_DEFAULTS: Final = (("requests", "defaultRequest"), ("limits", "default"))


class Limits(Rule):
    """New pods and claims keep to their namespace's limit ranges."""

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The object with what the ranges fill in, if it keeps to them."""
        if old is not None or resource.collection not in (_PODS, _CLAIMS):
            return body
        ranges = sorted(world.bodies(*COLLECTION, meta(body).get("namespace", "")), key=lambda one: meta(one)["name"])
        items = [item for one in ranges for item in part(one, "spec", "limits") or ()]
        if resource.collection == _PODS:
            body = _filled(body, [item for item in items if item.get("type") == "Container"])
        texts = list(dict.fromkeys(_problems(resource, body, items)))
        if texts:
            told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            raise forbidden(resource, meta(body).get("name", ""), told)
        return body


# -------------------------------------------------------------------------------------------------- what is filled in


def _filled(pod: Body, items: list[Body]) -> Body:
    """The pod with the defaults of its containers; of several ranges the first that names a resource counts."""
    defaults = {kind: _first(item.get(key) or {} for item in items) for kind, key in _DEFAULTS}
    spec, notes = dict(pod["spec"]), list[str]()
    for name, word in _PARTS:
        if spec.get(name):
            spec[name] = [_completed(one, defaults, word, notes) for one in spec[name]]
    if not notes:
        return pod
    told = {**(meta(pod).get("annotations") or {}), NOTE: f"LimitRanger plugin set: {'; '.join(notes)}"}
    status = {**(pod.get("status") or {}), "qosClass": class_of_service(spec)}
    return {**with_meta(pod, annotations=told), "spec": spec, "status": status}


def _first(given: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        found = {**one, **found}
    return found


def _completed(container: Body, defaults: Mapping[str, Mapping[str, str]], word: str, notes: list[str]) -> Body:
    resources = dict(container.get("resources") or {})
    for kind, amounts in defaults.items():
        known = resources.get(kind) or {}
        missing = {name: amount for name, amount in amounts.items() if name not in known}
        if missing:
            resources[kind] = {**known, **missing}
            notes.append(f"{', '.join(sorted(missing))} {kind.removesuffix('s')} for {word} {container['name']}")
    return {**container, "resources": resources}


# ---------------------------------------------------------------------------------------------------- what is refused


def _problems(resource: Resource, body: Body, items: Iterable[Body]) -> Iterator[str]:
    for item in items:
        kind = item.get("type", "")
        for requests, limits in _limited(resource, body, kind):
            yield from _too_little(item, kind, requests, limits)
            yield from _too_much(item, kind, requests, limits, must_limit=kind != "PersistentVolumeClaim")
            yield from _too_far_apart(item, kind, requests, limits)


def _limited(resource: Resource, body: Body, kind: str) -> Iterator[tuple[Amounts, Amounts]]:
    """Requests and limits of everything in the object that an item of this type is about."""
    if resource.collection == _CLAIMS:
        if kind == "PersistentVolumeClaim":
            yield container_amounts(body["spec"], "requests"), {}
    elif kind == "Container":
        for name, _ in _PARTS:
            for one in body["spec"].get(name) or ():
                yield container_amounts(one, "requests"), container_amounts(one, "limits")
    elif kind == "Pod":
        yield pod_amounts(body, "requests"), pod_amounts(body, "limits")


def _too_little(item: Body, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in (item.get("min") or {}).items():
        rule = f"minimum {name} usage per {kind} is {least}"
        if name not in requests:
            yield f"{rule}.  No request is specified"
        elif requests[name] < parse(least):
            yield f"{rule}, but request is {shown(requests[name], least)}"
        elif name in limits and limits[name] < parse(least):
            yield f"{rule}, but limit is {shown(limits[name], least)}"


def _too_much(item: Body, kind: str, requests: Amounts, limits: Amounts, *, must_limit: bool) -> Iterator[str]:
    for name, most in (item.get("max") or {}).items():
        rule = f"maximum {name} usage per {kind} is {most}"
        if must_limit and name not in limits:
            yield f"{rule}.  No limit is specified"
        elif name in limits and limits[name] > parse(most):
            yield f"{rule}, but limit is {shown(limits[name], most)}"
        elif name in requests and requests[name] > parse(most):
            yield f"{rule}, but request is {shown(requests[name], most)}"


def _too_far_apart(item: Body, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, most in (item.get("maxLimitRequestRatio") or {}).items():
        rule = f"{name} max limit to request ratio per {kind} is {most}, but"
        if not requests.get(name):
            yield f"{rule} no request is specified or request is 0"
        elif not limits.get(name):
            yield f"{rule} no limit is specified or limit is 0"
        elif limits[name] / requests[name] > parse(most):
            yield f"{rule} provided ratio is {float(limits[name] / requests[name]):.6f}"
