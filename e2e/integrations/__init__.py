"""Recorded integrations on servers with sockets."""
