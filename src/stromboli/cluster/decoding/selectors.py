"""The selectors of Services and workloads: pods that one of them selects are spread by default."""

from __future__ import annotations

from stromboli.cluster import kinds
from stromboli.model.spec import LabelSelector


class SelectorStore(dict[str, dict[str, LabelSelector]]):
    """Selectors by namespace, and there by kind and name of what has them."""

    def apply(self, found: kinds.Service | kinds.ReplicationController | kinds.ReplicaSet, stays: bool) -> None:
        """Take an object in, new or changed, or let it go."""
        named = self.setdefault(found.metadata.namespace, {})
        named.pop(key := f"{type(found).__name__}/{found.metadata.name}", None)
        if stays:
            selector = found.spec.selector
            named[key] = selector if isinstance(selector, LabelSelector) else LabelSelector(selector)
