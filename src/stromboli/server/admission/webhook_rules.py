"""What webhooks state: whether they want to be asked about a write, where they answer, and what is wrong with that."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from stromboli.cluster.body import Body, meta, part
from stromboli.errors import ManifestError
from stromboli.model.selectors import selects
from stromboli.model.spec import LabelSelector
from stromboli.model.values.reading import convert
from stromboli.server.admission.admission import World
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import Cause, wrong

MOST_SECONDS: Final = 30
"""The longest that a webhook may take."""


class Place(NamedTuple):
    """Where a webhook answers: on this machine only; ``server_name`` is the name in its certificate."""

    host: str
    port: int
    path: str
    server_name: str


def mistakes(body: Body) -> Iterator[Cause]:
    """What is wrong with a configuration of webhooks beyond its schema."""
    for number, hook in enumerate(body.get("webhooks") or ()):
        path, client = f"webhooks[{number}]", hook.get("clientConfig") or {}
        url = client.get("url")
        if bool(url) == bool(client.get("service")):
            yield Cause(f"{path}.clientConfig", "FieldValueRequired", "Required value: exactly one of url or service")
        elif url and not _is_https(url):
            yield wrong(f"{path}.clientConfig.url", url, "it must be an https address with a host")
        if not 1 <= hook.get("timeoutSeconds", 10) <= MOST_SECONDS:
            limits = f"the timeout value must be between 1 and {MOST_SECONDS} seconds"
            yield wrong(f"{path}.timeoutSeconds", hook["timeoutSeconds"], limits)
        for name in ("namespaceSelector", "objectSelector"):
            try:
                selector_of(hook.get(name))
            except ManifestError as error:
                yield wrong(f"{path}.{name}", "", str(error))


def _is_https(url: str) -> bool:
    try:
        found = urlsplit(url)
        return found.scheme == "https" and bool(found.hostname) and found.port != 0
    except ValueError:
        return False


def version_for(hook: Body, operation: str, resource: Resource, versions: Sequence[str], subresource: str = "") -> str:
    """The version of the object that the webhook takes; empty if its rules do not match the write."""
    equivalent = hook.get("matchPolicy", "Equivalent") == "Equivalent"
    accepted = [resource.version, *(versions if equivalent else ())]
    for rule in hook.get("rules") or ():
        offered = rule.get("apiVersions") or ()
        version = next((version for version in accepted if version in offered or "*" in offered), "")
        if version and _is_about(rule, operation, resource, subresource):
            return version
    return ""


def _is_about(rule: Body, operation: str, resource: Resource, subresource: str) -> bool:
    """Whether a rule names operation, group, kind or subresource, and scope."""
    wanted = ((operation, rule.get("operations")), (resource.group, rule.get("apiGroups")))
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return (
        rule.get("scope", "*") in ("*", scope)
        and all({name, "*"} & {*(words or ())} for name, words in wanted)
        and any(_names(name, resource.plural, subresource) for name in rule.get("resources") or ())
    )


def _names(name: str, plural: str, subresource: str) -> bool:
    """Whether ``pods``, ``pods/status``, ``*/status``, ``pods/*`` (pods, too), ``*`` or ``*/*`` is about a write."""
    of, _, below = name.partition("/")
    return of in ("*", plural) and below in ("*", subresource)


def selector_of(found: Body | None) -> LabelSelector:
    """A label selector.  Raises ManifestError."""
    try:
        return convert(found or {}, LabelSelector)
    except msgspec.ValidationError as error:
        raise ManifestError(str(error)) from error


# -- Where it answers ------------------------------------------------------------------------------------------------


def place_of(client: Body, world: World) -> tuple[Place, str]:
    """Where the webhook answers, and what is in the way of asking there."""
    if url := client.get("url"):
        found = urlsplit(url)
        host, path = found.hostname or "", found.path + (f"?{found.query}" if found.query else "")
        why = "" if _is_here(host) else f"{host} is no address of this machine, and others are not asked"
        return Place(_numeric(host), found.port or 443, path or "/", host), why
    service = client.get("service") or {}
    namespace, name, port = service.get("namespace", ""), service.get("name", ""), service.get("port", 443)
    host, port = next(_addresses(world, namespace, name, port), ("", port))
    why = "" if host else f"service {namespace}/{name} has no address on this machine: simulated pods do not answer"
    return Place(_numeric(host), port, "/" + (service.get("path") or "").lstrip("/"), f"{name}.{namespace}.svc"), why


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _numeric(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host


def _addresses(world: World, namespace: str, name: str, port: int) -> Iterator[tuple[str, int]]:
    """Addresses of a service on this machine."""
    spec = part(world.body("", "services", namespace, name) or {}, "spec") or {}
    row: Body = next((one for one in spec.get("ports") or () if one.get("port") == port), {})
    named = ((host, port) for host in [spec.get("externalName", ""), *(spec.get("externalIPs") or ())])
    for found in (named, _endpoints(world, namespace, name, row), _pods(world, namespace, spec, row)):
        yield from ((host, number) for host, number in found if _is_here(host))


def _endpoints(world: World, namespace: str, name: str, row: Body) -> Iterator[tuple[str, int]]:
    for subset in (world.body("", "endpoints", namespace, name) or {}).get("subsets") or ():
        ports = [one["port"] for one in subset.get("ports") or () if one.get("name", "") == row.get("name", "")]
        yield from ((one.get("ip", ""), port) for one in subset.get("addresses") or () for port in ports)


def _pods(world: World, namespace: str, spec: Body, row: Body) -> Iterator[tuple[str, int]]:
    """Those of real pods, which alone have addresses of this machine."""
    target, selector = row.get("targetPort", row.get("port")), spec.get("selector")
    if not selector or not isinstance(target, int):
        return
    for pod in world.bodies("", "pods", namespace):
        if selects(LabelSelector(selector), meta(pod).get("labels") or {}):
            yield part(pod, "status", "podIP") or "", target
