"""Stromboli: a batch scheduler for Kubernetes that takes Volcano's place.

A scheduling cycle is a pure function: it looks at a snapshot of the cluster once, decides, and returns
a plan. Everything with side effects stands outside of it.
"""

__version__ = "0.1.0"
