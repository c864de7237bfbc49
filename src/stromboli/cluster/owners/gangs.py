"""What an owner says of its pods: read from one object by the row of its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from stromboli.api.fields import LabelSelector
from stromboli.api.scheduling import SubGroupPolicy
from stromboli.cluster.body import meta
from stromboli.cluster.decoding.amounts import COUNT, check_whole
from stromboli.cluster.decoding.templates import check_spec
from stromboli.cluster.kinds import OwnerReference
from stromboli.cluster.owners.kinds import OwnerKind, Role
from stromboli.cluster.usage import quota_usage
from stromboli.errors import ManifestError
from stromboli.model.resources.request import with_default_requests
from stromboli.model.spec import Amount, PodSpec, without_nulls
from stromboli.model.values.reading import convert

MOST_ROLES: Final = 1000
"""Most roles of one owner."""
_STEP: Final = re.compile(r"(?:\\.|[^.\\])+")


class Part(msgspec.Struct, frozen=True):
    """The pods of one role: ``each`` of ``copies``; ``late`` ones come once others run."""

    name: str
    copies: int
    each: int
    spec: PodSpec
    late: bool = False

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return self.copies * self.each


class Owner(msgspec.Struct, frozen=True):
    """One owner, as far as its pods' PodGroup follows from it; ``controller`` is its own owner.

    ``parts`` are its roles, in its order.
    """

    uid: str
    annotations: Mapping[str, str] = {}
    controller: OwnerReference | None = None
    parts: tuple[Part, ...] = ()
    minimum: int | None = None
    queue: str = ""
    priority: str = ""

    @property
    def prompt(self) -> tuple[Part, ...]:
        """The roles that start at once."""
        return tuple(part for part in self.parts if not part.late)

    @property
    def least(self) -> int:
        """How many pods must run at once: what is stated, else all that start at once."""
        return sum(part.pods for part in self.prompt) if self.minimum is None else self.minimum

    def role_minimums(self) -> dict[str, int]:
        """How many pods of each role must run at once; of none where fewer than all are asked for."""
        whole = self.least == sum(part.pods for part in self.prompt)
        return {part.name: part.pods for part in self.prompt if part.name} if whole else {}

    def sub_gangs(self, row: OwnerKind) -> tuple[SubGroupPolicy, ...]:
        """The gangs within the gang, where the kind has such."""
        if not row.sub_gang or not self.role_minimums():
            return ()
        return tuple(
            SubGroupPolicy(
                part.name,
                sub_group_size=part.each,
                min_sub_groups=part.copies,
                label_selector=LabelSelector({row.label: part.name}),
                match_label_keys=(row.sub_gang,),
            )
            for part in self.prompt
            if part.pods
        )

    def usage(self) -> dict[str, Amount]:
        """What the pods that must run at once take together, those of the first roles where fewer than all must."""
        left, counted = self.least, list[tuple[PodSpec, int]]()
        for part in self.prompt:
            counted.append((part.spec, min(part.pods, left)))
            left -= counted[-1][1]
        return quota_usage(counted)


def owner_of(row: OwnerKind | None, body: Mapping[str, Any]) -> Owner:
    """An owner out of its object.  Raises :class:`~stromboli.errors.ManifestError` for numbers that cannot be used."""
    found = meta(body)
    references = convert(found.get("ownerReferences") or [], tuple[OwnerReference, ...])
    controller = next((reference for reference in references if reference.controller), None)
    annotations = {key: str(text) for key, text in (found.get("annotations") or {}).items()}
    uid = str(found.get("uid", ""))
    if row is None:
        return Owner(uid, annotations, controller)
    parts = tuple(_parts(row, body))
    minimum = _value(body, row.minimum) if row.minimum else None
    if minimum is not None:
        check_whole(_whole(minimum, row.minimum), COUNT, row.minimum)
    return Owner(uid, annotations, controller, parts, minimum, _text(body, row.queue), _text(body, row.priority))


def _value(body: Any, path: str) -> Any:
    """The value at ``path``, whose steps are parted by dots; a dot within a step has a backslash before it."""
    for step in _STEP.findall(path):
        body = body.get(step.replace("\\", "")) if isinstance(body, Mapping) else None
    return body


def _text(body: Mapping[str, Any], paths: tuple[str, ...]) -> str:
    return next((text for path in paths if isinstance(text := _value(body, path), str) and text), "")


def _parts(row: OwnerKind, body: Mapping[str, Any]) -> Iterator[Part]:
    path, value, late_role = row.late
    staged = bool(path) and _value(body, path) == value
    elastic = bool(row.elastic) and _value(body, row.elastic) is True
    number = 0
    for role in row.roles:
        for name, entry in _entries(role, body):
            if number == MOST_ROLES:
                raise ManifestError(f"has more than {MOST_ROLES} roles", path=role.at)
            late = staged and (name == late_role if late_role else number > 0)
            late = late or bool(role.after and _value(entry, role.after))
            if (part := _part(role, name, entry, elastic, late)) is not None:
                yield part
                number += 1


def _entries(role: Role, body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The names of the roles and the values that describe them."""
    if not role.at:
        yield role.name.lstrip("="), body
        return
    found = _value(body, role.at[:-2])
    if role.at.endswith("{}") and isinstance(found, Mapping):
        yield from ((str(name).lower(), entry) for name, entry in found.items())
    elif isinstance(found, list):
        yield from ((_text(entry, (role.name,)), entry) for entry in found)


def _template(role: Role, entry: Any) -> Any:
    return _value(entry, role.template) or (_value(entry, role.instead) if role.instead else None)


def _part(role: Role, name: str, entry: Any, elastic: bool, late: bool) -> Part | None:
    template = _template(role, entry)
    if not isinstance(template, Mapping):
        return None
    paths = (role.least, *role.counts[1:]) if elastic and role.least else role.counts
    factors = [_count(entry, path) for path in paths]
    if factors and role.most and (most := _value(entry, role.most)) is not None:
        factors[-1] = min(factors[-1], _whole(most, role.most))
    copies, each = ([1, *factors] if len(factors) < 2 else factors) if factors else (1, 1)
    check_whole(copies * each, COUNT, role.at or role.template)
    spec = convert(without_nulls(dict(template)), PodSpec)
    check_spec(spec, role.template)
    return Part(name, copies, max(each - role.minus, 0), with_default_requests(spec), late)


def _count(entry: Any, path: str) -> int:
    found = _value(entry, path)
    return 1 if found is None else _whole(found, path)


def _whole(found: Any, path: str) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ManifestError(f"{found!r:.40} is not a number of pods", path=path)
    return found
