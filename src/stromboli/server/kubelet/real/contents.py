"""What real containers are given: variables, and files of volumes, as Kubernetes resolves them."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from stromboli.cluster.body import Body, meta, part
from stromboli.errors import ShapeError
from stromboli.model.resources import quantity
from stromboli.server.kubelet.real.sandbox import give

Find = Callable[[str, str], Awaitable[Body | None]]
"""The object of a collection (``configmaps``, ``secrets``) and a name in the pod's namespace, None if there is none."""

_REFERENCE: Final = re.compile(r"\$(?:(\$)|\(([^()$]*)\))")
_BY_KEY: Final = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_FIELDS: Final = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
                  "status.hostIP", "status.podIP", "status.podIPs", "status.hostIPs")  # fmt: skip
_KINDS: Final = {"configMap": "configmaps", "secret": "secrets"}
MODE: Final = 0o644


def expanded(text: str, known: Mapping[str, str]) -> str:
    """``$(NAME)`` replaced where NAME is ``known``; ``$$`` is a dollar."""
    return _REFERENCE.sub(lambda one: "$" if one[1] else known.get(one[2], one[0]), text)


async def variables(pod: Body, container: Body, find: Find) -> dict[str, str]:
    """The container's variables, in order.  Raises ShapeError for what they need and cannot get."""
    found: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        kind, stated = next((name, one) for name, one in source.items() if name in ("configMapRef", "secretRef"))
        data = await _data(kind.removesuffix("Ref"), stated, find)
        found |= {source.get("prefix", "") + key: text.decode(errors="replace") for key, text in data.items()}
    for one in container.get("env") or ():
        origin = one.get("valueFrom")
        text = expanded(str(one.get("value") or ""), found) if not origin else await _from(pod, container, origin, find)
        if text is not None:
            found[one["name"]] = text
    return found


async def _from(pod: Body, container: Body, origin: Body, find: Find) -> str | None:
    if "fieldRef" in origin:
        return field(pod, origin["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in origin:
        return amount(pod, container, origin["resourceFieldRef"])
    kind, stated = next((name, one) for name, one in origin.items() if name.endswith("KeyRef"))
    data = await _data(kind.removesuffix("KeyRef"), stated, find)
    if stated["key"] not in data and not stated.get("optional"):
        raise ShapeError(f"couldn't find key {stated['key']} in {kind.removesuffix('KeyRef')} {stated.get('name')}")
    return data[stated["key"]].decode(errors="replace") if stated["key"] in data else None


async def _data(kind: str, stated: Body, find: Find) -> dict[str, bytes]:
    """What a ConfigMap or Secret holds."""
    name = stated.get("name") or stated.get("secretName") or ""
    body = await find(_KINDS[kind], name)
    if body is None:
        if stated.get("optional"):
            return {}
        raise ShapeError(f"{kind.lower()} {name!r} not found")
    plain = {} if kind == "secret" else {key: text.encode() for key, text in (body.get("data") or {}).items()}
    coded = body.get("data" if kind == "secret" else "binaryData") or {}
    return plain | {key: base64.b64decode(text) for key, text in coded.items()}


def field(pod: Body, path: str) -> str:
    """What the downward API says of a pod.  Raises ShapeError for other paths."""
    if found := _BY_KEY.fullmatch(path):
        return str((meta(pod).get(found[1]) or {}).get(found[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        of = meta(pod).get(path.rpartition(".")[2]) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(of.items()))
    if path not in _FIELDS:
        raise ShapeError(f"fieldPath {path} is not supported")
    value = part(pod, *path.split("."))
    return ",".join(one["ip"] for one in value) if isinstance(value, list) else str(value or "")


def amount(pod: Body, container: Body, stated: Body) -> str:
    """What a container requests or may take, in units of the divisor, rounded up."""
    named = stated.get("containerName")
    found = next((one for one in pod["spec"]["containers"] if one["name"] == named), container)
    kind, _, name = stated["resource"].partition(".")
    value = (part(found, "resources", kind) or {}).get(name)
    divisor = str(stated.get("divisor") or "1")
    share = quantity.parse(value or "0") / quantity.parse("1" if divisor == "0" else divisor)
    return str(-(-share.numerator // share.denominator))


async def fill(pod: Body, volume: Body, folder: Path, find: Find) -> None:
    """Write a volume's files.  Raises ShapeError for kinds that are not there, and for missing sources."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, stated, usual in _sources(volume):
        if kind == "emptyDir":
            give(folder)
        for path, data, own in await _files(pod, volume["name"], kind, stated, find):
            _write(folder, path, data, own or stated.get("defaultMode") or usual)


def _sources(volume: Body) -> Iterator[tuple[str, Body, int]]:
    """Kind, spec, and the mode of its files unless they say otherwise; a volume without a source is an emptyDir."""
    kind, stated = next(((kind, said or {}) for kind, said in volume.items() if kind != "name"), ("emptyDir", {}))
    if kind != "projected":
        yield kind, stated, MODE
        return
    for source in stated.get("sources") or ():
        yield from ((one, said, stated.get("defaultMode") or MODE) for one, said in source.items())


async def _files(
    pod: Body, volume: str, kind: str, stated: Body, find: Find
) -> Sequence[tuple[str, bytes, int | None]]:
    """Path, content and mode of each file."""
    if kind in _KINDS:
        data = await _data(kind, stated, find)
        items = stated.get("items")
        if items is None:
            return [(key, text, None) for key, text in data.items()]
        if missing := [one["key"] for one in items if one["key"] not in data and not stated.get("optional")]:
            raise ShapeError(f"references non-existent {kind.lower()} key: {missing[0]}")
        return [(one["path"], data[one["key"]], one.get("mode")) for one in items if one["key"] in data]
    if kind == "downwardAPI":
        return list(_downward(pod, stated))
    if kind in ("emptyDir", "serviceAccountToken"):
        return []
    raise ShapeError(f"volume {volume!r}: {kind} is not there with --pods real; use emptyDir, configMap or secret")


def _downward(pod: Body, stated: Body) -> Iterator[tuple[str, bytes, int | None]]:
    for one in stated.get("items") or ():
        asked: Any = one.get("resourceFieldRef")
        text = amount(pod, {}, asked) if asked else field(pod, one["fieldRef"]["fieldPath"])
        yield one["path"], text.encode(), one.get("mode")


def inside(folder: Path, path: str) -> Path:
    """A path below ``folder``.  Raises ShapeError for one that leads out of it."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise ShapeError(f"path {path!r} leads out of its volume")
    return folder / pure


def _write(folder: Path, path: str, data: bytes, mode: int) -> None:
    file = inside(folder, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    file.chmod(mode & 0o777)
    give(file)
