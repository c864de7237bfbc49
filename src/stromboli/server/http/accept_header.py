"""What a client says that it takes: its Accept header, read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Offer(NamedTuple):
    """A media type, e.g. ``application/json``, and what stands behind it, e.g. ``{"as": "Table", "v": "v1"}``."""

    media: str
    words: Mapping[str, str]


def offers(accept: str) -> Iterator[Offer]:
    """The offers of a header in their order; weights are not heeded, as clients of Kubernetes name the best first."""
    for offer in accept.split(","):
        media, *words = (part.strip() for part in offer.split(";"))
        yield Offer(media, {name: value for name, _, value in (word.partition("=") for word in words)})
