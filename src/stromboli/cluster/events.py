"""What happens to a cluster, one object at a time: the only thing that a cluster's state is ever told."""

from __future__ import annotations

import msgspec

from stromboli.cluster.kinds import Object


class Event(msgspec.Struct, frozen=True, gc=False):
    """Something happened to ``object``, which is of ``kind`` (a key of :data:`~stromboli.cluster.kinds.KINDS`)."""

    kind: str
    object: Object


class Added(Event, frozen=True):
    """The object is new, or was there when the watching began."""


class Modified(Event, frozen=True):
    """The object has changed; ``object`` is how it stands now."""


class Deleted(Event, frozen=True):
    """The object is gone; ``object`` is how it stood last."""
