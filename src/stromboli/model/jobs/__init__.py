"""What is asked about a job by one concept: sums, minResources, minimums of roles, hypernodes."""
