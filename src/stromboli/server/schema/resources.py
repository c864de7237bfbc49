"""What is served: each kind with its group, version, names and subresources; Kubernetes' own as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from stromboli.cluster.body import Body
from stromboli.server.schema.schema import BOOK, Schema

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The same, in the order in which Kubernetes names them for custom resources."""


@dataclass(frozen=True, eq=False)
class Resource:
    """A kind of objects in one version.

    ``schema`` says how they look; ``columns`` holds the printer columns of a custom resource; ``custom`` tells custom
    resources from Kubernetes' own.  Versions of the same kind share one ``collection``.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    schema: Schema = field(default_factory=lambda: BOOK.open({}))
    singular: str = ""
    list_kind: str = ""
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    columns: tuple[Body, ...] = ()
    custom: bool = False

    @property
    def group_version(self) -> str:
        """As in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def collection(self) -> tuple[str, str]:
        """Name of the collection that holds the objects, the same in all versions."""
        return self.group, self.plural

    @property
    def title(self) -> str:
        """Plural with group, as ``kubectl`` prints it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def one(self) -> str:
        """Singular name."""
        return self.singular or self.kind.lower()

    @property
    def many(self) -> str:
        """Kind of a list of them."""
        return self.list_kind or f"{self.kind}List"


_PACKAGES: Final = {
    "": "io.k8s.api.core.v1",
    "apps": "io.k8s.api.apps.v1",
    "batch": "io.k8s.api.batch.v1",
    "networking.k8s.io": "io.k8s.api.networking.v1",
    "policy": "io.k8s.api.policy.v1",
    "scheduling.k8s.io": "io.k8s.api.scheduling.v1",
    "coordination.k8s.io": "io.k8s.api.coordination.v1",
    "rbac.authorization.k8s.io": "io.k8s.api.rbac.v1",
    "resource.k8s.io": "io.k8s.api.resource.v1",
    "storage.k8s.io": "io.k8s.api.storage.v1",
    "authorization.k8s.io": "io.k8s.api.authorization.v1",
    "authentication.k8s.io": "io.k8s.api.authentication.v1",
    "admissionregistration.k8s.io": "io.k8s.api.admissionregistration.v1",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
}
"""Where the types of a group's version 1 stand in the table of types."""

_TABLE: Final = """
                           configmaps                ConfigMap                cm      -
                           endpoints                 Endpoints                ep      -
                           events                    Event                    ev      -
                           limitranges               LimitRange               limits  -
                           namespaces                Namespace               !ns      status,finalize
                           nodes                     Node                    !no      status
                           persistentvolumeclaims    PersistentVolumeClaim    pvc     status
                           persistentvolumes         PersistentVolume        !pv      status
                           pods                      Pod                      po      status,binding,eviction,log
                           podtemplates              PodTemplate              -       -
                           replicationcontrollers    ReplicationController    rc      status,scale
                           resourcequotas            ResourceQuota            quota   status
                           secrets                   Secret                   -       -
                           serviceaccounts           ServiceAccount           sa      token
                           services                  Service                  svc     status
admissionregistration.k8s.io mutatingwebhookconfigurations MutatingWebhookConfiguration !- -
admissionregistration.k8s.io validatingadmissionpolicies ValidatingAdmissionPolicy !- status
admissionregistration.k8s.io validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding !- -
admissionregistration.k8s.io validatingwebhookconfigurations ValidatingWebhookConfiguration !- -
apiextensions.k8s.io       customresourcedefinitions CustomResourceDefinition !crd,crds status
apps                       controllerrevisions       ControllerRevision       -       -
apps                       daemonsets                DaemonSet                ds      status
apps                       deployments               Deployment               deploy  status,scale
apps                       replicasets               ReplicaSet               rs      status,scale
apps                       statefulsets              StatefulSet              sts     status,scale
batch                      cronjobs                  CronJob                  cj      status
batch                      jobs                      Job                      -       status
coordination.k8s.io        leases                    Lease                    -       -
networking.k8s.io          networkpolicies           NetworkPolicy            netpol  -
policy                     poddisruptionbudgets      PodDisruptionBudget      pdb     status
rbac.authorization.k8s.io  clusterrolebindings       ClusterRoleBinding      !-       -
rbac.authorization.k8s.io  clusterroles              ClusterRole             !-       -
rbac.authorization.k8s.io  rolebindings              RoleBinding              -       -
rbac.authorization.k8s.io  roles                     Role                     -       -
resource.k8s.io            deviceclasses             DeviceClass              !-       -
resource.k8s.io            resourceclaims            ResourceClaim            -       status
resource.k8s.io            resourceclaimtemplates    ResourceClaimTemplate    -       -
resource.k8s.io            resourceslices            ResourceSlice            !-       -
scheduling.k8s.io          priorityclasses           PriorityClass           !pc      -
scheduling.k8s.io/v1beta1  podgroups                 PodGroup                -        status
scheduling.k8s.io/v1beta1  workloads                 Workload                -        -
scheduling.k8s.io/v1alpha3 compositepodgroups        CompositePodGroup       -        status
storage.k8s.io             csidrivers                CSIDriver               !-       -
storage.k8s.io             csinodes                  CSINode                 !-       -
storage.k8s.io             csistoragecapacities      CSIStorageCapacity       -       -
storage.k8s.io             storageclasses            StorageClass            !sc      -
storage.k8s.io             volumeattachments         VolumeAttachment        !-       status
"""
"""Group, with its version if that is not v1, plural, kind, short names (``!``: not in a namespace), subresources; ``-``
is none."""

