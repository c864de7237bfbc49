"""Decoding of Kubernetes objects into the model."""
