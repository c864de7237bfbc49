"""The live scheduler: cluster events in, a cycle at a time, decisions out."""
