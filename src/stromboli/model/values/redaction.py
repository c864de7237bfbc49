"""What must not be shown: passwords and tokens in settings, logins in addresses, copies of objects in annotations.

What is shown in their place still says that something stands there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

HIDDEN: Final = "(hidden)"
"""Stands where a secret was."""

_SECRET: Final = r"passw(?:or)?d|passphrase|secret|token|credential|api[-_.]?key|private[-_.]?key"
_SECRET_KEY: Final = re.compile(_SECRET, re.IGNORECASE)
_FLAG: Final = re.compile(
    rf"(?<![\w.-])(--?[\w.-]{{0,64}}?(?:{_SECRET})[\w.-]{{0,64}}[= ]\s*)(?:\"[^\"]*\"|'[^']*'|[^\s\"']+)", re.IGNORECASE
)
"""A flag of a command line, with its value."""
_SECRET_TEXT: Final = re.compile(r"^[ ]{0,64}(?:- {1,64})?[\"']?kind[\"']? {0,64}: {0,64}[\"']?Secret\b", re.MULTILINE)
"""What tells a Secret written as YAML."""
_LOGIN: Final = re.compile(r"(?<=://)[^/?#\s\"']*@")
_PARAMETER: Final = re.compile(
    r"(?<=[?&])([\w.-]{0,64}?(?:password|secret|token|api_?key)[\w.-]{0,64}=)[^&#\s\"']+", re.IGNORECASE
)

_APPLIED: Final = re.compile(
    r"last-applied|^kapp\.k14s\.io/original|^objectset\.rio\.cattle\.io/applied", re.IGNORECASE
)
"""Keys under which kubectl and tools like it keep what was applied, all fields included, some of them compressed."""
_LONGEST: Final = 1 << 18
"""Kubernetes lets all annotations of an object have so many bytes together; a longer value is not searched."""


def is_secret(key: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_KEY.search(key) is not None


def without_logins(text: str) -> str:
    """``text`` with names and passwords in addresses, and secret parameters of queries, hidden."""
    return _PARAMETER.sub(rf"\g<1>{HIDDEN}", _LOGIN.sub(f"{HIDDEN}@", text))


def shown(key: str, value: object) -> object:
    """The value of the setting ``key`` as it may be shown; what is empty, or a switch, is no secret."""
    if isinstance(value, Mapping):
        return {name: shown(_setting(key, str(name), value), one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(_argument(key, before), one) for before, one in zip((None, *value), value, strict=False)]
    if is_secret(key) and value not in (None, "") and not isinstance(value, bool):
        return HIDDEN
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """``text`` without logins and without the values of secret flags."""
    return without_logins(_FLAG.sub(rf"\g<1>{HIDDEN}", text))


def _argument(key: str, before: object) -> str:
    """What an element of a list sets: after a flag without a value that flag, else what the list sets."""
    is_flag = isinstance(before, str) and before.startswith("-") and "=" not in before and " " not in before
    return str(before) if is_flag and not is_secret(key) else key


def _setting(key: str, name: str, siblings: Mapping[object, object]) -> str:
    """What ``name`` below ``key`` sets: an environment variable has its name in a field of its own.

    Everything in the contents of a Secret is one.
    """
    if is_secret(key):
        return key
    if siblings.get("kind") == "Secret" and name in ("data", "stringData"):
        return "secret"
    return str(siblings.get("name", name)) if name == "value" else name


def without_secrets(annotations: Mapping[str, str]) -> dict[str, str]:
    """``annotations`` with secrets hidden, and without those in which tools keep objects as they were applied."""
    return {key: _annotation(key, text) for key, text in annotations.items() if _APPLIED.search(key) is None}


def _annotation(key: str, text: str) -> str:
    """The text, or :data:`HIDDEN` where it is a secret or cannot be searched; JSON is looked through."""
    if is_secret(key) or len(text) > _LONGEST:
        return HIDDEN
    if not text.lstrip().startswith(("{", "[")):
        return HIDDEN if _SECRET_TEXT.search(text) else _text(text)
    try:
        found = msgspec.json.decode(text)
        safe = shown("", found)
    except msgspec.DecodeError:
        return HIDDEN if _SECRET_TEXT.search(text) else _text(text)
    except RecursionError:
        return HIDDEN
    return text if safe == found else msgspec.json.encode(safe).decode()
