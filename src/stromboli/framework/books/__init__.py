"""The books of a session: sums of nodes, jobs and queues, the views on them, and the plan."""
