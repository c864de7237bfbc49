"""Objects of our kinds out of plain values, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from stromboli.api.fields import Resource
from stromboli.errors import ManifestError
from stromboli.model.spec import without_nulls
from stromboli.model.values.reading import convert

_Type = TypeVar("_Type", bound=Resource)


def read(kind: type[_Type], value: Mapping[str, object]) -> _Type:
    """``value`` as an object of ``kind``; nulls count as absent, rules are not checked.

    Raises :class:`~stromboli.errors.ManifestError` naming object and field for a value of another type than the
    field's.
    """
    try:
        return convert(without_nulls(value), kind)
    except ManifestError as error:
        raise ManifestError(error.problem, object=_title(kind, value), path=error.path) from error


def _title(kind: type[Resource], value: Mapping[str, object]) -> str:
    metadata = value.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return f"{kind.__name__} " + "/".join(str(named[key]) for key in ("namespace", "name") if named.get(key))
