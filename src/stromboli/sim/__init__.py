"""Simulation: workloads and traces, and the life of pods under a virtual clock."""
