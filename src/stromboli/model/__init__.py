"""The values of the domain: resources, jobs, queues, nodes and the snapshot that holds them. No I/O."""
