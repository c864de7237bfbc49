"""Allocation: placing the pending tasks of a job, network domain by network domain."""
