"""What a request can be refused with: codes, reasons and texts of Kubernetes' Status object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from stromboli.cluster.body import Body
from stromboli.errors import ApiFailure

MOST_CAUSES: Final = 256
"""Causes that one answer names."""
STALE: Final = "the object has been modified; please apply your changes to the latest version and try again"


class Named(Protocol):
    """What a text calls a kind of objects."""

    @property
    def title(self) -> str:
        """Plural name with the group, as in ``jobs.batch``."""

    @property
    def group(self) -> str:
        """API group, empty for the core."""

    @property
    def plural(self) -> str:
        """Plural name as in addresses."""

    @property
    def kind(self) -> str:
        """Kind as in manifests."""


class Cause(NamedTuple):
    """One wrong field: its path, the kind of mistake (``FieldValue…``) and what is said of it."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def required(field: str, detail: str = "") -> Cause:
    """A field that must be there."""
    return Cause(field, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))


def wrong(field: str, value: object, detail: str) -> Cause:
    """A field whose value cannot be used."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def duplicate(field: str, value: object) -> Cause:
    """A field that says again what may be said once."""
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def unsupported(field: str, value: object, allowed: Iterable[object]) -> Cause:
    """A field whose value is none of those that there are."""
    values = ", ".join(shown(one) for one in allowed)
    return Cause(field, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {values}")


_REASONS: Final = {
    "Required value": "FieldValueRequired",
    "Invalid value": "FieldValueInvalid",
    "Duplicate value": "FieldValueDuplicate",
    "Not found": "FieldValueNotFound",
    "Unsupported value": "FieldValueNotSupported",
}


def cause_of(text: str) -> Cause:
    """A cause from its whole text, such as ``spec.containers: Required value``."""
    path, _, message = text.partition(": ")
    return Cause(path, _REASONS[message.partition(":")[0]], message)


def closed(field: str, detail: str) -> Cause:
    """A field that may not be set or changed."""
    return Cause(field, "FieldValueForbidden", f"Forbidden: {detail}")


def shown(value: object) -> str:
    """A value as Kubernetes' texts show it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int | float):
        return str(value)
    return '"' + {dict: "object", list: "array", type(None): "null"}.get(type(value), str(value)) + '"'


def _about(resource: Named, name: str, kind: str | None = None) -> Body:
    details = {"name": name, "group": resource.group, "kind": kind or resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Named, name: str) -> ApiFailure:
    """The object is not there."""
    return ApiFailure(404, "NotFound", f'{resource.title} "{name}" not found', _about(resource, name))


def no_such_path() -> ApiFailure:
    """Nothing is served at this address."""
    return ApiFailure(404, "NotFound", "the server could not find the requested resource", {})


def not_acceptable(*media: str) -> ApiFailure:
    """Nothing that the client takes can be given."""
    return ApiFailure(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(media)}")


def simulated(resource: Named, name: str, what: str) -> ApiFailure:
    """What only real containers have."""
    text = f'{resource.title} "{name}": pods are simulated here and have no containers: {what} is not served'
    return ApiFailure(501, "NotImplemented", text, _about(resource, name))


def already_exists(resource: Named, name: str) -> ApiFailure:
    """An object of this name is there already."""
    text = f'{resource.title} "{name}" already exists'
    return ApiFailure(409, "AlreadyExists", text, _about(resource, name))


def conflict(resource: Named, name: str, why: str = STALE) -> ApiFailure:
    """The object is not as the request expects it."""
    text = f'Operation cannot be fulfilled on {resource.title} "{name}": {why}'
    return ApiFailure(409, "Conflict", text, _about(resource, name))


def forbidden(resource: Named, name: str, why: str, causes: Sequence[Body] = ()) -> ApiFailure:
    """The object may not be changed so."""
    details = _about(resource, name) | ({"causes": list(causes)} if causes else {})
    return ApiFailure(403, "Forbidden", f'{resource.title} "{name}" is forbidden: {why}', details)


def invalid(resource: Named, name: str, causes: Sequence[Cause]) -> ApiFailure:
    """Fields of the object are wrong; the first :data:`MOST_CAUSES` are named."""
    more = len(causes) - MOST_CAUSES
    if more > 0:
        causes = [*causes[:MOST_CAUSES], Cause("", "FieldValueInvalid", f"and {more} more")]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    texts = [str(cause) for cause in causes]
    told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _about(resource, name, resource.kind)
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return ApiFailure(422, "Invalid", f'{kind} "{name}" is invalid: {told}', details)


def bad_request(text: str) -> ApiFailure:
    """The request cannot be understood."""
    return ApiFailure(400, "BadRequest", text)


def expired(text: str) -> ApiFailure:
    """What was asked for lies too far back."""
    return ApiFailure(410, "Expired", text)


def too_many(text: str, details: Body | None = None) -> ApiFailure:
    """Not now: a disruption budget forbids it."""
    return ApiFailure(429, "TooManyRequests", text, details or {})


def too_large(most: int) -> ApiFailure:
    """The body has more bytes than are read."""
    return ApiFailure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {most}", {})


def too_large_to_keep() -> ApiFailure:
    """The object has more bytes than a value of etcd; the text is etcd's, which kube-apiserver hands on as a 500."""
    return ApiFailure(413, "RequestEntityTooLarge", "etcdserver: request is too large", {})


def timed_out() -> ApiFailure:
    """The request did not come to its end."""
    told = "Timeout: request did not complete within the allotted timeout"
    return ApiFailure(504, "Timeout", told, {})


def broken() -> ApiFailure:
    """The server's own mistake; its log says more."""
    return ApiFailure(500, "InternalError", "Internal error occurred: the server's log says more", {})


def unauthorized() -> ApiFailure:
    """The caller is unknown to the server."""
    return ApiFailure(401, "Unauthorized", "Unauthorized")


def wrong_method() -> ApiFailure:
    """The address is right, what is to be done there is not."""
    text = "the server does not allow this method on the requested resource"
    return ApiFailure(405, "MethodNotAllowed", text, {})


def wrong_media(given: str, accepted: Iterable[str]) -> ApiFailure:
    """The body is in a form that is not read here."""
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiFailure(415, "UnsupportedMediaType", text if given else "Content-Type is missing", {})
