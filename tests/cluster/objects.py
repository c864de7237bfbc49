"""Objects for the tests of this folder, built through the reader of manifests."""

from __future__ import annotations

import json

from stromboli.cluster.objects import from_json
from stromboli.testing.builders import resources_of


def made(kind, metadata=None, /, **fields):
    """An object of ``kind`` from JSON; without a name it is ``x``."""
    return from_json(kind, json.dumps({"metadata": {"name": "x", **(metadata or {})}, **fields}).encode())


def pod(name="x", *, requests=None, spec=None, status=None, **metadata):
    """A pending pod of one container."""
    container = {"name": "c", "resources": resources_of(requests or {})}
    return made(
        "Pod",
        {"name": name, **metadata},
        spec={"containers": [container], **(spec or {})},
        status={"phase": "Pending", **(status or {})},
    )
