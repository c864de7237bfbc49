"""rescheduling: moves pods away from where they should not be, as the action shuffle carries out."""

from stromboli.plugins.rescheduling.plugin import Rescheduling

__all__ = ["Rescheduling"]
