"""Volumes: which nodes reach those that pods have, and where those that they lack can be bound or made."""
