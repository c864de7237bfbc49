"""Schemas: resources and their definitions, decoding, defaults and validation."""
