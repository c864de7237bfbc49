"""Checks of configurations and queue objects before they are applied: rules as tables, findings as data."""
