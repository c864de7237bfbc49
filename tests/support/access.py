"""What programs ask of an API server, against what their roles grant them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stromboli.kube.transport import Request
from stromboli.live.installation.parts import Part

PATH = re.compile(r"/(?:api/v1|apis/([^/]+)/[^/]+)(?:/namespaces/[^/]+(?=/))?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?")
Uses = set[tuple[str, str, str]]


def used(requests: Iterable[Request], agent: str = "") -> Uses:
    """Group, resource and verb of every request, or those of one program."""
    found = set()
    for request in requests:
        if agent and request.headers["User-Agent"] != agent:
            continue
        match = PATH.fullmatch(request.path)
        assert match, request.path
        group, resource, name, below = match.groups()
        verb = {"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[request.method]
        if verb == "get" and not name:
            verb = "watch" if request.params.get("watch") else "list"
        found.add((group or "", f"{resource}/{below}" if below else resource, verb))
    return found


def granted(one: Part) -> Uses:
    """The same of all that a program is granted."""
    return {(grant.group, grant.resource, verb) for grant in (*one.granted, *one.own) for verb in grant.verbs}
