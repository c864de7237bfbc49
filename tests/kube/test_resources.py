"""Every resource that is a constant of a module names a kind that the embedded server serves, in the same scope."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import pytest

import stromboli.cli
import stromboli.kube
import stromboli.live
from stromboli.kube.resources import Resource
from stromboli.server.api import Api

PACKAGES: Final = (stromboli.kube, stromboli.live, stromboli.cli)


def _in(value: object) -> Iterator[Resource[Any]]:
    if isinstance(value, Resource):
        yield value
    elif isinstance(value, Mapping):
        yield from _in(tuple(value.values()))
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from _in(each)


def _asked_for(package: ModuleType) -> Iterable[Resource[Any]]:
    yield from _in(tuple(vars(package).values()))
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            yield from _in(tuple(vars(importlib.import_module(found.name)).values()))


ASKED_FOR: Final = sorted(
    {each._replace(decode=str) for package in PACKAGES for each in _asked_for(package)}, key=lambda each: each[:4]
)


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


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_each_package_has_constants_that_name_kinds(package: ModuleType) -> None:
    assert ("v1", "pods") in {(each.api_version, each.plural) for each in _asked_for(package)}


def test_scopes_of_our_kinds() -> None:
    """The server reads these scopes from the same table, so the test above cannot detect a wrong one."""
    ours = {each.plural for each in ASKED_FOR if ".volcano.sh/" in each.api_version and not each.namespaced}
    assert ours == {"hypernodes", "nodeshards", "numatopologies", "queues"}
