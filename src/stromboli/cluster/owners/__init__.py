"""Owners of pods that other projects define: which pods they make, and how many must run at once."""
