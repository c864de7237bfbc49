"""resource-strategy-fit: a strategy for each resource, packed or spread; scarce resources avoided or kept usable."""

from stromboli.plugins.resource_strategy_fit.plugin import ResourceStrategyFit

__all__ = ["ResourceStrategyFit"]
