"""The sharding controller: a NodeShard for each scheduler that a ConfigMap names, and the nodes that each should use.

:mod:`~.configuration` reads what is asked for, :mod:`~.policies` says which nodes suit a scheduler, :mod:`~.division`
divides the nodes, :mod:`~.controller` makes the NodeShards say so.
"""
