"""The embedded cluster: a Kubernetes-compatible API server on the local machine, and simulated kubelets.

An unmodified kubectl, and any client that speaks JSON, works against it.  Objects live in memory and, if wished, in an
SQLite file.  Nothing here knows the scheduler: it is one client among others.
"""
