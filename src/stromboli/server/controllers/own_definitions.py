"""The definitions of our own kinds, read and checked once a process instead of once a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec

from stromboli.cluster.body import Body, encode, key_of
from stromboli.crds.manifests import definitions
from stromboli.server.schema.decoding import shaped
from stromboli.server.schema.definitions import COLLECTION
from stromboli.server.schema.resources import Catalogue
from stromboli.server.schema.validation import wrong_fields


def own_definitions() -> Iterator[Body]:
    """The definitions of our kinds in the form that reading gives, each a copy that belongs to its taker."""
    return map(msgspec.json.decode, _checked())


@cache
def _checked() -> tuple[bytes, ...]:
    """All definitions, encoded; raises ValueError for one that a cluster would refuse."""
    resource = Catalogue().stored()[COLLECTION]
    found = []
    for definition in definitions():
        body, findings = shaped(resource, definition)
        wrong = [*findings.unreadable, *findings.unknown, *findings.causes, *wrong_fields(resource, body, None)]
        if wrong:
            raise ValueError(f"{key_of(body)[1]} is no sound definition: {wrong[0]}")
        found.append(encode(body))
    return tuple(found)
