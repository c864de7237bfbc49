"""Admission: quotas, limits, disruption budgets, pod rules and webhooks."""
