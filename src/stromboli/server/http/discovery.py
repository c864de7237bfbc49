"""What the server tells clients about itself: versions, groups, kinds; group by group, or all at once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from stromboli.cluster.body import Body
from stromboli.server.schema.resources import Catalogue, Resource

VERSION: Final[Body] = {
    "major": "1",
    "minor": "33",
    "gitVersion": "v1.33.0+stromboli",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": "python",
}
"""The API's version: clients compare its minor with their own."""
_YIELDING: Final = frozenset({"scheduling.k8s.io"})
"""``kubectl get podgroups`` means the first group that has some: Volcano's, as on servers without Kubernetes' own."""
GROUP: Final = "apidiscovery.k8s.io"
"""The group of the form in which everything is told at once."""
AGGREGATED: Final = frozenset({"v2", "v2beta1"})
"""Its versions, which differ in nothing else: clients of 1.26 to 1.29 know the older one alone."""
_SUB_VERBS: Final = {
    "status": ("get", "patch", "update"),
    "scale": ("get", "patch", "update"),
    "finalize": ("update",),
    "log": ("get",),
}
_SUB_KINDS: Final = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}


def core_versions(address: str) -> Body:
    """Versions of the core group."""
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def groups(catalogue: Catalogue) -> list[str]:
    """All groups but the core, in the order in which they came, those last whose names are others', too."""
    found = dict.fromkeys(found.group for found in catalogue if found.group)
    return sorted(found, key=lambda group: group in _YIELDING)


def versions(catalogue: Catalogue, group: str) -> list[str]:
    """The versions of a group, the preferred one first."""
    return list(dict.fromkeys(found.version for found in catalogue if found.group == group))


def group_of(catalogue: Catalogue, group: str) -> Body:
    """One group."""
    known = [{"groupVersion": f"{group}/{one}", "version": one} for one in versions(catalogue, group)]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": known, "preferredVersion": known[0]}


def group_list(catalogue: Catalogue) -> Body:
    """All groups but the core."""
    known = [group_of(catalogue, group) for group in groups(catalogue)]
    plain = [{key: value for key, value in one.items() if key not in ("kind", "apiVersion")} for one in known]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": plain}


def resource_list(catalogue: Catalogue, group: str, version: str) -> Body:
    """The kinds of a version of a group, with their subresources."""
    found = [one for resource in _in(catalogue, group, version) for one in _listed(resource)]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": found}


def _in(catalogue: Catalogue, group: str, version: str) -> list[Resource]:
    found = [one for one in catalogue if (one.group, one.version) == (group, version)]
    return sorted(found, key=lambda one: one.plural)


def _listed(resource: Resource) -> Iterable[Body]:
    whole: Body = {
        "name": resource.plural,
        "singularName": resource.one,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        whole["shortNames"] = list(resource.short_names)
    if resource.categories:
        whole["categories"] = list(resource.categories)
    yield whole
    for name in resource.subresources:
        group, version, kind = _SUB_KINDS.get(name, (resource.group, resource.version, resource.kind))
        sub: Body = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
        if name in _SUB_KINDS:
            sub |= {"group": group, "version": version}
        yield {**sub, "kind": kind, "verbs": list(_SUB_VERBS.get(name, ("create",)))}


def aggregated(catalogue: Catalogue, version: str, *, core: bool) -> Body:
    """Everything about the core group, or about all others, in one document of one of the versions AGGREGATED."""
    names = [""] if core else groups(catalogue)
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [_version(catalogue, group, one) for one in versions(catalogue, group)],
        }
        for group in names
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": f"{GROUP}/{version}", "metadata": {}, "items": items}


def _version(catalogue: Catalogue, group: str, version: str) -> Body:
    found = [_described(resource) for resource in _in(catalogue, group, version)]
    return {"version": version, "resources": found, "freshness": "Current"}


def _described(resource: Resource) -> Body:
    whole: Body = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.one,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        whole["shortNames"] = list(resource.short_names)
    if resource.categories:
        whole["categories"] = list(resource.categories)
    if resource.subresources:
        whole["subresources"] = [_subresource(resource, name) for name in resource.subresources]
    return whole


def _subresource(resource: Resource, name: str) -> Body:
    group, version, kind = _SUB_KINDS.get(name, (resource.group, resource.version, resource.kind))
    return {
        "subresource": name,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": list(_SUB_VERBS.get(name, ("create",))),
    }


def root(catalogue: Catalogue) -> Body:
    """All addresses that lead on."""
    paths = ["/api", "/api/v1", "/apis"]
    by_group = groupby(sorted({(one.group, one.version) for one in catalogue if one.group}), key=lambda pair: pair[0])
    for group, pairs in by_group:
        paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for _, version in pairs)]
    return {"paths": [*paths, "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}
