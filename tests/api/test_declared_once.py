"""What scheduling reads of our kinds is their declaration, or, where it reads a part, agrees with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from stromboli.api.fields import KUBERNETES
from stromboli.api.kinds import KINDS
from stromboli.cluster import kinds as read_in_part

READ = sorted(KINDS.keys() & read_in_part.KINDS.keys())

OTHERWISE = {
    "Job.metadata.namespace": "an object without a namespace is in default",
    "PodGroup.metadata.namespace": "an object without a namespace is in default",
    "Queue.spec.affinity": "the plugin nodegroup reads it itself, so that an odd one spoils no queue",
    "Numatopology.spec.resReserved": "kubelets write numbers, too",
}
"""Fields that are read in another form, or with another default, than they are declared with, and why."""


def bare(found: inspect.Type) -> inspect.Type:
    return found.type if isinstance(found, inspect.Metadata) else found


def is_kubernetes_own(found: inspect.Type) -> bool:
    return isinstance(found, inspect.Metadata) and KUBERNETES in (found.extra_json_schema or {})


def form(found: inspect.Type) -> str:
    """How a type is written, whatever classes are inside."""
    match bare(found):
        case inspect.StructType():
            return "object"
        case inspect.DictType() as plain:
            return f"map of {form(plain.value_type)}"
        case inspect.VarTupleType() as plain:
            return f"list of {form(plain.item_type)}"
        case inspect.UnionType() as plain:
            return " or ".join(sorted(map(form, plain.types)))
        case plain:
            return type(plain).__name__.removesuffix("Type").lower()


def structs(found: inspect.Type) -> list[inspect.StructType]:
    """The classes that a value of the type holds, right inside of it."""
    match bare(found):
        case inspect.StructType() as plain:
            return [plain]
        case inspect.DictType() as plain:
            return structs(plain.value_type)
        case inspect.VarTupleType() as plain:
            return structs(plain.item_type)
        case inspect.UnionType() as plain:
            return [one for inner in plain.types for one in structs(inner)]
    return []


def default(field: inspect.Field) -> Any:
    made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return msgspec.to_builtins(made)


def differences(part: inspect.StructType, whole: inspect.StructType, path: str) -> Iterator[tuple[str, str]]:
    """(field, what differs) between a class that reads some fields and the declaration."""
    if part.cls is whole.cls:
        return
    declared = {field.encode_name: field for field in whole.fields}
    for field in part.fields:
        here = f"{path}.{field.encode_name}"
        own = declared.get(field.encode_name)
        if own is None:
            yield here, "is not declared"
        elif not is_kubernetes_own(own.type):
            yield from _of_field(field, own, here)


def _of_field(field: inspect.Field, own: inspect.Field, here: str) -> Iterator[tuple[str, str]]:
    if form(field.type) != form(own.type):
        yield here, f"is read as {form(field.type)}, declared as {form(own.type)}"
    elif default(field) != default(own):
        yield here, f"is {default(field)!r} where it is absent, declared as {default(own)!r}"
    for inner, outer in zip(structs(field.type), structs(own.type), strict=False):
        yield from differences(inner, outer, here)


def found_differences(kind: str) -> dict[str, str]:
    part, whole = (inspect.type_info(table[kind].type) for table in (read_in_part.KINDS, KINDS))
    return dict(differences(part, whole, kind))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", READ)
def test_what_is_read_is_what_is_declared(kind: str) -> None:
    assert {path: text for path, text in found_differences(kind).items() if path not in OTHERWISE} == {}


def test_only_what_differs_is_excepted() -> None:
    assert {path for kind in READ for path in found_differences(kind)} == OTHERWISE.keys()


WHOLE = {"PodGroup": ("spec", "status"), "HyperNode": ("spec",), "NodeShard": ("spec",)}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in WHOLE.items() for field in fields])
def test_what_is_read_whole_is_the_declaration_itself(kind: str, field: str) -> None:
    read, declared = read_in_part.KINDS[kind].type(), KINDS[kind].type()
    assert type(getattr(read, field)) is type(getattr(declared, field))
