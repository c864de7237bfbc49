"""network-topology-aware: keeps the pods of a job within one domain of the network, the narrower the better."""

from stromboli.plugins.network_topology_aware.plugin import NetworkTopologyAware

__all__ = ["NetworkTopologyAware"]
