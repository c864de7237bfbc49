"""Three of the four kinds of patches: JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import jsonpatch
import jsonpointer

from stromboli.cluster.body import Body, encode
from stromboli.errors import ApiFailure
from stromboli.server.schema.schema import Schema
from stromboli.server.status_errors import bad_request

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

MOST_OPERATIONS: Final = 10_000
"""Operations of a JSON patch."""
MOST_COPIED: Final = 3 << 20
"""Bytes that the copies of a JSON patch may add: kube-apiserver's JSONPatchMaxCopyBytes."""
_MAP: Final = "map[string]interface {}"
_DIRECTIVE: Final = "$patch"
_DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_RETAIN: Final = "$retainKeys"


def json_patched(body: Body, patch: Any) -> Body:
    """The object after a JSON patch (RFC 6902)."""
    if not isinstance(patch, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    if len(patch) > MOST_OPERATIONS:
        told = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(patch)}"
        raise ApiFailure(413, "RequestEntityTooLarge", f"Request entity too large: {told}")
    try:
        return _mapping(_after(jsonpatch.JsonPatch(patch), deepcopy(body)))
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise _rejected() from error


def _after(patch: jsonpatch.JsonPatch, value: Any) -> Any:
    """The value after each operation; copies may add so much alone, as each of them could double it."""
    copied = 0
    for operation in patch.patch:
        if operation.get("op") == "copy":
            copied += len(encode(jsonpointer.JsonPointer(str(operation.get("from", ""))).resolve(value)))
            if copied > MOST_COPIED:
                raise _rejected()
        value = jsonpatch.JsonPatch([operation]).apply(value, in_place=True)
    return value


def _rejected() -> ApiFailure:
    return ApiFailure(422, "Invalid", "the server rejected our request due to an error in our request")


def read_patch(patch: Any, media: str) -> Body:
    """A merge patch or strategic merge patch, which must be an object."""
    if isinstance(patch, dict):
        return patch
    raise _undecodable({list: "array", str: "string", bool: "bool"}.get(type(patch), "number"), _MAP, media)


def _undecodable(given: str, wanted: str, media: str = JSON_PATCH) -> ApiFailure:
    told = f"json: cannot unmarshal {given} into Go value of type {wanted}"
    return bad_request(told if media == STRATEGIC_PATCH else f"error decoding patch: {told}")


def _mapping(value: Any) -> Body:
    if not isinstance(value, dict):
        raise bad_request("the patch does not leave an object")
    return value


def strategic_patched(schema: Schema | None, value: Any, patch: Any) -> Any:
    """The value after a strategic merge patch: lists that the schema gives a merge key are merged by it."""
    if not isinstance(patch, Mapping):
        return patch
    if patch.get(_DIRECTIVE) == "replace":
        return _clean({key: inner for key, inner in patch.items() if key != _DIRECTIVE})
    if patch.get(_DIRECTIVE) == "delete":
        return {}
    result = _retained(dict(value) if isinstance(value, Mapping) else {}, patch.get(_RETAIN))
    for key, inner in patch.items():
        _merge_field(schema, result, key, inner)
    for key, order in patch.items():
        if key.startswith(_ORDER):
            _reorder(schema, result, key.removeprefix(_ORDER), order)
    return result


def _retained(value: Body, keys: Any) -> Body:
    """The fields of ``value`` that a directive names; all of them where there is no such directive."""
    among = _identities(keys)
    return {key: inner for key, inner in value.items() if key in among} if isinstance(keys, list) else value


def _merge_field(schema: Schema | None, result: Body, key: str, patch: Any) -> None:
    if key.startswith(_DELETE_FROM_LIST):
        name = key.removeprefix(_DELETE_FROM_LIST)
        gone = _identities(patch)
        result[name] = [item for item in result.get(name) or () if _identity(item) not in gone]
    elif key.startswith("$"):
        return
    elif patch is None:
        result.pop(key, None)
    else:
        part = schema.field(key) if schema is not None else None
        result[key] = _merge_value(part, result.get(key), patch)


def _merge_value(schema: Schema | None, value: Any, patch: Any) -> Any:
    if isinstance(patch, Mapping):
        replaced = schema is not None and "replace" in schema.strategy.split(",")
        return _clean(patch) if replaced else strategic_patched(schema, value, patch)
    if not isinstance(patch, list) or schema is None or "merge" not in schema.strategy.split(","):
        return _clean(patch)
    old = value if isinstance(value, list) else []
    if schema.merge_key is None:
        known = _identities(old)
        return [*old, *(item for item in patch if _identity(item) not in known)]
    return _merge_list(schema, schema.merge_key, old, patch)


def _merge_list(schema: Schema, key: str, old: list[Any], patch: list[Any]) -> list[Any]:
    if any(map(_replaces, patch)):
        return [_clean(item) for item in patch if not _replaces(item)]
    result = list(old)
    first = {_identity(item.get(key)): at for at, item in reversed(list(enumerate(old)))}
    gone: set[Any] = set()
    for item in patch:
        name = _merge_name(item, key)
        if item.get(_DIRECTIVE) == "delete":
            gone.add(name)
        elif name in first:
            result[first[name]] = strategic_patched(schema.items, result[first[name]], item)
        else:
            first[name] = len(result)
            result.append(_clean(item))
    return [item for item in result if _identity(item.get(key)) not in gone] if gone else result


def _merge_name(item: Any, key: str) -> Any:
    if not isinstance(item, Mapping) or key not in item:
        raise bad_request(f"map: {item} does not contain declared merge key: {key}")
    return _identity(item[key])


def _replaces(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get(_DIRECTIVE) == "replace"


def _identity(item: Any) -> Any:
    """What finds an item again without looking at all others."""
    return item if isinstance(item, str) else encode(item)


def _identities(items: Any) -> frozenset[Any]:
    return frozenset(map(_identity, items)) if isinstance(items, list) else frozenset()


def _reorder(schema: Schema | None, result: Body, name: str, order: list[Any]) -> None:
    """Bring the items that ``order`` names into its order; others keep their places behind those they followed."""
    part = schema.field(name) if schema is not None else None
    items = result.get(name)
    if not isinstance(items, list) or part is None:
        return
    key = part.merge_key

    def identity(item: Any) -> Any:
        return item.get(key) if key is not None and isinstance(item, Mapping) else item

    ranks = {str(identity(item)): rank for rank, item in enumerate(order)}
    rank, placed = -1, []
    for item in items:
        rank = ranks.get(str(identity(item)), rank)
        placed.append((rank, item))
    result[name] = [item for _, item in sorted(placed, key=lambda pair: pair[0])]


def _clean(value: Any) -> Any:
    """What a patch adds, without directives and without nulls."""
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, Mapping):
        return {k: _clean(inner) for k, inner in value.items() if inner is not None and not k.startswith("$")}
    return value
