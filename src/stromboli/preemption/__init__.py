"""Preemption and reclaim: which running tasks are evicted so that a waiting task fits."""
