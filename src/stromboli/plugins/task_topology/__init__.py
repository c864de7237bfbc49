"""task-topology: tasks of a job on the same node, or on different ones, as the job says."""

from stromboli.plugins.task_topology.plugin import TaskTopology

__all__ = ["TaskTopology"]
