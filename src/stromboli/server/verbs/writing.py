"""Creating, changing and deleting objects: what each step does to their metadata, and when it is refused."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from stromboli.cluster.body import Body, Key, changed, generated_name, key_of, meta, part, stamp, with_meta
from stromboli.errors import ApiFailure
from stromboli.server import status_errors
from stromboli.server.admission.admission import STATUS, Admission, World
from stromboli.server.schema.decoding import refuse_unknown, refuse_unreadable, shaped
from stromboli.server.schema.defaults import with_defaults
from stromboli.server.schema.definitions import not_evaluated
from stromboli.server.schema.resources import Resource
from stromboli.server.schema.validation import wrong_fields, wrong_status
from stromboli.server.storage.store import Entry, Store
from stromboli.server.verbs.kept import counted, with_kept_meta, with_kept_parts, with_kept_status

_SET_BY_SERVER: Final = (
    "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink", "managedFields",
)  # fmt: skip
"""What an object that is created has not, whatever its author writes."""
_GENERATED: Final = frozenset(
    {("", "pods"), ("batch", "jobs"), ("batch", "cronjobs"), ("policy", "poddisruptionbudgets")}
    | {("apps", name) for name in ("deployments", "replicasets", "daemonsets", "statefulsets")}
    | {("scheduling.k8s.io", "priorityclasses"), ("", "replicationcontrollers")}
    | {("scheduling.k8s.io", name) for name in ("podgroups", "compositepodgroups", "workloads")}
    | {("apiextensions.k8s.io", "customresourcedefinitions")}
)
"""Kinds of Kubernetes that count the generations of their specs; custom resources all do."""


@dataclass
class Options:
    """How a write is meant; ``warnings`` collects what its answer tells besides.

    ``owned`` is set when the object already names the owners of its fields, ``sound`` when a new object is already in
    the form that reading gives and nothing is wrong with it.
    """

    dry_run: bool = False
    validation: str = "Warn"
    manager: str = "unknown"
    force: bool = False
    owned: bool = False
    sound: bool = False
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Deletion:
    """How an object is to be deleted; None leaves it to the kind's habit."""

    grace: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None


Tracker = Callable[[Resource, Body, Body | None, Options, str], Body]
"""Notes the managers of fields in the object; asked with the new object, the old one, and the subresource."""


