"""The server without its sockets: all parts put together, and what a cluster has from its first moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from stromboli.cluster.body import Body
from stromboli.crds.manifests import definitions
from stromboli.server.admission import Admission, standard
from stromboli.server.clockwork import Clockwork
from stromboli.server.keeping import Keeper, preinstalled, renewed
from stromboli.server.limits import Limits
from stromboli.server.openapi import Documents
from stromboli.server.ownership import track
from stromboli.server.pods import Pods
from stromboli.server.quotas import Quotas, Usage
from stromboli.server.reading import Reader
from stromboli.server.resources import Catalogue, Resource
from stromboli.server.store import Journal, Store
from stromboli.server.tokens import Tokens
from stromboli.server.validation import SYSTEM_CLASSES
from stromboli.server.watching import Watcher
from stromboli.server.webhooks import OwnKinds
from stromboli.server.writing import Writer

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
    the administrator's, without which nobody comes in from outside.
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
        chain = [*standard(self._taken), OwnKinds(), *admissions, Limits(), Quotas(usage)]
        self.writer = Writer(self.store, self, chain, clock, track(clock))
        self.reader = Reader(self.store)
        self.watcher = Watcher(self.store)
        self.documents = Documents(self.catalogue)
        pods = self.catalogue.find("", "v1", "pods")
        if pods is None:
            raise LookupError("pods are not served")
        self.pods = Pods(pods, self.store, self.writer, self, clock)
        self.keeper = Keeper(self.store, self.catalogue, self.writer, self, later, usage, certificate, clock)
        self.clockwork = Clockwork(self.store, self.catalogue, self.writer, clock)
        self.keeper.start()
        preinstalled(first_objects(), self.catalogue, self.writer)
        self.keeper.settle()
        renewed(definitions(), self.catalogue, self.writer)
        preinstalled(objects, self.catalogue, self.writer)

    def body(self, group: str, plural: str, namespace: str, name: str) -> Body | None:
        """An object, or None."""
        entry = self.store.get((group, plural), (namespace, name))
        return None if entry is None else entry.body

    def bodies(self, group: str, plural: str, namespace: str = "") -> Iterable[Body]:
        """All objects of a kind, or those in a namespace."""
        for key, entry in self.store.of((group, plural)).entries.items():
            if not namespace or key[0] == namespace:
                yield entry.body

    def _taken(self, group: str, plural: str) -> Resource | None:
        return self.catalogue.stored().get((group, plural))
