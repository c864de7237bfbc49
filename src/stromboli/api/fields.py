"""What fields of our kinds are made of: types with the rules that a Kubernetes API server checks for them.

A rule stands next to the field that it is about, as ``Annotated[type, rule(...), Says("...")]``; the OpenAPI schema is
made of it (:mod:`stromboli.crds.schema`).  Decoding does not check rules: what is stored stays readable.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from stromboli.model import spec
from stromboli.model.names import LONGEST_NAME
from stromboli.model.spec import Amount, Wire

DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
LONGEST_LABEL: Final = 63
REQUIRED: Final = "x-stromboli-required"
"""Key of a rule: the field must be given.  It is no part of the schema; its class's ``required`` names the field."""


def rule(**schema: object) -> Meta:
    """Parts of an OpenAPI schema by their names, ``x_kubernetes_...`` for ``x-kubernetes-...``."""
    return Meta(extra_json_schema={_spelled(key): value for key, value in schema.items()})


def _spelled(key: str) -> str:
    return key.replace("_", "-") if key.startswith("x_") else key


def says(text: str) -> Meta:
    """The sentence that ``kubectl explain`` and the documentation show for a field."""
    return Meta(description=text)


def one_of(*values: str) -> Meta:
    """The texts that a field may hold."""
    return rule(enum=list(values))


NEEDED: Final = rule(x_stromboli_required=True)
"""The field must be given."""

Int32: TypeAlias = Annotated[int, rule(format="int32")]
Int64: TypeAlias = Annotated[int, rule(format="int64")]
Count: TypeAlias = Annotated[int, rule(format="int32", minimum=0)]
Number: TypeAlias = Annotated[int, rule(minimum=0)]
"""A number from 0 of no stated width."""
Name: TypeAlias = Annotated[str, rule(maxLength=LONGEST_NAME)]
DnsName: TypeAlias = Annotated[str, rule(maxLength=LONGEST_NAME, pattern=DNS_SUBDOMAIN)]
Time: TypeAlias = Annotated[str, rule(format="date-time")]
"""An RFC 3339 text."""
Quantity: TypeAlias = Annotated[
    Amount,
    rule(anyOf=[{"type": "integer"}, {"type": "string"}], pattern=QUANTITY, x_kubernetes_int_or_string=True),
]
ResourceList: TypeAlias = dict[str, Quantity]
Texts: TypeAlias = dict[str, str]
KUBERNETES: Final = "x-stromboli-kubernetes-type"
"""Key of a rule: the field is of the type of Kubernetes' own of that name, whose schema stands in its place."""
POD_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"
CLAIM: Final = "io.k8s.api.core.v1.PersistentVolumeClaimSpec"


def of_type(name: str) -> Meta:
    """The field is of a type of Kubernetes' own (:mod:`stromboli.crds.kubernetes_types`)."""
    return rule(x_stromboli_kubernetes_type=name)


FIELDS_OF: Final = "x-stromboli-fields-of"
"""Key of a rule: the field holds some fields of the class of that name, whose schema stands in its place."""


def fields_of(cls: type[Wire]) -> Meta:
    """The field holds some fields of ``cls``, kept as they are written: a default that is stated says something.

    Its schema has no defaults: what the API server filled in would count as stated.
    """
    return rule(x_stromboli_fields_of=cls.__name__)


Anything: TypeAlias = Annotated[dict[str, object], rule(x_kubernetes_preserve_unknown_fields=True)]
"""An object of a kind that is Kubernetes' own: kept as it is, whatever it holds."""


class OwnerReference(Wire, frozen=True):
    """The owner of an object."""

    api_version: Annotated[str, NEEDED, says("API group and version of the owner.")] = ""
    kind: Annotated[str, NEEDED, says("Kind of the owner.")] = ""
    name: Annotated[str, NEEDED, says("Name of the owner.")] = ""
    uid: Annotated[str, NEEDED, says("UID of the owner.")] = ""
    controller: Annotated[bool, says("Whether this owner manages the object.")] = False
    block_owner_deletion: Annotated[
        bool, says("Whether the owner stays until the object is gone, when it is deleted in the foreground.")
    ] = False


class Metadata(Wire, frozen=True):
    """Identity of an object.  Times are RFC 3339 texts, None when absent."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Texts = {}
    annotations: Texts = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Resource(Wire, frozen=True):
    """Base of all kinds."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Metadata()


class LabelRequirement(spec.Requirement, frozen=True):
    """One expression of a label selector."""

    key: Annotated[str, NEEDED, says("Label that the expression is about.")] = ""
    operator: Annotated[str, NEEDED, says("In, NotIn, Exists or DoesNotExist.")] = ""
    values: Annotated[
        tuple[str, ...], rule(x_kubernetes_list_type="atomic"), says("Values for In and NotIn; empty for the others.")
    ] = ()


class LabelSelector(spec.LabelSelector, frozen=True):
    """Labels and expressions that must all hold."""

    match_labels: Annotated[Texts, says("Labels and the values that they must have.")] = {}
    match_expressions: Annotated[
        tuple[LabelRequirement, ...], rule(x_kubernetes_list_type="atomic"), says("Expressions that must hold.")
    ] = ()


HARD: Final = "hard"
SOFT: Final = "soft"


class NetworkTopology(Wire, frozen=True):
    """How close together pods must be, in tiers of hypernodes."""

    mode: Annotated[
        str,
        one_of(HARD, SOFT),
        rule(default=HARD),
        says("hard: the pods wait until they fit within the tier; soft: the tier is a preference."),
    ] = HARD
    highest_tier_allowed: Annotated[
        Number | None, says("Highest tier, by number, that the pods may be spread over. Excludes highestTierName.")
    ] = None
    highest_tier_name: Annotated[
        Name, says("Highest tier, by name, that the pods may be spread over. Excludes highestTierAllowed.")
    ] = ""
