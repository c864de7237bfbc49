"""Statements: operations that are committed, kept or reverted together."""
