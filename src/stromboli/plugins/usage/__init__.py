"""usage: keeps pods off nodes that are loaded, whatever their pods have requested."""

from stromboli.plugins.usage.plugin import Usage

__all__ = ["Usage"]
