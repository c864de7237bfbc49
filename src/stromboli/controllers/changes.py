"""What reconcilers want done, as data.  Their runner carries it out against an API server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import msgspec

from stromboli.api.fields import Metadata
from stromboli.api.kinds import KINDS
from stromboli.job_plugins.wanted import Wanted
from stromboli.model.names import EVENT_NORMAL, EVENT_WARNING

Json: TypeAlias = dict[str, object]

PERSISTENT_VOLUME_CLAIMS = "persistentvolumeclaims"


class Subject(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def subject(kind: str, metadata: Metadata) -> Subject:
    """An object of ours, of ``kind``, as events name it."""
    return Subject(KINDS[kind].api_version, kind, metadata.namespace, metadata.name, metadata.uid)


def owned_by(owner: Subject) -> Json:
    """The owner reference of an object that ``owner`` controls."""
    named: Json = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**named, "controller": True, "blockOwnerDeletion": True}


class Create(NamedTuple):
    """Make an object; that it is there already is fine."""

    resource: str
    namespace: str
    body: Json


class Patch(NamedTuple):
    """Change parts of an object by a merge patch; ``status`` where that is a subresource of its own."""

    resource: str
    namespace: str
    name: str
    body: Json
    status: bool = False


class Delete(NamedTuple):
    """Delete an object, if it still is the one of ``uid``; that it is gone already is fine."""

    resource: str
    namespace: str
    name: str
    uid: str
    foreground: bool = False


class Keep(NamedTuple):
    """See to it that an object is there, and says what the job plugin ``plugin`` wants.

    ``owner`` is the owner reference to the job; ``known`` says that the object is most likely there already.
    """

    plugin: str
    namespace: str
    wanted: Wanted
    owner: Json
    known: bool = False

    @property
    def resource(self) -> str:
        """The object's resource."""
        return self.wanted.resource

    @property
    def owner_uid(self) -> str:
        """The job's uid."""
        return str(self.owner["uid"])


class Drop(NamedTuple):
    """Delete an object that a job plugin wanted, if it is the one of the job of ``owner_uid``."""

    resource: str
    namespace: str
    name: str
    owner_uid: str


class KillPod(NamedTuple):
    """Mark a pod as the controller's own doing, then delete it; a pod that cannot be marked is left alone."""

    namespace: str
    name: str
    uid: str


class Emit(NamedTuple):
    """Tell an event; ``type`` is Normal or Warning.

    It tells a state, which each look tells again while it lasts, or something that has ``happened``, each time anew.
    """

    about: Subject
    type: str
    reason: str
    message: str
    happened: bool = False


class Read(NamedTuple):
    """Read an object of whatever kind, so that the next look knows it; that it cannot be read is an answer, too."""

    api_version: str
    plural: str
    kind: str
    namespace: str
    name: str


class Ask(NamedTuple):
    """Have another object looked at: a queue, with an action."""

    queue: str
    action: str


class Target(NamedTuple):
    """What one address is asked: by HTTP where there is a ``path``, else whether the port takes a connection."""

    address: str
    port: int
    path: str = ""
    header: tuple[str, str] | None = None


class Query(NamedTuple):
    """Ask addresses; the next look knows what they have answered."""

    targets: tuple[Target, ...]


Change = Create | Patch | Delete | Keep | Drop | KillPod | Emit | Ask | Read | Query


@dataclass(slots=True)
class Outcome:
    """What one look at one object leads to.

    ``batches`` are carried out one after the other, the changes of one batch in any order; the first that fails ends
    it, and the look is repeated.  ``error`` is why it must be repeated in any case, ``after`` the seconds after which
    it should be, None for not before something happens.  ``rest`` is how many seconds no other look at the object
    follows, whatever happens: looks that cost much are worth it now and then only.
    """

    batches: list[list[Change]] = field(default_factory=list)
    error: str = ""
    after: float | None = None
    rest: float = 0.0

    def then(self, *changes: Change) -> Outcome:
        """Add a batch; returns self."""
        if changes:
            self.batches.append(list(changes))
        return self

    def again(self, seconds: float) -> None:
        """Have the object looked at again when so many seconds have passed, or sooner."""
        self.after = seconds if self.after is None else min(seconds, self.after)

    def changes(self) -> list[Change]:
        """All changes in order."""
        return [change for batch in self.batches for change in batch]


def normal(about: Subject, reason: str, message: str, *, happened: bool = False) -> Emit:
    """An event of type Normal."""
    return Emit(about, EVENT_NORMAL, reason, message, happened)


def warning(about: Subject, reason: str, message: str, *, happened: bool = False) -> Emit:
    """An event of type Warning."""
    return Emit(about, EVENT_WARNING, reason, message, happened)


def builtins(value: msgspec.Struct) -> Json:
    """A value as plain JSON values, what is default left out."""
    found = msgspec.to_builtins(value)
    return found if isinstance(found, dict) else {}


def difference(old: Mapping[str, object], new: Mapping[str, object]) -> Json:
    """The merge patch (RFC 7386) that makes ``new`` of ``old``; empty when they are equal."""
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := difference(before, value):
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch
