"""Claimed devices (dynamic resource allocation): which nodes offer what claims ask for, and what claims get."""
