"""The placement engine: filters and scores of task classes over all nodes as arrays."""
