"""Prometheus metrics, fed by an observer."""