_ALL: Final = frozenset(
    {"pods", "replicationcontrollers", "services", "daemonsets", "deployments", "replicasets", "statefulsets"}
    | {"jobs", "cronjobs"}
)
"""What ``kubectl get all`` shows."""

_REVIEWS: Final = """
authentication.k8s.io  selfsubjectreviews        SelfSubjectReview         !
authentication.k8s.io  tokenreviews              TokenReview               !
authorization.k8s.io   localsubjectaccessreviews LocalSubjectAccessReview  -
authorization.k8s.io   selfsubjectaccessreviews  SelfSubjectAccessReview   !
authorization.k8s.io   selfsubjectrulesreviews   SelfSubjectRulesReview    !
authorization.k8s.io   subjectaccessreviews      SubjectAccessReview       !
"""
"""What can only be posted, and is answered at once."""


def type_name(group: str, kind: str, version: str = "v1") -> str:
    """Name of a kind in the table of types."""
    return f"{_PACKAGES[group].removesuffix('v1')}{version}.{kind}"


def _rows(table: str, width: int) -> Iterator[list[str]]:
    for line in table.strip("\n").splitlines():
        cells = line.replace("!", " ! ").split()
        group = "" if line[0] == " " else cells.pop(0)
        where = "!" if "!" in cells else "-"
        cells = [cell for cell in cells if cell != "!"]
        yield [group, where, *cells][:width]


def _names(cell: str) -> tuple[str, ...]:
    return () if cell == "-" else tuple(cell.split(","))


def built_in() -> Iterator[Resource]:
    """All kinds that Kubernetes itself brings and this server stores."""
    for found, where, plural, kind, short, subresources in _rows(_TABLE, 6):
        group, _, newer = found.partition("/")
        version = newer or "v1"
        yield Resource(
            group, version, plural, kind, where != "!", _names(short), _names(subresources),
            schema=BOOK.named(type_name(group, kind, version)),
            verbs=tuple(verb for verb in VERBS if (plural, verb) != ("namespaces", "deletecollection")),
            categories=("all",) if plural in _ALL else ("api-extensions",) if group == "apiextensions.k8s.io" else (),
        )  # fmt: skip


def reviews() -> Iterator[Resource]:
    """All kinds that are answered at once and never stored."""
    for group, where, plural, kind in _rows(_REVIEWS, 4):
        schema = BOOK.named(type_name(group, kind))
        yield Resource(group, "v1", plural, kind, where != "!", schema=schema, verbs=("create",))


TOKEN_REQUESTS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenrequests", "TokenRequest",
    schema=BOOK.named(type_name("authentication.k8s.io", "TokenRequest")),
)  # fmt: skip
"""What is posted to service accounts; it has no address of its own."""


class Catalogue:
    """What is served just now.  Custom resources come and go."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._stored: tuple[int, dict[tuple[str, str], Resource]] = (-1, {})
        self.revision = 0
        """Grows with every change."""
        for resource in (*built_in(), *reviews()):
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Serve a kind from now on."""
        self._resources[resource.group, resource.version, resource.plural] = resource
        self.revision += 1

    def remove(self, collection: tuple[str, str]) -> None:
        """Serve all versions of a kind no longer."""
        for key in [key for key, found in self._resources.items() if found.collection == collection]:
            del self._resources[key]
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The kind of this plural name."""
        return self._resources.get((group, version, plural))

    def stored(self) -> Mapping[tuple[str, str], Resource]:
        """One version of each kind that is stored, by its collection."""
        if self._stored[0] != self.revision:
            kept = {found.collection: found for found in self._resources.values() if "list" in found.verbs}
            self._stored = (self.revision, kept)
        return self._stored[1]

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The kind that a manifest names."""
        for found in self._resources.values():
            if found.kind == kind and found.group_version == api_version:
                return found
        return None

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources.values())