class Writer:
    """All writes to the store, in the terms of the API."""

    def __init__(
        self, store: Store, world: World, admissions: list[Admission], clock: Callable[[], float], track: Tracker
    ) -> None:
        self._store = store
        self._world = world
        self._admissions = admissions
        self._clock = clock
        self._track = track

    # ------------------------------------------------------------------------------------------ reading

    def entry(self, resource: Resource, key: Key) -> Entry:
        """A stored object; raises NotFound."""
        found = self._store.get(resource.collection, key)
        if found is None:
            raise status_errors.not_found(resource, key[1])
        return found

    # ----------------------------------------------------------------------------------------- creating

    def create(self, resource: Resource, namespace: str, body: Body, options: Options) -> Entry:
        """Store a new object."""
        body = body if options.sound else self._read(resource, body, options)
        body = self._born(resource, namespace, body)
        body = with_defaults(resource.group, body)
        if "status" in resource.subresources and not resource.custom:
            body = {"status": {}, **body}
        for admission in self._admissions:
            body = admission.admit(resource, body, None, self._world)
        if not options.sound:
            self._refuse(resource, body, None, options)
        if self._store.get(resource.collection, key_of(body)) is not None:
            raise status_errors.already_exists(resource, key_of(body)[1])
        body = self._track(resource, body, None, options, "")
        return self._put(resource, body, options)

    def _read(self, resource: Resource, body: Body, options: Options) -> Body:
        kind, version = body.get("kind", resource.kind), body.get("apiVersion")
        if kind != resource.kind or version not in (None, "", resource.group_version):
            raise status_errors.bad_request(_mismatch(resource, body))
        body, found = shaped(resource, {**body, "apiVersion": resource.group_version, "kind": resource.kind})
        refuse_unreadable(resource, found)
        if options.validation == "Strict":
            refuse_unknown(resource, found)
        elif options.validation == "Warn":
            options.warnings.extend(found.unknown)
        if found.causes:
            raise status_errors.invalid(resource, meta(body).get("name", ""), found.causes)
        return {"apiVersion": resource.group_version, "kind": resource.kind, **body}

    def _born(self, resource: Resource, namespace: str, body: Body) -> Body:
        found = dict(meta(body))
        if not found.get("name") and found.get("generateName"):
            found["name"] = generated_name(found["generateName"], secrets.choice)
        given = found.pop("namespace", "")
        if resource.namespaced:
            found["namespace"] = _namespace(given, namespace)
        for name in _SET_BY_SERVER:
            found.pop(name, None)
        found |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(self._clock())}
        if resource.custom or resource.collection in _GENERATED:
            found["generation"] = 1
        if "status" in resource.subresources and resource.collection != ("", "nodes"):
            body = changed(body, status=None)
        return {**body, "metadata": found}

    def _refuse(self, resource: Resource, body: Body, old: Body | None, options: Options) -> None:
        causes = list(wrong_fields(resource, body, old))
        if causes:
            raise status_errors.invalid(resource, key_of(body)[1], causes)
        options.warnings.extend(not_evaluated(resource, body))

    def _put(self, resource: Resource, body: Body, options: Options) -> Entry:
        if options.dry_run:
            return Entry(body, b"", self._store.version)
        return self._store.put(resource.collection, body)

    def keep(self, resource: Resource, body: Body, options: Options) -> Entry:
        """Store an object as it is: nothing is read, admitted or counted again."""
        return self._put(resource, body, options)

    # ----------------------------------------------------------------------------------------- changing

    def update(self, resource: Resource, key: Key, body: Body, subresource: str, options: Options) -> Entry:
        """Replace an object, or the part of it that ``subresource`` is about."""
        old = self.entry(resource, key)
        self._refuse_mismatch(resource, key, body)
        _refuse_stale(resource, old, body, must_tell=resource.custom)
        return self.store_change(resource, old, self._read(resource, body, options), subresource, options)

    def patch(
        self, resource: Resource, key: Key, patched: Callable[[Body], Body], subresource: str, options: Options
    ) -> Entry:
        """Replace an object by what a patch makes of it."""
        old = self.entry(resource, key)
        body = patched({**old.body, "apiVersion": resource.group_version})
        self._refuse_mismatch(resource, key, body)
        if (uid := meta(body).get("uid")) and uid != meta(old.body).get("uid"):
            raise status_errors.invalid(resource, key[1], [_immutable("metadata.uid", uid)])
        _refuse_stale(resource, old, body)
        return self.store_change(resource, old, self._read(resource, body, options), subresource, options)

    def _refuse_mismatch(self, resource: Resource, key: Key, body: Body) -> None:
        name = meta(body).get("name") or key[1]
        if name != key[1]:
            raise status_errors.bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({key[1]})"
            )

    def store_change(self, resource: Resource, old: Entry, body: Body, subresource: str, options: Options) -> Entry:
        """Store the changed object if anything differs; an object that waited only for its finalizers goes."""
        body = with_kept_meta(resource, old.body, body, subresource)
        body = with_kept_parts(resource, old.body, body, subresource)
        if not subresource:
            body = with_defaults(resource.group, body) if not resource.custom else body
            body = with_kept_status(resource, old.body, body)
            for admission in self._admissions:
                body = admission.admit(resource, body, old.body, self._world)
            body = with_kept_meta(resource, old.body, body, subresource)
            self._refuse(resource, body, old.body, options)
        elif subresource == STATUS:
            body = self._with_status(resource, body, old.body)
        body = counted(resource, old.body, body)
        body = self._track(resource, body, old.body, options, subresource)
        if _same(body, old.body):
            return old
        if _may_go(body):
            return self._gone(resource, body, options)
        return self._put(resource, body, options)

    def _with_status(self, resource: Resource, body: Body, old: Body) -> Body:
        """The object with another status, if all agree that are asked about statuses."""
        for admission in self._admissions:
            body = admission.admit_status(resource, body, old, self._world)
        body = with_kept_parts(resource, old, with_kept_meta(resource, old, body, STATUS), STATUS)
        if causes := list(wrong_status(resource, body, old)):
            raise status_errors.invalid(resource, key_of(body)[1], causes)
        return body

    def _gone(self, resource: Resource, body: Body, options: Options) -> Entry:
        if options.dry_run:
            return Entry(body, b"", self._store.version)
        self._store.put(resource.collection, body)
        return self._store.drop(resource.collection, key_of(body)) or Entry(body, b"", self._store.version)

    # ----------------------------------------------------------------------------------------- deleting

    def delete(self, resource: Resource, key: Key, how: Deletion, options: Options) -> tuple[Entry, bool]:
        """Delete an object, or mark it to be deleted; answers what is left of it, and whether it is gone."""
        old = self.entry(resource, key)
        _refuse_other(resource, old, how)
        for admission in self._admissions:
            admission.admit_deletion(resource, old.body, self._world)
        grace = _grace(resource, old.body, how)
        if resource.collection == ("", "namespaces"):
            return self._close_namespace(resource, old, options), False
        finalizers = _finalizers(old.body, how)
        if not grace and not finalizers:
            if options.dry_run:
                return old, True
            return self._store.drop(resource.collection, key) or old, True
        marked = self._marked(old.body, grace, finalizers)
        return (old if _same(marked, old.body) else self._put(resource, marked, options)), False

    def _marked(self, body: Body, grace: int, finalizers: list[str]) -> Body:
        found = meta(body)
        known = found.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in found and (known or 0) <= grace:
            return with_meta(body, finalizers=finalizers or None)
        fields: Body = {"finalizers": finalizers or None, "deletionGracePeriodSeconds": grace}
        if "generation" in found and "deletionTimestamp" not in found:
            fields["generation"] = found["generation"] + 1
        return with_meta(body, deletionTimestamp=stamp(self._clock() + grace), **fields)

    def _close_namespace(self, resource: Resource, old: Entry, options: Options) -> Entry:
        if "deletionTimestamp" in meta(old.body):
            return old
        body = with_meta(old.body, deletionTimestamp=stamp(self._clock()))
        return self._put(resource, {**body, "status": {"phase": "Terminating"}}, options)


