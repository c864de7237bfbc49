"""Whatever the processes ask an API server for by a constant is something that a server serves, in that place."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pytest

import stromboli
from stromboli.kube.resources import Resource
from stromboli.server.api import Api

PACKAGES: Final = ("stromboli.kube.", "stromboli.live.", "stromboli.cli.")


def _in(value: object) -> Iterator[Resource[Any]]:
    if isinstance(value, Resource):
        yield value
    elif isinstance(value, Mapping):
        yield from _in(tuple(value.values()))
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from _in(each)


def _asked_for() -> Iterable[Resource[Any]]:
    for found in pkgutil.walk_packages(stromboli.__path__, "stromboli."):
        if found.name.startswith(PACKAGES) and not found.name.endswith("__main__"):
            yield from _in(tuple(vars(importlib.import_module(found.name)).values()))


ASKED_FOR: Final = sorted({each._replace(decode=str) for each in _asked_for()}, key=lambda each: each[:4])


@pytest.fixture(scope="module")
def api() -> Api:
    """A server on which our kinds are defined."""
    later: list[Callable[[], None]] = []
    return Api(later.append)


@pytest.mark.parametrize("asked", ASKED_FOR, ids=lambda each: f"{each.api_version}/{each.plural}")
def test_a_kind_is_served_where_it_is_asked_for(api: Api, asked: Resource[Any]) -> None:
    group, _, version = asked.api_version.rpartition("/")
    served = api.catalogue.find(group, version, asked.plural)
    assert served is not None
    assert (served.kind, served.namespaced) == (asked.kind, asked.namespaced)
