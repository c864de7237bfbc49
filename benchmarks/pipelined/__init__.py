"""Measures what keeping reservations across sessions changes: the same crowded clusters with the gate on and off."""
