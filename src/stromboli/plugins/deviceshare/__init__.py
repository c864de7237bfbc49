"""deviceshare: pods share the cards of a node, each with a part of its memory or time, or get whole cards.

A kind of device is one module with one class (:mod:`stromboli.plugins.deviceshare.kind`).
"""

from stromboli.plugins.deviceshare.fragmentation import Fragmentation
from stromboli.plugins.deviceshare.holdings import Holding, cards_in_use, every_kind, holdings
from stromboli.plugins.deviceshare.plugin import DeviceShare, idle_cards

__all__ = ["DeviceShare", "Fragmentation", "Holding", "cards_in_use", "every_kind", "holdings", "idle_cards"]
