"""Single owners of pods, read when their pods come: of whatever kind, and as far as we may."""

from __future__ import annotations

from typing import Any, Final

from stromboli.controllers.changes import Read
from stromboli.errors import ApiError
from stromboli.kube.client import Client
from stromboli.kube.resources import Resource, plain

REFUSED: Final = frozenset({400, 403, 404, 405})
"""Answers that are final: there is no such object or kind, or not for us."""


async def read_owner(client: Client, wanted: Read) -> tuple[dict[str, Any] | None, str]:
    """The object, or None and why it cannot be read.  Raises what may be tried again."""
    resource = Resource(wanted.api_version, wanted.plural, wanted.kind, True, plain)
    try:
        return await client.get(resource, wanted.name, wanted.namespace), ""
    except ApiError as error:
        if error.code not in REFUSED:
            raise
        return None, error.problem
