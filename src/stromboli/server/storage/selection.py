"""Label and field selectors as they stand in an address: ``app=web,tier in (a, b),!old`` and ``spec.nodeName!=``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from stromboli.cluster.body import Body, meta, part
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import bad_request

MOST_TERMS: Final = 1_000
"""Terms of a selector in an address: each is held against every object of a list."""
Test = Callable[[Body], bool]

_TERM: Final = re.compile(
    r"""\s*+(?:!\s*+(?P<absent>[^\s!=,()<>]++)
        |(?P<key>[^\s!=,()<>]++)(?:\s*+(?P<op>==|!=|=|<|>)\s*+(?P<value>[^\s,()]*+)
        |\s++(?P<set>in|notin)\s*+\((?P<values>[^)]*+)\))?)\s*+(?:,|$)""",
    re.VERBOSE,
)
_FIELD: Final = re.compile(r"(?P<path>[^!=]+)(?P<op>!=|==|=)(?P<value>.*)")

_INVOLVED: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Final = {
    ("", "pods"): {
        "spec.nodeName": "", "spec.restartPolicy": "", "spec.schedulerName": "", "spec.serviceAccountName": "",
        "spec.hostNetwork": "false", "status.phase": "", "status.podIP": "", "status.nominatedNodeName": "",
    },
    ("", "nodes"): {"spec.unschedulable": "false"},
    ("", "namespaces"): {"status.phase": ""},
    ("", "secrets"): {"type": ""},
    ("", "events"): {
        **{f"involvedObject.{name}": "" for name in _INVOLVED},
        "reason": "", "reportingComponent": "", "source": "", "type": "",
    },
    ("batch", "jobs"): {"status.successful": "0"},
    ("apps", "replicasets"): {"status.replicas": "0"},
}  # fmt: skip
"""Fields that may be selected by, with the value of a field that is not set; name and namespace always may."""


class Requirement(NamedTuple):
    """One term of a label selector; one without an operator never holds."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets it."""
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
        return value is not None and bool(self.operator) and _compares(self.operator, value, self.values)


def _compares(operator: str, value: str, bounds: frozenset[str]) -> bool:
    try:
        left, right = int(value), int(next(iter(bounds)))
    except ValueError:
        return False
    return left < right if operator == "<" else left > right


def requirements(text: str) -> tuple[Requirement, ...]:
    """The terms of a label selector; a text that is none, or of too many, is a bad request."""
    found = tuple(islice(_terms(text), MOST_TERMS + 1)) if text.strip() else ()
    if len(found) > MOST_TERMS:
        raise bad_request(f"unable to parse requirement: there are more than {MOST_TERMS} of them")
    return found


def _terms(text: str) -> Iterator[Requirement]:
    at = 0
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None or found.end() == at:
            raise bad_request(
                f'unable to parse requirement: found "{text[at:]}", expected: identifier, or set operation'
            )
        yield _requirement(found)
        at = found.end()


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["absent"], "absent", frozenset())
    if found["set"]:
        return Requirement(found["key"], found["set"], frozenset(value.strip() for value in found["values"].split(",")))
    if not found["op"]:
        return Requirement(found["key"], "exists", frozenset())
    operator = {"=": "in", "==": "in", "!=": "notin"}.get(found["op"], found["op"])
    return Requirement(found["key"], operator, frozenset({found["value"]}))


def of_selector(selector: Mapping[str, Any] | None) -> tuple[Requirement, ...] | None:
    """The terms of a LabelSelector object; None, which selects nothing, if there is none."""
    if selector is None:
        return None
    plain = [Requirement(key, "in", frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()]
    names = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
    return (*plain, *(
        Requirement(term.get("key", ""), names.get(term.get("operator", ""), ""), frozenset(term.get("values") or ()))
        for term in selector.get("matchExpressions") or ()
    ))  # fmt: skip


def matches(terms: tuple[Requirement, ...], labels: Mapping[str, str] | None) -> bool:
    """Whether labels meet all terms."""
    return all(term.holds(labels or {}) for term in terms)


def selection(resource: Resource, labels: str, fields: str) -> Test | None:
    """A test for objects, or None where everything is wanted."""
    terms, tests = requirements(labels), list(_field_tests(resource, fields))
    if not terms and not tests:
        return None
    return lambda body: matches(terms, meta(body).get("labels")) and all(test(body) for test in tests)


def _field_tests(resource: Resource, fields: str) -> Iterator[Test]:
    terms = [one.strip() for one in fields.split(",") if one.strip()]
    if len(terms) > MOST_TERMS:
        raise bad_request(f"invalid field selector: there are more than {MOST_TERMS} terms")
    for term in terms:
        found = _FIELD.fullmatch(term)
        if found is None:
            raise bad_request(f"invalid field selector: {term!r}; can't understand {term!r}")
        path, default = found["path"], _default(resource, found["path"])
        yield _field_test(path.split("."), default, found["value"], equal=found["op"] != "!=")


def _default(resource: Resource, path: str) -> str:
    if path in ("metadata.name", "metadata.namespace"):
        return ""
    default = _FIELDS.get(resource.collection, {}).get(path)
    if default is None:
        raise bad_request(f"field label not supported: {path}")
    return default


def _field_test(path: list[str], default: str, wanted: str, *, equal: bool) -> Test:
    def test(body: Body) -> bool:
        value = part(body, *path)
        if isinstance(value, dict):
            value = value.get("component")
        text = default if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        return (text == wanted) == equal

    return test
