"""proportion: queues share the cluster by weight; what one does not use, the others may."""

from stromboli.plugins.proportion.plugin import Proportion

__all__ = ["Proportion"]
