"""predicates: Kubernetes' own filters, volumes and claims of devices included, and how many pods a node may hold."""

from stromboli.plugins.predicates.claimed import Predicates

__all__ = ["Predicates"]