def _namespace(given: str, requested: str) -> str:
    """The namespace of a new object: of the request, else as it says itself; both must be equal."""
    if given and requested and given != requested:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return requested or given


def _mismatch(resource: Resource, body: Body) -> str:
    given = f"{body.get('apiVersion', '')}, Kind={body.get('kind', '')}"
    wanted = f"{resource.group_version}, Kind={resource.kind}"
    return f"the API version in the data ({given}) does not match the expected API version ({wanted})"


def _immutable(field: str, given: str) -> status_errors.Cause:
    return status_errors.Cause(field, "FieldValueInvalid", f'Invalid value: "{given}": field is immutable')


def _refuse_stale(resource: Resource, old: Entry, body: Body, *, must_tell: bool = False) -> None:
    found, known = meta(body), meta(old.body)
    name = known.get("name", "")
    version = found.get("resourceVersion")
    if not version and must_tell:
        cause = status_errors.Cause(
            "metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update"
        )
        raise status_errors.invalid(resource, name, [cause])
    if version and version != known.get("resourceVersion"):
        raise status_errors.conflict(resource, name)
    if found.get("uid") and found["uid"] != known.get("uid"):
        raise status_errors.conflict(resource, name, _other_uid(found["uid"], known.get("uid")))


def _other_uid(wanted: str, known: str | None) -> str:
    return f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {known}"


def _refuse_other(resource: Resource, old: Entry, how: Deletion) -> None:
    known = meta(old.body)
    if how.uid and how.uid != known.get("uid"):
        why = (
            f"the UID in the precondition ({how.uid}) does not match the UID in record ({known.get('uid')}). "
            "The object might have been deleted and then recreated"
        )
        raise status_errors.conflict(resource, known["name"], why)
    if how.version and how.version != known.get("resourceVersion"):
        why = (
            f"the ResourceVersion in the precondition ({how.version}) does not match the ResourceVersion in record "
            f"({known.get('resourceVersion')}). The object might have been modified"
        )
        raise status_errors.conflict(resource, known["name"], why)


def _same(body: Body, old: Body) -> bool:
    """Whether nothing would change; the resource version and managers' times count for nothing."""
    return with_meta(body, resourceVersion=None) == with_meta(old, resourceVersion=None)


def _may_go(body: Body) -> bool:
    found = meta(body)
    if "deletionTimestamp" not in found or found.get("finalizers") or part(body, "spec", "finalizers"):
        return False
    return not found.get("deletionGracePeriodSeconds")


def _grace(resource: Resource, body: Body, how: Deletion) -> int:
    if resource.collection != ("", "pods"):
        return 0
    done = part(body, "status", "phase") in ("Succeeded", "Failed")
    if done or not part(body, "spec", "nodeName"):
        return 0
    if how.grace is not None:
        return max(0, how.grace)
    given = part(body, "spec", "terminationGracePeriodSeconds")
    return 30 if given is None else int(given)


FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_POLICIES: Final[Mapping[str | None, list[str]]] = {
    None: [], "": [], "Background": [], "Foreground": [FOREGROUND], "Orphan": [ORPHAN],
}  # fmt: skip
"""What finalizers each way of dealing with dependents puts on their owner."""


def _finalizers(body: Body, how: Deletion) -> list[str]:
    found = [name for name in meta(body).get("finalizers") or () if name not in (FOREGROUND, ORPHAN)]
    return found + _POLICIES.get(how.propagation, [])


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct, rename="camel"):
    grace_period_seconds: int | None = None
    preconditions: _Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None


def deletion_of(options: object, grace: str | None = None, propagation: str | None = None) -> Deletion:
    """How an object is to be deleted, from the DeleteOptions and the query of a request; refuses what is none."""
    try:
        found = msgspec.convert(options or {}, _DeleteOptions)
        seconds = msgspec.convert(grace, int, strict=False) if grace else None
    except msgspec.ValidationError as error:
        raise status_errors.bad_request(f"{grace or 'DeleteOptions'}: {error}") from error
    policy = "Orphan" if found.orphan_dependents else found.propagation_policy or propagation
    if policy not in _POLICIES:
        told = f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "{policy}"'
        raise ApiFailure(422, "Invalid", told)
    wanted = found.preconditions or _Preconditions()
    if found.grace_period_seconds is not None:
        seconds = found.grace_period_seconds
    return Deletion(seconds, wanted.uid, wanted.resource_version, policy)
