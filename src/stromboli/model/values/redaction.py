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

_SECRET_KEY: Final = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|api[-_.]?key|private[-_.]?key", re.IGNORECASE
)
_LOGIN: Final = re.compile(r"(?<=://)[^/?#\s\"']*@")
_PARAMETER: Final = re.compile(
    r"(?<=[?&])([\w.-]*(?:password|secret|token|api_?key)[\w.-]*=)[^&#\s\"']+", re.IGNORECASE
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
        return [shown(key, one) for one in value]
    if is_secret(key) and value not in (None, "") and not isinstance(value, bool):
        return HIDDEN
    return without_logins(value) if isinstance(value, str) else value


def _setting(key: str, name: str, siblings: Mapping[object, object]) -> str:
    """What ``name`` below ``key`` sets: an environment variable has its name in a field of its own."""
    if is_secret(key):
        return key
    return str(siblings.get("name", name)) if name == "value" else name


def without_secrets(annotations: Mapping[str, str]) -> dict[str, str]:
    """``annotations`` with secrets hidden, and without those in which tools keep objects as they were applied."""
    return {key: _annotation(key, text) for key, text in annotations.items() if _APPLIED.search(key) is None}


def _annotation(key: str, text: str) -> str:
    """The text, or :data:`HIDDEN` where it is a secret or cannot be searched; JSON is looked through."""
    if is_secret(key) or len(text) > _LONGEST:
        return HIDDEN
    if not text.lstrip().startswith(("{", "[")):
        return without_logins(text)
    try:
        found = msgspec.json.decode(text)
        safe = shown("", found)
    except msgspec.DecodeError:
        return without_logins(text)
    except RecursionError:
        return HIDDEN
    return text if safe == found else msgspec.json.encode(safe).decode()
