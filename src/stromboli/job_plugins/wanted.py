"""Objects that plugins want, and what makes an object that is there say what is wanted."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from stromboli.job_plugins.edits import Json

CONFIG_MAPS: Final = "configmaps"
SECRETS: Final = "secrets"
SERVICES: Final = "services"
NETWORK_POLICIES: Final = "networkpolicies"


class Sort(NamedTuple):
    """A kind that plugins may want: ``part`` is what they say of it.

    To a part that is ``filled`` the API server adds fields; every other stands as it was written.
    """

    api_version: str
    kind: str
    part: str
    filled: bool = False


SORTS: Final[Mapping[str, Sort]] = {
    CONFIG_MAPS: Sort("v1", "ConfigMap", "data"),
    SECRETS: Sort("v1", "Secret", "data"),
    SERVICES: Sort("v1", "Service", "spec", filled=True),
    NETWORK_POLICIES: Sort("networking.k8s.io/v1", "NetworkPolicy", "spec"),
}
"""By resource."""

SSH_KEYS: Final = "ssh keys"
"""A maker of content: a Secret's pair of keys."""


class Wanted(NamedTuple):
    """An object in the job's namespace: its resource, its name, and all that its one part says.

    ``maker`` names what adds to it that does not follow from the job; :data:`SSH_KEYS` is the one there is.
    """

    resource: str
    name: str
    content: Mapping[str, Any]
    maker: str = ""

    @property
    def sort(self) -> Sort:
        """Its kind."""
        return SORTS[self.resource]

    def manifest(self, namespace: str, owner: Mapping[str, Any], made: Mapping[str, str]) -> Json:
        """The object as it is created for the job ``owner``, with what its maker has ``made``."""
        sort = self.sort
        metadata = {"name": self.name, "namespace": namespace, "ownerReferences": [dict(owner)]}
        content = {**self.content, **made}
        return {"apiVersion": sort.api_version, "kind": sort.kind, "metadata": metadata, sort.part: content}

    def difference(self, found: Mapping[str, Any], made: Mapping[str, str]) -> Json:
        """The merge patch that makes ``found`` say what is wanted; empty if it does."""
        sort = self.sort
        there = found.get(sort.part)
        wanted = {**self.content, **made}
        patch = _patch(there if isinstance(there, Mapping) else {}, wanted, filled=sort.filled)
        return {sort.part: patch} if patch else {}


def _patch(there: Mapping[str, Any], wanted: Mapping[str, Any], *, filled: bool) -> Json:
    patch: Json = {} if filled else {key: None for key in there if key not in wanted}
    for key, value in wanted.items():
        before = there.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := _patch(before, value, filled=False):
                patch[key] = inner
        elif not _says(before, value, filled=filled):
            patch[key] = value
    return patch


def _says(there: object, wanted: object, *, filled: bool) -> bool:
    """Whether ``there`` is as ``wanted``; what the API server leaves out is empty."""
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        rows = there if isinstance(there, list | tuple) else ()
        return len(rows) == len(wanted) and all(_says(*pair, filled=filled) for pair in zip(rows, wanted, strict=True))
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        return not _patch(there, wanted, filled=filled)
    return (there or None) == (wanted or None)


def config_map(name: str, data: Mapping[str, str]) -> Wanted:
    """A ConfigMap of texts."""
    return Wanted(CONFIG_MAPS, name, data)


def secret(name: str, data: Mapping[str, str], maker: str = "") -> Wanted:
    """A Secret of texts."""
    return Wanted(SECRETS, name, {key: encoded(text) for key, text in data.items()}, maker)


def service(name: str, spec: Mapping[str, Any]) -> Wanted:
    """A Service."""
    return Wanted(SERVICES, name, spec)


def network_policy(name: str, spec: Mapping[str, Any]) -> Wanted:
    """A NetworkPolicy."""
    return Wanted(NETWORK_POLICIES, name, spec)


def encoded(text: str) -> str:
    """A text as Secrets hold it."""
    return base64.b64encode(text.encode()).decode()
