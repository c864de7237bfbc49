"""``stromboli up``: an embedded cluster with scheduler and controllers in one process."""
