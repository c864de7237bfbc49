"""numa-aware: pods go where the kubelet will find their CPUs on few NUMA nodes."""

from stromboli.plugins.numa_aware.plugin import NumaAware

__all__ = ["NumaAware"]
