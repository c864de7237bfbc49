"""What a live cluster costs: load on a real kube-apiserver, and what every process took for it.

The way of measuring is that of the figures for Volcano which stand beside ours: 1,000 simulated nodes of 32 CPU and
256 Gi, pods of 1 CPU and 1 Gi, a fresh API server for every run, the client's own clock for created, bound, running.
"""
