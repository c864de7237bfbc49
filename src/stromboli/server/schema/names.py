"""Which names, labels and annotations objects may bear, with the texts that Kubernetes refuses others with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stromboli.cluster.body import Body, meta
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import Cause, required, wrong

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"

_LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    f"start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_LABEL}(\\.{_LABEL})*')"
)
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_DNS_1035_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    f"character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_DNS_1035}')"
)
_KEY_TEXT: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

_DNS_1035_FORM: Final = re.compile(_DNS_1035)
_LABEL_FORM: Final = re.compile(_LABEL)
_SUBDOMAIN_FORM: Final = re.compile(_SUBDOMAIN)
_RULES: Final = {
    ("", "namespaces"): (_LABEL_FORM, 63, _LABEL_TEXT),
    ("", "services"): (_DNS_1035_FORM, 63, _DNS_1035_TEXT),
}
_SUBDOMAIN_RULE: Final = (_SUBDOMAIN_FORM, 253, _SUBDOMAIN_TEXT)
_KEY: Final = re.compile(rf"(?:{_SUBDOMAIN}/)?{_QUALIFIED}")
_VALUE: Final = re.compile(f"({_QUALIFIED})?")
_MOST_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all annotations of an object together."""


def wrong_names(resource: Resource, body: Body) -> Iterator[Cause]:
    """What is wrong with the name, the labels and the annotations of an object."""
    found = meta(body)
    name = found.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from _wrong_name(resource, name)
    yield from wrong_marks(body)


def wrong_marks(body: Body) -> Iterator[Cause]:
    """What is wrong with the labels and the annotations of an object."""
    found = meta(body)
    yield from wrong_labels(found.get("labels") or {}, "metadata.labels")
    annotations = found.get("annotations") or {}
    for key in annotations:
        yield from _wrong_key(key.lower(), "metadata.annotations")
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MOST_ANNOTATIONS:
        told = f"Too long: may not be more than {_MOST_ANNOTATIONS} bytes"
        yield Cause("metadata.annotations", "FieldValueTooLong", told)


def no_dns_1035(text: str) -> str:
    """Why a text is no DNS-1035 label; empty if it is one."""
    return "" if len(text) <= _LONGEST_LABEL and _DNS_1035_FORM.fullmatch(text) else _DNS_1035_TEXT


def no_label(text: str) -> str:
    """Why a text is no RFC 1123 label; empty if it is one."""
    return "" if len(text) <= _LONGEST_LABEL and _LABEL_FORM.fullmatch(text) else _LABEL_TEXT


def no_subdomain(text: str) -> str:
    """Why a text is no RFC 1123 subdomain; empty if it is one."""
    return "" if len(text) <= _LONGEST_NAME and _SUBDOMAIN_FORM.fullmatch(text) else _SUBDOMAIN_TEXT


def no_label_key(text: str) -> str:
    """Why a text is no key of a label; empty if it is one."""
    prefix, _, name = text.rpartition("/")
    if len(prefix) > _LONGEST_NAME:
        return "prefix part must be no more than 253 bytes"
    if len(name) > _LONGEST_LABEL:
        return "name part must be no more than 63 bytes"
    return "" if _KEY.fullmatch(text) else _KEY_TEXT


def no_label_value(text: str) -> str:
    """Why a text is no value of a label; empty if it is one."""
    if len(text) > _LONGEST_LABEL:
        return "must be no more than 63 bytes"
    return "" if _VALUE.fullmatch(text) else _VALUE_TEXT


def _wrong_key(key: str, path: str) -> Iterator[Cause]:
    if told := no_label_key(key):
        yield wrong(path, key, told)


def _wrong_name(resource: Resource, name: str) -> Iterator[Cause]:
    if resource.group == "rbac.authorization.k8s.io":
        if "/" in name or "%" in name or name in (".", ".."):
            yield wrong("metadata.name", name, "may not contain '/' or '%'")
        return
    pattern, most, text = _RULES.get(resource.collection, _SUBDOMAIN_RULE)
    if len(name) > most:
        yield Cause("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": must be no more than {most} bytes')
    elif not pattern.fullmatch(name):
        yield wrong("metadata.name", name, text)


def wrong_labels(labels: dict[str, str], path: str) -> Iterator[Cause]:
    """What is wrong with labels."""
    for key, value in labels.items():
        yield from _wrong_key(key, path)
        if told := no_label_value(value):
            yield wrong(path, value, told)
