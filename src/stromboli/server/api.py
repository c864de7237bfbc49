"""The server without its sockets: all parts put together, and what a cluster has from its first moment."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from stromboli.cluster.body import Body, key_of, meta, part
from stromboli.errors import ApiFailure
from stromboli.server.admission.admission import Admission, standard
from stromboli.server.admission.limits import Limits
from stromboli.server.admission.pods import Pods
from stromboli.server.admission.quotas import Quotas, Usage
from stromboli.server.admission.registered import Registered
from stromboli.server.admission.webhooks import OwnKinds
from stromboli.server.controllers.controllers import Keeper, preinstalled, renewed
from stromboli.server.controllers.node_lifecycle import Clockwork
from stromboli.server.controllers.own_definitions import own_definitions
from stromboli.server.http.openapi import Documents
from stromboli.server.http.tokens import Tokens
from stromboli.server.kubelet.logs import Written, stated
from stromboli.server.schema.definitions import COLLECTION, collection_of
from stromboli.server.schema.resources import Catalogue, Resource
from stromboli.server.schema.validation import SYSTEM_CLASSES
from stromboli.server.storage.reading import Reader
from stromboli.server.storage.store import Entry, Journal, Store
from stromboli.server.storage.watching import Watcher
from stromboli.server.verbs.ownership import track
from stromboli.server.verbs.writing import Writer

_LOG: Final = logging.getLogger(__name__)
_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


def _classes() -> Iterable[Body]:
    uses = ("must run in the cluster", "must not be moved from their current node")
    for (name, value), use in zip(SYSTEM_CLASSES.items(), uses, strict=True):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"Used for system critical pods that {use}.",
        }


def first_objects() -> Iterable[Body]:
    """What every cluster has from its first moment."""
    for name in _NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield from _classes()
    service = {"ports": [{"name": "https", "port": 443, "targetPort": 6443}], "clusterIP": "10.96.0.1"}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": service,
    }


class Api:
    """One cluster's API.  ``later`` runs a function soon, as the event loop's ``call_soon`` does.

    ``admissions`` come after the standard ones; ``objects`` are created at the start where they are missing, after the
    definitions of our own kinds.  ``certificate`` is the authority's certificate that namespaces are told; ``token`` is
    the administrator's, without which no client gets in.
    """

    def __init__(
        self,
        later: Callable[[Callable[[], None]], object],
        *,
        journal: Journal | None = None,
        admissions: Sequence[Admission] = (),
        objects: Iterable[Body] = (),
        clock: Callable[[], float] = time.time,
        certificate: str = "",
        token: str = "",
    ) -> None:
        self.clock = clock
        self.tokens = Tokens(token, self, clock)
        self.catalogue = Catalogue()
        self.store = Store(journal)
        usage = Usage(self.store, self)
        users = Registered(self._versions, self._kind_of)
        chain = [*standard(self._taken), OwnKinds(), *admissions, Limits(), users, Quotas(usage)]
        self.writer = Writer(self.store, self, chain, clock, track(clock))
        self.reader = Reader(self.store)
        self.watcher = Watcher(self.store)
        self.documents = Documents(self.catalogue)
        pods = self.catalogue.find("", "v1", "pods")
        if pods is None:
            raise LookupError("pods are not served")
        self.pods = Pods(pods, self.store, self.writer, self, clock)
        self.written: Written = stated
        """What containers have written, for ``kubectl logs``."""
        self.keeper = Keeper(self.store, self.catalogue, self.writer, self, later, usage, certificate, clock)
        self.clockwork = Clockwork(self.store, self.catalogue, self.writer, clock)
        self.keeper.start()
        self._preinstall_first()
        self.keeper.settle()
        self._renew_definitions()
        preinstalled(objects, self.catalogue, self.writer)

    def _preinstall_first(self) -> None:
        """Create what every cluster has; what a user's own objects forbid, such as a quota, keeps no start."""
        for body in first_objects():
            try:
                preinstalled([body], self.catalogue, self.writer)
            except ApiFailure as failure:
                _LOG.warning("%s %s is missing: %s", body["kind"], meta(body)["name"], failure)

    def _renew_definitions(self) -> None:
        """Bring our kinds' definitions up to date; one that a user made in such a place and cannot become ours goes."""
        for definition in own_definitions():
            try:
                renewed([definition], self.catalogue, self.writer, sound=True)
            except ApiFailure as failure:
                found = self.store.get(COLLECTION, key_of(definition))
                if found is None:
                    raise
                self._set_aside(found, definition, str(failure))
                renewed([definition], self.catalogue, self.writer, sound=True)

    def _set_aside(self, theirs: Entry, ours: Body, why: str) -> None:
        """Take out a user's definition, and those of its objects that ours cannot have for their scope."""
        self.store.set_aside(COLLECTION, theirs, why)
        collection, namespaced = collection_of(ours), part(ours, "spec", "scope") == "Namespaced"
        for entry in list(self.store.of(collection).entries.values()):
            if bool(entry.key[0]) is not namespaced:
                self.store.set_aside(collection, entry, why)

    def body(self, group: str, plural: str, namespace: str, name: str) -> Body | None:
        """An object, or None."""
        entry = self.store.get((group, plural), (namespace, name))
        return None if entry is None else entry.body

    def bodies(self, group: str, plural: str, namespace: str = "") -> Iterable[Body]:
        """All objects of a kind, or those in a namespace."""
        for key, entry in self.store.of((group, plural)).entries.items():
            if not namespace or key[0] == namespace:
                yield entry.body

    def _versions(self, resource: Resource) -> list[str]:
        return [one.version for one in self.catalogue if one.collection == resource.collection]

    def _kind_of(self, api_version: str, kind: str) -> Resource | None:
        return next((one for one in self.catalogue if (one.group_version, one.kind) == (api_version, kind)), None)

    def _taken(self, group: str, plural: str) -> Resource | None:
        return self.catalogue.stored().get((group, plural))
