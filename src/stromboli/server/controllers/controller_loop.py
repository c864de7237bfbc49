"""What looking after a cluster's objects is made of: one after the other, each for itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from stromboli.cluster.body import Key
from stromboli.errors import ApiFailure
from stromboli.server.schema.resources import Resource
from stromboli.server.verbs.writing import Deletion, Options, Writer

T = TypeVar("T")
R = TypeVar("R")
_LOG: Final = logging.getLogger(__name__)
_LEFT: Final = (403, 404, 409)
"""Answers to a deletion of what must stay, is gone, or is another by now."""


def one_by_one(what: str, items: Iterable[T], work: Callable[[T], R]) -> list[tuple[T, R]]:
    """Items and what ``work`` makes of them; one of which it raises is logged by its name, and left out."""
    done = []
    for item in items:
        try:
            done.append((item, work(item)))
        except ApiFailure as failure:
            _LOG.warning("%s %s: %s", what, item, failure)
        except Exception:  # noqa: BLE001  # one object's trouble must not be all others'
            _LOG.exception("%s %s", what, item)
    return done


def delete_if_possible(writer: Writer, resource: Resource, key: Key, how: Deletion) -> None:
    """Delete an object, unless it is not there any more, or not to be deleted."""
    try:
        writer.delete(resource, key, how, Options())
    except ApiFailure as failure:
        if failure.code not in _LEFT:
            raise
