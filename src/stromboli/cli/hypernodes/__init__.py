"""Network domains of a cluster, shown."""
