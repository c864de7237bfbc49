"""Priority classes, and the priority that they give a PodGroup."""

from __future__ import annotations

from stromboli.model.podgroup import PodGroup
from stromboli.model.queue import PriorityClass


class PriorityClassStore(dict[str, PriorityClass]):
    """Priority classes by name; ``default`` is the priority of PodGroups that name none."""

    def __init__(self) -> None:
        super().__init__()
        self.default = 0

    def take(self, value: PriorityClass, stays: bool) -> None:
        """Take a class in, new or changed, or forget it unless it ``stays``."""
        known = self.pop(value.name, None)
        if stays:
            self[value.name] = value
        if (known is not None and known.global_default) or value.global_default:
            self.find_default()

    def find_default(self) -> None:
        """Find the default again: of several classes that state one the smallest, as in Kubernetes; 0 without any."""
        self.default = min((known.value for known in self.values() if known.global_default), default=0)

    def of(self, group: PodGroup) -> int:
        """The priority of ``group``: its own number where it states one, else that of its class."""
        named = self.get(group.spec.priority_class_name)
        return group.priority if group.priority is not None else self.default if named is None else named.value
