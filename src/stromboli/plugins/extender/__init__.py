"""extender: decisions are asked of an HTTP server."""

from stromboli.plugins.extender.plugin import Extender

__all__ = ["Extender"]
