"""Controllers of Deployments, ReplicaSets, StatefulSets, DaemonSets, batch Jobs and claims on the embedded cluster.

Each looks at one object and its pods as they stand, and changes what differs from what the object asks for.
"""
