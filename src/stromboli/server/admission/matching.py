"""A write as webhooks and policies look at it: whether it is theirs, and what they are shown of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stromboli.cel import CelError, mistake, program, unsupported
from stromboli.cluster.body import Body, meta
from stromboli.model.selectors import selects
from stromboli.server.admission.admission import World
from stromboli.server.admission.webhook_rules import selector_of, version_for
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import Cause, required, wrong

KNOWN: Final = frozenset({"object", "oldObject", "request", "params", "namespaceObject", "variables"})
"""Names that expressions know.  Kubernetes has one more, ``authorizer``, for checks of permissions."""


@dataclass(frozen=True)
class Write:
    """One write: the kind, the versions in which it is served, the object as it was, the user, and the verb.

    ``subresource`` is empty for the object itself.
    """

    versions: Sequence[str]
    resource: Resource
    old: Body | None
    world: World
    operation: str
    user: Body
    dry_run: bool
    subresource: str = ""

    def version_of(self, wanted: Body) -> str:
        """The version in which ``wanted``, with rules and a match policy, takes the object; empty if it does not."""
        return version_for(wanted, self.operation, self.resource, self.versions, self.subresource)

    def is_selected(self, wanted: Body, body: Body | None) -> bool:
        """Whether selectors for objects and namespaces take the object, before or after the write."""
        whole = [one for one in (body, self.old) if one is not None]
        if not any(selects(selector_of(wanted.get("objectSelector")), meta(one).get("labels") or {}) for one in whole):
            return False
        namespace = self.namespace(whole[0])
        return namespace is None or selects(
            selector_of(wanted.get("namespaceSelector")), meta(namespace).get("labels") or {}
        )

    def namespace(self, body: Body) -> Body | None:
        """The namespace of the object, or the namespace that it is; None for others without one."""
        if self.resource.namespaced:
            return self.world.body("", "namespaces", "", meta(body).get("namespace", "")) or {}
        return body if self.resource.collection == ("", "namespaces") else None

    def request(self, body: Body | None, version: str) -> Body:
        """What an AdmissionReview says of the write, its uid left out."""
        group, plural = self.resource.collection
        kind = {"group": group, "version": version, "kind": self.resource.kind}
        place = {"group": group, "version": version, "resource": plural}
        asked = {"group": group, "version": self.resource.version}
        found = meta(body if body is not None else self.old or {})
        shown = [
            None if one is None else {**one, "apiVersion": f"{group}/{version}".lstrip("/")} for one in (body, self.old)
        ]
        options = f"{self.operation.capitalize()}Options"
        below = {"subResource": self.subresource, "requestSubResource": self.subresource} if self.subresource else {}
        return {
            **below,
            "kind": kind, "resource": place, "requestKind": kind | asked, "requestResource": place | asked,
            "name": found.get("name", ""), "namespace": found.get("namespace", ""), "operation": self.operation,
            "userInfo": self.user, "object": shown[0], "oldObject": shown[1], "dryRun": self.dry_run,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": options},
        }  # fmt: skip

    def given(self, body: Body | None, version: str) -> dict[str, Any]:
        """The names that expressions know."""
        request = self.request(body, version)
        return {
            "object": request.pop("object"),
            "oldObject": request.pop("oldObject"),
            "request": request,
            "namespaceObject": self.namespace(body if body is not None else self.old or {}),
        }


def unusable(text: str) -> str:
    """Why an expression is not evaluated here; empty if it is."""
    return unsupported(text, KNOWN)


def holds(text: str, given: dict[str, Any]) -> bool:
    """Whether an expression yields true; one that is :func:`unusable` does.  Raises CelError."""
    if unusable(text):
        return True
    found = program(text).bounded(given)
    if not isinstance(found, bool):
        raise CelError(f"CEL runtime error: it yields {type(found).__name__}, no bool")
    return found


def mistaken(rows: object, path: str, *needed: str) -> Iterator[Cause]:
    """What is wrong with a list of expressions: each row needs these fields, and its expressions must be CEL."""
    for number, one in enumerate(rows if isinstance(rows, list) else ()):
        for name in needed:
            if not one.get(name):
                yield required(f"{path}[{number}].{name}")
        for name in ("expression", "messageExpression"):
            text = one.get(name) or ""
            if text and (told := mistake(text)):
                yield wrong(f"{path}[{number}].{name}", text[:256], f"compilation failed: {told}")


def all_hold(conditions: Iterable[Body], given: dict[str, Any]) -> bool:
    """Whether all ``matchConditions`` hold: one that is false counts, whatever errors others make.  Raises CelError."""
    trouble: CelError | None = None
    for one in conditions:
        try:
            if not holds(one["expression"], given):
                return False
        except CelError as error:
            trouble = trouble or error
    if trouble is not None:
        raise trouble
    return True
