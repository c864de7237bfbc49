"""What objects say that no record shall hold is taken off before the state sees them.

So no decision depends on what a record lacks.  Environments, commands and volumes of pods are not read in the first
place; what is left is annotations, of which those are kept that schedulers read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeVar

from msgspec.structs import replace

from stromboli.cluster.kinds import Metadata, Object, ReplicaSet, WorkloadSpec
from stromboli.model.names import SLA_WAITING_TIME_BARE
from stromboli.model.objects.storage import BIND_COMPLETED, BOUND_BY_CONTROLLER, CLASS_ANNOTATION, SELECTED_NODE

KEPT: Final = ("volcano.sh", "k8s.io", "hami.io", "stromboli.dev")
"""Domains of annotations that are kept, with all below them."""

KEPT_KEYS: Final = frozenset((
    SLA_WAITING_TIME_BARE, CLASS_ANNOTATION, BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE,
    "nvidia.com/use-gputype", "nvidia.com/nouse-gputype", "hami-vnpu-core",
    "huawei.com/vnpu-mode", "huawei.com/AscendReal", "huawei.com/npu-core",
))  # fmt: skip
"""Single annotations that are kept: what else such domains hold may be secret, such as options of mounts."""

MOST_KNOWN: Final = 1000
"""How many keys that are kept are remembered as such."""

O = TypeVar("O", bound=Object)  # noqa: E741


class Scrub:
    """Takes off all annotations but :data:`KEPT_KEYS`, and those of :data:`KEPT` and of ``domains``.

    The latter are what plugins declare that they read.
    ``dropped`` are the keys that were taken off, up to a hundred of them.
    """

    def __init__(self, domains: Collection[str] = ()) -> None:
        self._domains = (*KEPT, *domains)
        self.dropped: set[str] = set()
        self._known: set[str] = set()

    def clean(self, found: O) -> O:
        """``found`` without what no record shall hold; itself where it has nothing of that."""
        known = self._known
        for key in found.metadata.annotations:  # runs for every event; nearly always all keys are known
            if key not in known:
                found = self._of_kept(found)
                break
        if isinstance(found, ReplicaSet) and found.spec.template is not None:
            found = replace(found, spec=WorkloadSpec(selector=found.spec.selector))
        return found

    def _of_kept(self, found: O) -> O:
        annotations = found.metadata.annotations
        kept = {key: text for key, text in annotations.items() if self._is_kept(key)}
        return found if len(kept) == len(annotations) else replace(found, metadata=_with(found.metadata, kept))

    def _is_kept(self, key: str) -> bool:
        domain = key.partition("/")[0]
        if key in KEPT_KEYS or any(domain == one or domain.endswith(f".{one}") for one in self._domains):
            if len(self._known) < MOST_KNOWN:
                self._known.add(key)
            return True
        if len(self.dropped) < 100:
            self.dropped.add(key)
        return False


def _with(metadata: Metadata, annotations: dict[str, str]) -> Metadata:
    return replace(metadata, annotations=annotations)
