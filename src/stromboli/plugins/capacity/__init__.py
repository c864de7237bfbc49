"""capacity: queues get what they deserve by amount, alone or in a tree."""

from stromboli.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
