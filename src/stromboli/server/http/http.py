"""The API over HTTP: requests to calls, results and refusals to responses."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from stromboli.cluster.body import encode
from stromboli.errors import ApiFailure
from stromboli.server import status_errors
from stromboli.server.addresses import address_of
from stromboli.server.admission.registered import Answers
from stromboli.server.api import Api
from stromboli.server.http import bodies, discovery
from stromboli.server.http.accept_header import Offer, offers
from stromboli.server.http.asking import answered
from stromboli.server.http.calls import Call, Calls
from stromboli.server.http.tokens import ADMINISTRATOR, User

_LOG: Final = logging.getLogger(__name__)
_JSON: Final = "application/json"
_DOCUMENT_IN_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Clients ask for it with an @ before the version, as it was called before."""
_OPEN: Final = frozenset({"/healthz", "/readyz", "/livez", "/version"})
"""Answered without a token."""
_VERBOSE: Final = "[+]ping ok\n{} check passed\n"
_UNSPEAKABLE: Final = re.compile(r"[^\x20-\x7e]")
"""Characters that stand in no header."""


class Front:
    """The ASGI application.  A known token allows everything; without one nothing is allowed."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._calls = Calls(api)
        self._decoding = bodies.Decoding()
        self._pages: Mapping[str, Callable[[Request], Response]] = {
            "": lambda request: _json(discovery.root(api.catalogue)),
            "/version": lambda request: _json(discovery.VERSION),
            "/healthz": _ok, "/readyz": _ok, "/livez": _ok,
            "/api": self._core, "/apis": self._groups,
            "/openapi/v2": self._whole_document,
            "/openapi/v3": lambda request: _json(api.documents.index()),
        }  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ApiFailure as failure:
            response = _refused(failure)
        except ClientDisconnect:
            return
        except Exception:  # noqa: BLE001 - one request's trouble is answered as such, and logged
            _LOG.exception("%s %r", request.method, request.scope["path"])
            response = _refused(status_errors.broken())
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = str(request.scope["path"]).rstrip("/")
        user = ADMINISTRATOR if path in _OPEN else self._user(request)
        page = self._pages.get(path)
        if page is not None:
            return page(request)
        if path.startswith("/openapi/v3/"):
            return self._document(path.removeprefix("/openapi/v3/"))
        if path.startswith(("/healthz/", "/readyz/", "/livez/")):
            return _ok(request)
        return self._group_page(path) or await self._call(request, path, user)

    def _user(self, request: Request) -> User:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user = self._api.tokens.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise status_errors.unauthorized()
        return user

    # ---------------------------------------------------------------------------------------- discovery

    def _core(self, request: Request) -> Response:
        whole = self._aggregated(request, core=True)
        return whole or _json(discovery.core_versions(request.headers.get("host", "")))

    def _groups(self, request: Request) -> Response:
        return self._aggregated(request, core=False) or _json(discovery.group_list(self._api.catalogue))

    def _aggregated(self, request: Request, *, core: bool) -> Response | None:
        """Everything at once, in the first version of that form that the client takes and we have."""
        for offer in _offers(request):
            version = offer.words.get("v", "")
            if offer.words.get("g") == discovery.GROUP and version in discovery.AGGREGATED:
                media = f"{_JSON};g={discovery.GROUP};v={version};as=APIGroupDiscoveryList"
                return _json(discovery.aggregated(self._api.catalogue, version, core=core), media=media)
        return None

    def _group_page(self, path: str) -> Response | None:
        catalogue = self._api.catalogue
        match path.strip("/").split("/"):
            case ["api", "v1"]:
                return _json(discovery.resource_list(catalogue, "", "v1"))
            case ["apis", group] if discovery.versions(catalogue, group):
                return _json(discovery.group_of(catalogue, group))
            case ["apis", group, version] if version in discovery.versions(catalogue, group):
                return _json(discovery.resource_list(catalogue, group, version))
        return None

    def _whole_document(self, request: Request) -> Response:
        """In version 2, in the first form that the client names and we have."""
        documents = self._api.documents
        for offer in _offers(request):
            match offer.media.replace("@", "."):
                case "application/json" | "application/*" | "*/*":
                    return Response(documents.whole(), media_type=_JSON)
                case media if media == _DOCUMENT_IN_PROTOBUF:
                    return Response(documents.whole_in_protobuf(), media_type=media)
        raise status_errors.not_acceptable(_JSON, _DOCUMENT_IN_PROTOBUF)

    def _document(self, path: str) -> Response:
        found = self._api.documents.document(path)
        if found is None:
            raise status_errors.no_such_path()
        return Response(found, media_type=_JSON)

    # ------------------------------------------------------------------------------------------- objects

    async def _call(self, request: Request, path: str, user: User) -> Response:
        address = address_of(path)
        if address is None:
            return PlainTextResponse("404 page not found\n", 404)
        resource = self._api.catalogue.find(address.group, address.version, address.plural)
        if resource is None:
            raise status_errors.no_such_path()
        media = request.headers.get("content-type", "").partition(";")[0].strip()
        body = await self._decoding.value(request, media) if request.method != "GET" else None
        call = Call(
            resource,
            address,
            request.method,
            dict(request.query_params),
            body,
            media,
            _form(request),
            request.headers.get("user-agent", "").partition("/")[0],
            user,
        )
        answers = Answers(user.body, call.options.dry_run)
        result = await answered(lambda: self._calls.answer(call), answers)
        call.options.warnings = [*dict.fromkeys([*call.options.warnings, *answers.warnings])]
        if isinstance(result.content, AsyncIterator):
            return StreamingResponse(result.content, media_type=result.media or _JSON)
        response = Response(result.content, result.code, media_type=result.media or _JSON)
        for warning in call.options.warnings:
            response.headers.append(
                "Warning", f'299 - "{_UNSPEAKABLE.sub("?", warning).replace(chr(34), chr(92) + chr(34))}"'
            )
        return response


def _json(body: Mapping[str, Any], code: int = 200, media: str = _JSON) -> Response:
    return Response(encode(body), code, media_type=media)


def _ok(request: Request) -> Response:
    verbose = "verbose" in request.query_params
    return PlainTextResponse(_VERBOSE.format(request.scope["path"].strip("/")) if verbose else "ok")


def _refused(failure: ApiFailure) -> Response:
    """A 429 names no time to wait: a client that is told one waits within the request, whatever its own limit is."""
    return _json(failure.status, failure.code)


def _offers(request: Request) -> Iterator[Offer]:
    return offers(request.headers.get("accept", "*/*"))


def _form(request: Request) -> str:
    """The first form in which the client takes the answer that can be given: Table, PartialObjectMetadata or plain."""
    found = next((offer for offer in _offers(request) if offer.media == _JSON), None)
    return found.words.get("as", "").removesuffix("List") if found else ""
