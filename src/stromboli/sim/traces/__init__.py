"""Traces of real clusters as workloads."""
