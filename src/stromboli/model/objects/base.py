"""What all objects of an API server have: metadata."""

from __future__ import annotations

import msgspec

from stromboli.model.spec import Wire


class OwnerReference(Wire, frozen=True):
    """An owner of an object; ``controller`` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Wire, frozen=True):
    """Identity of an object.  Times are RFC 3339 texts, None when absent."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()


class NamespacedMetadata(Metadata, frozen=True):
    """Identity of an object that lives in a namespace: ``default`` unless another is named."""

    namespace: str = "default"


class Object(Wire, frozen=True):
    """Base of all kinds."""

    metadata: Metadata = Metadata()
