"""What a request to an address of objects does: the verbs of the API, in one table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stromboli.cluster.body import Body, changed, encode, merge_patched, meta, part
from stromboli.errors import ApiFailure
from stromboli.server import status_errors
from stromboli.server.addresses import Address
from stromboli.server.api import Api
from stromboli.server.http.tokens import ADMINISTRATOR, User
from stromboli.server.kubelet.logs import followed, log_of
from stromboli.server.print import tables
from stromboli.server.schema.decoding import refuse_unreadable, shaped
from stromboli.server.schema.resources import TOKEN_REQUESTS, Resource
from stromboli.server.storage.reading import Page, encoded_list, in_version, served
from stromboli.server.storage.store import Entry
from stromboli.server.storage.watching import wish_of
from stromboli.server.verbs.applying import applied
from stromboli.server.verbs.patching import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    json_patched,
    read_patch,
    strategic_patched,
)
from stromboli.server.verbs.reviews import reviewed
from stromboli.server.verbs.scaling import scale_of, with_scale
from stromboli.server.verbs.writing import Options, deletion_of

_CREATES: Final = frozenset({"binding", "eviction", "token"})
_OF_CONTAINERS: Final = frozenset({"exec", "attach", "portforward"})
_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


@dataclass
class Call:
    """One request: what it is about and what it asks for; ``form`` is the form of the answer, empty for the object;
    ``agent`` is the name of the client, ``user`` the owner of its token.
    """

    resource: Resource
    address: Address
    method: str
    query: Mapping[str, str]
    body: Any
    media: str
    form: str
    agent: str = ""
    user: User = ADMINISTRATOR
    options: Options = field(init=False)

    def __post_init__(self) -> None:
        query = self.query
        dry = "dryRun" in query or (isinstance(self.body, dict) and bool(self.body.get("dryRun")))
        self.options = Options(
            dry_run=dry,
            validation=query.get("fieldValidation", "Warn"),
            manager=query.get("fieldManager") or self.agent or "unknown",
            force=query.get("force") in ("true", "1"),
        )

    @property
    def watches(self) -> bool:
        """Whether changes are wanted."""
        return self.query.get("watch") in ("true", "1")

    @property
    def object(self) -> Body:
        """The body, which must be an object."""
        if not isinstance(self.body, dict):
            raise status_errors.bad_request("the body of the request is no object")
        return self.body


@dataclass(frozen=True)
class Result:
    """The answer: its bytes, or lines that come one by one; ``media`` is empty for JSON."""

    content: bytes | AsyncIterator[bytes]
    code: int = 200
    media: str = ""


class Calls:
    """The verbs."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._verbs: Mapping[tuple[str, bool], Callable[[Call], Result]] = {
            ("GET", False): self._list, ("POST", False): self._create, ("DELETE", False): self._delete_all,
            ("GET", True): self._get, ("POST", True): self._command, ("PUT", True): self._update,
            ("PATCH", True): self._patch, ("DELETE", True): self._delete,
        }  # fmt: skip

    def answer(self, call: Call) -> Result:
        """Do what the request asks."""
        address, resource = call.address, call.resource
        if "list" not in resource.verbs:
            return Result(encode(reviewed(resource, call.object, call.user, self._api.tokens)), 201)
        if address.subresource and address.subresource not in resource.subresources:
            raise self._not_served(resource, address)
        verb = self._verbs.get((call.method, bool(address.name)))
        if (call.method, address.name) == ("DELETE", "") and "deletecollection" not in resource.verbs:
            raise status_errors.wrong_method()
        if verb is None or (address.name and resource.namespaced and not address.namespace):
            raise status_errors.wrong_method()
        return verb(call)

    def _not_served(self, resource: Resource, address: Address) -> ApiFailure:
        if resource.collection == ("", "pods") and address.subresource in _OF_CONTAINERS:
            self._api.writer.entry(resource, address.key)
            return status_errors.simulated(resource, address.name, address.subresource)
        return status_errors.not_found(resource, address.name) if resource.custom else status_errors.no_such_path()

    # ------------------------------------------------------------------------------------------- reading

    def _list(self, call: Call) -> Result:
        if call.watches:
            return self._watch(call, call.address.name)
        page = self._api.reader.page(call.resource, call.address.namespace, call.query)
        return Result(self._shown_list(call, page))

    def _shown_list(self, call: Call, page: Page) -> bytes:
        if call.form == "Table":
            bodies = (entry.body for entry in page.entries)
            return encode(self._table(call, bodies, page.meta))
        if call.form == "PartialObjectMetadata":
            items = [tables.metadata_only(entry.body) for entry in page.entries]
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": page.meta}
            return encode({**head, "items": items})
        return encoded_list(call.resource, page.entries, page.meta)

    def _table(self, call: Call, bodies: Any, list_meta: Body) -> Body:
        include = call.query.get("includeObject", "Metadata")
        return tables.table(call.resource, bodies, list_meta, self._api.clock(), include)

    def _watch(self, call: Call, name: str) -> Result:
        wish = wish_of(call.resource, call.address.namespace, name, call.query)
        form = {"Table": self._table_rows(call), "PartialObjectMetadata": _metadata}.get(call.form)
        return Result(self._api.watcher.stream(call.resource, wish, form))

    def _table_rows(self, call: Call) -> Callable[[str, Body, Resource], Body]:
        """Events as tables of one row; only the first brings the heads of the columns."""
        told = False

        def form(kind: str, body: Body, resource: Resource) -> Body:
            nonlocal told
            version = {"resourceVersion": meta(body).get("resourceVersion", "")}
            shown = self._table(call, [body] if kind != "BOOKMARK" else [], version)
            if kind == "BOOKMARK":
                shown["rows"] = [{"cells": [], "object": tables.metadata_only(body)}]
            if told:
                shown["columnDefinitions"] = None
            told = True
            return shown

        return form

    def _get(self, call: Call) -> Result:
        if call.watches:
            return self._watch(call, call.address.name)
        entry = self._api.writer.entry(call.resource, call.address.key)
        if call.address.subresource == "scale":
            return Result(encode(scale_of(entry.body)))
        if call.address.subresource == "log":
            return self._log(call, entry)
        return self._told(call, entry)

    def _log(self, call: Call, entry: Entry) -> Result:
        """What a container has written; with ``follow``, also what it goes on to write."""
        whole = log_of(entry.body, call.query, self._api.written)
        if call.query.get("follow") not in ("true", "1"):
            return Result(whole, media="text/plain")

        def look() -> Body | None:
            found = None if self._api.watcher.closing else self._api.store.get(call.resource.collection, entry.key)
            return found.body if found else None

        return Result(followed(look, call.query, self._api.written), media="text/plain")

    def _told(self, call: Call, entry: Entry, code: int = 200) -> Result:
        """One object in the form that was asked for."""
        if call.form == "Table":
            version = {"resourceVersion": meta(entry.body).get("resourceVersion", "")}
            return Result(encode(self._table(call, [in_version(call.resource, entry.body)], version)), code)
        if call.form == "PartialObjectMetadata":
            return Result(encode(tables.metadata_only(entry.body)), code)
        return Result(served(call.resource, entry), code)

    # ------------------------------------------------------------------------------------------- writing

    def _create(self, call: Call) -> Result:
        entry = self._api.writer.create(call.resource, call.address.namespace, call.object, call.options)
        return self._told(call, entry, 201)

    def _command(self, call: Call) -> Result:
        if call.address.subresource not in _CREATES:
            raise status_errors.wrong_method()
        if call.address.subresource == "token":
            return self._issue(call)
        done = self._api.pods.bind if call.address.subresource == "binding" else self._api.pods.evict
        done(call.address.key, call.object, call.options)
        return Result(encode(_success()), 201)

    def _issue(self, call: Call) -> Result:
        account = self._api.writer.entry(call.resource, call.address.key).body
        request, found = shaped(TOKEN_REQUESTS, call.object)
        refuse_unreadable(TOKEN_REQUESTS, found)
        return Result(encode(self._api.tokens.issue(account, request)), 201)

    def _update(self, call: Call) -> Result:
        address, writer = call.address, self._api.writer
        if address.subresource == "scale":
            return self._scaled(call, lambda scale: call.object)
        return self._told(
            call, writer.update(call.resource, address.key, call.object, address.subresource, call.options)
        )

    def _scaled(self, call: Call, patched: Callable[[Body], Body]) -> Result:
        def rescaled(body: Body) -> Body:
            return with_scale(body, patched(scale_of(body)))

        entry = self._api.writer.patch(call.resource, call.address.key, rescaled, "", call.options)
        return Result(encode(scale_of(entry.body)))

    def _patch(self, call: Call) -> Result:
        if call.media not in _PATCHES:
            raise status_errors.wrong_media(call.media, _PATCHES)
        if call.media == APPLY_PATCH:
            if not call.query.get("fieldManager"):
                raise status_errors.bad_request(
                    'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
                )
            entry, code = applied(self._api, call.resource, call.address, call.object, call.options)
            return self._told(call, entry, code)
        if call.media == STRATEGIC_PATCH and call.resource.custom:
            raise status_errors.wrong_media(call.media, (JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
        patched = self._patcher(call)
        if call.address.subresource == "scale":
            return self._scaled(call, patched)
        entry = self._api.writer.patch(call.resource, call.address.key, patched, call.address.subresource, call.options)
        return self._told(call, entry)

    def _patcher(self, call: Call) -> Callable[[Body], Body]:
        if call.media == JSON_PATCH:
            return lambda body: json_patched(body, call.body)
        patch = read_patch(call.body, call.media)
        if call.media == MERGE_PATCH:
            return lambda body: merge_patched(body, patch)
        return lambda body: strategic_patched(call.resource.schema, body, patch)

    # ------------------------------------------------------------------------------------------ deleting

    def _delete(self, call: Call) -> Result:
        how = deletion_of(call.body, call.query.get("gracePeriodSeconds"), call.query.get("propagationPolicy"))
        entry, gone = self._api.writer.delete(call.resource, call.address.key, how, call.options)
        if not gone or call.resource.collection == ("", "pods"):
            return Result(served(call.resource, entry))
        return Result(encode(_success(_details(call.resource, entry.body))))

    def _delete_all(self, call: Call) -> Result:
        how = deletion_of(call.body, call.query.get("gracePeriodSeconds"), call.query.get("propagationPolicy"))
        page = self._api.reader.page(call.resource, call.address.namespace, call.query)
        for entry in page.entries:
            self._api.writer.delete(call.resource, entry.key, how, call.options)
        return Result(self._shown_list(call, page))


def _metadata(kind: str, body: Body, resource: Resource) -> Body:
    return tables.metadata_only(body)


def _success(details: Body | None = None) -> Body:
    body: Body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return changed(body, details=details)


def _details(resource: Resource, body: Body) -> Body:
    found = {"name": meta(body).get("name"), "group": resource.group, "kind": resource.plural}
    return {**{key: value for key, value in found.items() if value}, "uid": part(body, "metadata", "uid")}
