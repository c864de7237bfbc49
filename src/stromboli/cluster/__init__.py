"""The state of a cluster: events in, snapshots out, and the results assumed in between."""
