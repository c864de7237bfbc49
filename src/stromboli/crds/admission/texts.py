"""How Kubernetes words what is wrong with a field, and with a name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from stromboli.api.fields import DNS_LABEL, DNS_SUBDOMAIN, LONGEST_LABEL
from stromboli.model.names import LONGEST_NAME

_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL: Final = re.compile(DNS_LABEL)
_SUBDOMAIN: Final = re.compile(DNS_SUBDOMAIN)
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUALIFIED_TEXT: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def invalid(path: str, value: object, why: str) -> str:
    """A value that its field cannot hold."""
    return f"{path}: Invalid value: {_shown(value)}: {why}"


def required(path: str, why: str = "") -> str:
    """A field that must be given."""
    return f"{path}: Required value" + (f": {why}" if why else "")


def duplicate(path: str, value: object) -> str:
    """A value that stands twice."""
    return f"{path}: Duplicate value: {_shown(value)}"


def not_found(path: str, value: object) -> str:
    """A name that nothing bears."""
    return f"{path}: Not found: {_shown(value)}"


def unsupported(path: str, value: object, supported: Iterable[str]) -> str:
    """A value other than those that are known."""
    known = ", ".join(f'"{text}"' for text in sorted(supported))
    return f"{path}: Unsupported value: {_shown(value)}: supported values: {known}"


def together(errors: list[str]) -> str:
    """Several errors as one text: alone as it is, several in brackets, each once."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def qualified_name(name: str) -> list[str]:
    """What is wrong with a qualified name without a prefix."""
    if "/" in name:
        return _prefixed(name)
    if not name:
        return ["name part must be non-empty", _QUALIFIED_TEXT]
    found = [] if len(name) <= LONGEST_LABEL else [_too_long("name part ", LONGEST_LABEL)]
    return found if _QUALIFIED.fullmatch(name) else [*found, _QUALIFIED_TEXT]


def _prefixed(name: str) -> list[str]:
    prefix, _, rest = name.partition("/")
    if "/" in rest:
        form = _QUALIFIED_TEXT.removeprefix("name part ")
        return [f"a qualified name {form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = ["non-empty"] if not prefix else dns_subdomain(prefix)
    return [*(f"prefix part {problem}" for problem in problems), *qualified_name(rest)]


def dns_label(name: str) -> list[str]:
    """What is wrong with a DNS label."""
    found = [] if len(name) <= LONGEST_LABEL else [_too_long("", LONGEST_LABEL)]
    return found if _LABEL.match(name) else [*found, _LABEL_TEXT]


def dns_subdomain(name: str) -> list[str]:
    """What is wrong with a DNS subdomain."""
    found = [] if len(name) <= LONGEST_NAME else [_too_long("", LONGEST_NAME)]
    return found if _SUBDOMAIN.match(name) else [*found, _SUBDOMAIN_TEXT]


def listed(texts: Iterable[str]) -> str:
    """Texts as Volcano prints a list: ``[a b]``."""
    return f"[{' '.join(texts)}]"


def _too_long(what: str, most: int) -> str:
    return f"{what}must be no more than {most} {'bytes' if what else 'characters'}"


def _shown(value: object) -> str:
    return msgspec.json.encode(value).decode()
