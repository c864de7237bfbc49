"""Workloads run in virtual time: jobs that come, wait, live for their runtimes and go."""
