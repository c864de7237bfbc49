"""Deciding alongside another scheduler, without a write, and telling where the two differ."""
