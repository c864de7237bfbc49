"""Our own kinds' rules at the server's border, in the place of webhooks; texts as kubectl shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from stromboli.api.kinds import JOBS
from stromboli.cluster.body import Body
from stromboli.crds import admission
from stromboli.crds.admission import HOOKS, Object, Settings
from stromboli.errors import ApiFailure
from stromboli.job_plugins.registry import offered
from stromboli.server.admission.admission import Rule, World
from stromboli.server.schema.resources import Resource

REFILLED: Final = frozenset({JOBS})
"""Kinds that are filled in when they are changed, too: a list of tasks that is applied again leaves out again what was
filled into it, and no other change than what may change shall be seen in that."""


class _Sight:
    """The server's objects as admission looks them up."""

    def __init__(self, world: World) -> None:
        self._world = world

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """The object of that name, or None."""
        plural, _, group = resource.partition(".")
        return self._world.body(group, plural, namespace, name)

    def list(self, resource: str) -> Iterable[Object]:
        """All objects of a resource."""
        plural, _, group = resource.partition(".")
        return self._world.bodies(group, plural)


class OwnKinds(Rule):
    """The rules of jobs, queues, PodGroups and their like."""

    def __init__(self) -> None:
        self._settings = Settings(job_plugins=offered().names, scales_queues=True)

    def admit(self, resource: Resource, body: Body, old: Body | None, world: World) -> Body:
        """The object with its defaults, if nothing refuses it."""
        if resource.title not in HOOKS:
            return body
        sight = _Sight(world)
        if old is None or resource.title in REFILLED:
            body = _plain(admission.default(resource.title, body, sight, self._settings))
        _refuse(resource, admission.validate(resource.title, body, old, sight, self._settings))
        return body

    def admit_deletion(self, resource: Resource, body: Body, world: World) -> None:
        """Raise if the kind's rules keep the object."""
        if resource.title in HOOKS:
            _refuse(resource, admission.validate(resource.title, None, body, _Sight(world), self._settings))


def _plain(value: Mapping[str, object]) -> Body:
    return dict(value)


def _refuse(resource: Resource, texts: list[str]) -> None:
    if texts:
        raise ApiFailure(400, "", admission.denied(resource.title, texts))
