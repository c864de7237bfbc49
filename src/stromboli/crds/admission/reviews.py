"""Reviews of admission: the question of an API server, and the answer of one path to it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from stromboli.crds import admission
from stromboli.crds.admission import Object, Settings, World
from stromboli.crds.admission.patches import patch_between
from stromboli.crds.admission.paths import DELETE, UPDATE, Path
from stromboli.errors import ManifestError
from stromboli.model.values.reading import unreadable

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"


class Place(msgspec.Struct):
    """Group, version and resource of a request."""

    group: str = ""
    version: str = ""
    resource: str = ""


class Request(msgspec.Struct, rename="camel"):
    """What an API server asks; what is not looked at is not read."""

    uid: str
    operation: str
    resource: Place
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: Request | None = None


_decode: Final = msgspec.json.Decoder(_Review).decode

Response = dict[str, Any]


def read_review(body: bytes) -> Request:
    """The request of a review.  Raises ManifestError for what is no AdmissionReview of version v1 with a request."""
    try:
        review = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(unreadable(error), object=KIND) from error
    if review.request is None or (review.api_version, review.kind) != (API_VERSION, KIND):
        told = f"is {review.api_version:.63} {review.kind:.63}"
        raise ManifestError(f"the body {told}; it must be {API_VERSION} {KIND} with a request", object=KIND)
    return review.request


def written(uid: str, response: Response) -> bytes:
    """The review that answers the request of that uid."""
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": uid, **response}})


def is_refusal(response: Response) -> bool:
    """Whether an answer refuses the request."""
    return not response["allowed"]


def answer(path: Path, request: Request, world: World, settings: Settings) -> Response:
    """What a path says to a request: allowed, refused with a message, or allowed with a patch."""
    place = (request.resource.group, request.resource.version, request.resource.resource)
    if place != path.place:
        return refused(f"expect resource to be {{{' '.join(path.place)}}}")
    if request.operation not in path.operations:
        return refused(path.unexpected.format(f"{request.operation:.63}"))
    return _mutated(path, request, world, settings) if path.is_mutating else _judged(path, request, world, settings)


def refused(message: str) -> Response:
    """A refusal; an API server puts the webhook's name in front."""
    return {"allowed": False, "status": {"message": message}}


def _mutated(path: Path, request: Request, world: World, settings: Settings) -> Response:
    value = _placed(request.object or {}, request)
    operations = patch_between(value, admission.default(path.resource, value, world, settings))
    if not operations:
        return {"allowed": True}
    patch = base64.b64encode(msgspec.json.encode(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def _judged(path: Path, request: Request, world: World, settings: Settings) -> Response:
    value = None if request.operation == DELETE else _placed(request.object or {}, request)
    old = request.old_object if request.operation in (UPDATE, DELETE) else None
    texts = admission.validate(path.resource, value, old, world, settings)
    return refused("; ".join(texts).strip()) if texts else {"allowed": True}


def _placed(value: dict[str, Any], request: Request) -> Object:
    """The object with the namespace that it will be in, which it may leave to the request."""
    metadata = value.get("metadata")
    if not request.namespace or (isinstance(metadata, Mapping) and metadata.get("namespace")):
        return value
    return {**value, "metadata": {**(metadata or {}), "namespace": request.namespace}}
