"""The filters and scores of Kubernetes' own scheduler as pure functions."""
