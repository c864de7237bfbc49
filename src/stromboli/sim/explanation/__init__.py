"""Explanation: why a job waits and what would unblock it."""
