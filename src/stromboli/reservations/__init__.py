"""Reservations: room that is kept for a task from the eviction of pods until they have left and it is bound."""
