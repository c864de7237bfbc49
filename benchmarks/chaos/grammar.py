"""Broken requests, as bytes on a wire: malformed HTTP, JSON, protobuf, patches, selectors, definitions, watches."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final
from urllib.parse import quote

from benchmarks.chaos.samples import SAMPLES, definition
from benchmarks.chaos.values import ODD, WORDS, broken, odd

_JSON: Final = "application/json"
_PATCHES: Final[Sequence[str]] = WORDS["patches"]
_FORMS: Final[Sequence[str]] = WORDS["forms"]
_PAGES: Final[Sequence[str]] = (*WORDS["pages"], "/api/v1/namespaces/default/pods/" + "a" * 9000)
_SUBS: Final[Sequence[str]] = WORDS["subresources"]
_REVIEWS: Final[Sequence[str]] = WORDS["reviews"]
_QUERIES: Final[dict[str, Sequence[str]]] = WORDS["queries"]
_LONG: Final = {
    "labelSelector": ("x" * 3000 + "=1", f"a in ({','.join('v' * 5000)})", ",".join(f"k{n}=v" for n in range(2000))),
    "fieldSelector": ("metadata.name=" + "a" * 5000,),
    "limit": ("9" * 5000,),
    "continue": ("A" * 9000,),
}
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Trial:
    """What is sent, and whether an answer is due; a watch brings as much as comes in a moment."""

    what: str
    content: bytes
    answered: bool = True
    tls: bool = True
    watch: bool = False


def trial(dice: Random, token: str) -> Trial:
    """A broken request."""
    return dice.choice(_KINDS)(dice, token)


# -------------------------------------------------------------------------------------------- well-formed HTTP


def _request(
    token: str,
    method: str,
    target: str,
    body: bytes = b"",
    media: str = "application/json",
    accept: str = "",
    more: str = "",
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", f"Content-Type: {media}"]
    lines += [f"Accept: {accept}"] if accept else []
    lines += [more] if more else []
    lines += [f"Content-Length: {len(body)}"] if body or method in ("POST", "PUT", "PATCH") else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _json(value: Any, dice: Random) -> bytes:
    content = json.dumps(value, ensure_ascii=dice.random() < 0.5).encode()
    if dice.random() < 0.05:
        at = dice.randrange(len(content) or 1)
        content = content[:at] + dice.choice((b"", b"\xff", b"\\ud800", b"}", b"{" * 5000, b",")) + content[at + 1 :]
    return content


def _sample(dice: Random) -> tuple[str, Any]:
    url = dice.choice(list(SAMPLES))
    return url, SAMPLES[url]


def _renamed(body: Any, dice: Random) -> Any:
    """Some get another name, so that there are several objects."""
    if isinstance(body, dict) and isinstance(body.get("metadata"), dict) and dice.random() < 0.7:
        body["metadata"]["name"] = f"{body['metadata'].get('name')}-{dice.randrange(20)}"
    return body


def _query(dice: Random, *names: str) -> str:
    terms = []
    for name in names:
        if dice.random() < 0.4:
            values = (*_QUERIES.get(name, _QUERIES["numbers"]), *_LONG.get(name, ()))
            terms.append(f"{name}={quote(dice.choice(values))}")
    return ("?" + "&".join(terms)) if terms else ""


def _create(dice: Random, token: str) -> Trial:
    url, sample = _sample(dice)
    body = _renamed(broken(sample, dice, dice.choice((0, 1, 1, 2, 5))), dice)
    target = url + _query(dice, "fieldValidation", "dryRun", "fieldManager")
    return Trial(f"POST {target}", _request(token, "POST", target, _json(body, dice), accept=dice.choice(_FORMS)))


def _anything(dice: Random, token: str) -> Trial:
    url = dice.choice([*SAMPLES, *_REVIEWS])
    return Trial(f"POST {url}", _request(token, dice.choice(("POST", "PUT", "PATCH")), url, _json(odd(dice), dice)))


def _replace(dice: Random, token: str) -> Trial:
    url, sample = _sample(dice)
    body = broken(sample, dice, dice.choice((0, 1, 2)))
    target = _one(url, sample, dice) + dice.choice(("", "", "", f"/{dice.choice(_SUBS)}"))
    return Trial(f"PUT {target}", _request(token, "PUT", target, _json(body, dice)))


def _one(url: str, sample: Any, dice: Random) -> str:
    name = sample["metadata"]["name"]
    return f"{url}/{name}" if dice.random() < 0.5 else f"{url}/{name}-{dice.randrange(20)}"


def _patch(dice: Random, token: str) -> Trial:
    url, sample = _sample(dice)
    media = dice.choice((*_PATCHES, *_PATCHES, "application/x"))
    if media == _PATCHES[0]:
        body: Any = [_operation(sample, dice) for _ in range(dice.choice((0, 1, 3, 30)))]
    else:
        body = broken(sample, dice, dice.choice((1, 2, 4)))
        body = {key: body[key] for key in body if dice.random() < 0.7} if isinstance(body, dict) else body
    target = _one(url, sample, dice) + dice.choice(("", "", "", f"/{dice.choice(_SUBS)}"))
    target += _query(dice, "fieldManager", "force", "dryRun", "fieldValidation")
    return Trial(f"PATCH {target} ({media})", _request(token, "PATCH", target, _json(body, dice), media))


def _operation(sample: Any, dice: Random) -> Any:
    found = {
        "op": dice.choice(("add", "remove", "replace", "move", "copy", "test", "x")),
        "path": dice.choice(WORDS["paths"]),
        "from": dice.choice(WORDS["paths"]),
        "value": odd(dice),
    }
    return broken(found, dice, 1) if dice.random() < 0.2 else found


def _delete(dice: Random, token: str) -> Trial:
    url, sample = _sample(dice)
    target = (url if dice.random() < 0.1 else _one(url, sample, dice)) + _query(
        dice, "gracePeriodSeconds", "propagationPolicy", "dryRun", "labelSelector"
    )
    options = {
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
        "preconditions": {"uid": "1"},
    }
    body = _json(broken(options, dice, 1), dice) if dice.random() < 0.5 else b""
    return Trial(f"DELETE {target}", _request(token, "DELETE", target, body))


_WATCHES: Final = (
    "labelSelector", "fieldSelector", "resourceVersion", "allowWatchBookmarks", "sendInitialEvents", "timeoutSeconds",
)  # fmt: skip
_LOOKS: Final = ("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "includeObject")


def _look(dice: Random, token: str) -> Trial:
    url, sample = _sample(dice)
    whole = url.replace("/namespaces/default", "") if dice.random() < 0.3 else url
    target = whole if dice.random() < 0.7 else _one(url, sample, dice)
    target += _query(
        dice,
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "includeObject",
        "timeoutSeconds",
    )
    return Trial(f"GET {target}", _request(token, "GET", target, accept=dice.choice(_FORMS)))


def _watch(dice: Random, token: str) -> Trial:
    url, _ = _sample(dice)
    rest = _query(
        dice,
        "labelSelector",
        "fieldSelector",
        "resourceVersion",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "timeoutSeconds",
    )
    target = f"{url}?watch=1&{rest.removeprefix('?')}"
    return Trial(f"GET {target}", _request(token, "GET", target, accept=dice.choice(_FORMS)), watch=True)


def _page(dice: Random, token: str) -> Trial:
    target = dice.choice(_PAGES)
    method = dice.choice(("GET", "GET", "GET", "POST", "HEAD", "OPTIONS", "TRACE", "DELETE", "FOO"))
    answered = target.isascii() and target != "" and method != "HEAD"
    more = "Upgrade: h2c\r\nConnection: Upgrade" if dice.random() < 0.05 else ""
    content = _request(token, method, target, accept=dice.choice(_FORMS), more=more)
    return Trial(f"{method} {target}", content, answered and not more)


def _command(dice: Random, token: str) -> Trial:
    sub, body = dice.choice(list(WORDS["commands"].items()))
    target = f"/api/v1/namespaces/default/{sub}"
    return Trial(f"POST {target}", _request(token, "POST", target, _json(broken(body, dice, dice.randrange(3)), dice)))


def _define(dice: Random, token: str) -> Trial:
    plural = dice.choice(("gizmos", "widgets", "gears"))
    body = broken(definition(plural, plural.title()[:-1]), dice, dice.choice((1, 1, 2, 4)))
    if dice.random() < 0.5:
        return Trial("POST a definition", _request(token, "POST", _DEFINITIONS, _json(body, dice)))
    target = f"{_DEFINITIONS}/{plural}.example.com"
    media = dice.choice(("application/merge-patch+json", "application/apply-patch+yaml"))
    return Trial(
        f"PATCH {target}", _request(token, "PATCH", f"{target}?fieldManager=me&force=true", _json(body, dice), media)
    )


def _custom(dice: Random, token: str) -> Trial:
    url = f"/apis/example.com/v1/namespaces/default/{dice.choice(('gizmos', 'gears', 'widgets'))}"
    sample = SAMPLES["/apis/example.com/v1/namespaces/default/widgets"]
    body = _renamed(broken({**sample, "kind": odd(dice)} if dice.random() < 0.1 else sample, dice, 2), dice)
    if isinstance(body, dict):
        body.pop("kind", None)
    return Trial(f"POST {url}", _request(token, "POST", url, _json(body, dice)))


def _yaml(dice: Random, token: str) -> Trial:
    url, sample = _sample(dice)
    text = json.dumps(broken(sample, dice, 1), indent=1)
    text = dice.choice((text, text, text.replace('"', "", 5), *WORDS["no YAML"], "a: " * 3000))
    return Trial(f"POST {url} (YAML)", _request(token, "POST", url, text.encode(), "application/yaml"))


# ------------------------------------------------------------------------------------------------- protobuf


def _varint(number: int) -> bytes:
    found = b""
    while True:
        number, low = number >> 7, number & 0x7F
        if not number:
            return found + bytes([low])
        found += bytes([low | 0x80])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _message(dice: Random, depth: int) -> bytes:
    """Any message: fields of small numbers, texts and messages in them."""
    found = b""
    for _ in range(dice.randrange(4)):
        number = dice.randrange(1, 20)
        match dice.randrange(6):
            case 0:
                found += _varint(number << 3) + _varint(dice.choice((0, 1, 1 << 31, (1 << 64) - 1)))
            case 1:
                found += _varint(number << 3 | dice.choice((1, 5))) + dice.randbytes(8)
            case 2 if depth:
                found += _field(number, _message(dice, depth - 1))
            case 3:
                found += dice.randbytes(3)
            case _:
                found += _field(number, dice.choice((b"", b"a", b"1", b"\xff", b"default", b"100m")))
    return found


def _protobuf(dice: Random, token: str) -> Trial:
    url, sample = _sample(dice)
    head = _field(1, str(sample["apiVersion"]).encode()) + _field(2, str(sample["kind"]).encode())
    meta = _field(1, b"pb") if dice.random() < 0.6 else _message(dice, 3)
    body = _field(1, meta) + b"".join(_field(2, _message(dice, 6)) for _ in range(dice.randrange(3)))
    content = b"k8s\x00" + _field(1, head) + _field(2, body)
    if dice.random() < 0.3:
        at = dice.randrange(len(content))
        content = content[:at] + dice.randbytes(dice.randrange(3)) + content[at + dice.randrange(3) :]
    deep = b""
    for _ in range(2000 if dice.random() < 0.02 else 0):
        deep = _field(2, deep)
    content += deep
    return Trial(f"POST {url} (protobuf)", _request(token, "POST", url, content, "application/vnd.kubernetes.protobuf"))


# ------------------------------------------------------------------------------------------------- no HTTP


def _malformed(dice: Random, token: str) -> Trial:
    """HTTP that is none, or means two things at once."""
    long = ("GET / HTTP/1.1\r\n" + "A: b\r\n" * 5000 + "\r\n", "GET /" + "a" * 100_000 + " HTTP/1.1\r\n\r\n")
    many = ("GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n" * 50,)
    text = dice.choice((*WORDS["no HTTP"], *long, *many))
    content = text.replace("{token}", token).encode("utf-8", "surrogateescape")
    if dice.random() < 0.3:
        at = dice.randrange(len(content))
        content = content[:at] + dice.randbytes(2) + content[at:]
    return Trial(f"malformed {content[:60]!r}", content, answered=False)


def _raw(dice: Random, token: str) -> Trial:
    """Any bytes, over TLS or instead of it."""
    letters = dice.choice((string.printable.encode(), bytes(range(256))))
    content = bytes(dice.choices(letters, k=dice.choice((1, 10, 1000, 100_000))))
    return Trial(f"bytes {content[:30]!r}", content, answered=False, tls=dice.random() < 0.7)


def _odd_names(dice: Random, token: str) -> Trial:
    url, _ = _sample(dice)
    name = quote(
        str(dice.choice([one for one in ODD if isinstance(one, str | int)]))[:5000], safe=dice.choice(("", "/%"))
    )
    target = f"{url}/{name}" if dice.random() < 0.6 else url.replace("default", name, 1)
    target += dice.choice(("", "/status", "/a/b"))
    method = dice.choice(("GET", "DELETE", "PUT", "PATCH", "POST"))
    content = _request(token, method, target, b"{}" if method != "GET" else b"", dice.choice(_PATCHES))
    return Trial(f"{method} {target}", content, answered=target.isascii())


_WEIGHTS: Final[dict[Callable[[Random, str], Trial], int]] = {
    _create: 8, _patch: 6, _replace: 3, _delete: 3, _look: 4, _watch: 2, _define: 3, _custom: 2, _anything: 1, _page: 2,
    _command: 2, _yaml: 1, _protobuf: 2, _malformed: 2, _raw: 1, _odd_names: 1,
}  # fmt: skip
_KINDS: Final = tuple(kind for kind, weight in _WEIGHTS.items() for _ in range(weight))
