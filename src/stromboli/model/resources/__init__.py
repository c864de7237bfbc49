"""Quantities and resources: amounts, units and the axes of resource vectors."""
