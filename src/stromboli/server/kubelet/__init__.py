"""Simulated kubelets: nodes that post their heartbeats and pods that run as long as they say, without containers.

They are clients of any Kubernetes API: of the embedded server in the same process, or of a real one.
"""
