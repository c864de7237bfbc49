"""Controllers of the embedded cluster: garbage collection, node lifecycle and workloads."""
