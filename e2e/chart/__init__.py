"""Helm's chart, rendered and checked by Helm itself."""
