"""Small clusters that several rows begin from."""

from __future__ import annotations

from stromboli.testing.builders import Manifest, hyper_node, node, pod, pod_group

ONE_JOB = [node("n1", cpu=4), pod_group("g"), pod("p", group="g")]


CLOSE = {"mode": "hard", "highestTierAllowed": 2}
TREE: list[Manifest] = [
    *(node(f"n{i}") for i in range(4)), hyper_node("s0", 1, "n0", "n1"), hyper_node("s1", 1, "n2"),
    hyper_node("s2", 2, below=("s0", "s1"), tier_name="block"), pod_group("g", min_member=1, networkTopology=CLOSE),
]  # fmt: skip
