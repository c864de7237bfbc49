"""Why the filters of nodes refuse, in Kubernetes' words."""

from __future__ import annotations

from stromboli.plugin import Reason, StatusCode

POD_NUMBER = Reason("node(s) pod number exceeded")
CORDONED = Reason("node(s) were unschedulable", resolvable=False, plugin="NodeUnschedulable")
NODE_AFFINITY = Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False, plugin="NodeAffinity")
TAINTED = Reason("node(s) had untolerated taint(s)", resolvable=False, plugin="TaintToleration")
PORTS_TAKEN = Reason("node(s) didn't have free ports for the requested pod ports", plugin="NodePorts")
FAR_FROM_AFFINE = Reason("node(s) didn't match pod affinity rules", resolvable=False, plugin="InterPodAffinity")
NEAR_AVOIDED = Reason("node(s) didn't match pod anti-affinity rules", plugin="InterPodAffinity")
NEAR_AVOIDING = Reason("node(s) didn't satisfy existing pods anti-affinity rules", plugin="InterPodAffinity")
POD_AFFINITY = (FAR_FROM_AFFINE, NEAR_AVOIDED, NEAR_AVOIDING)
UNLABELLED = Reason(
    "node(s) didn't match pod topology spread constraints (missing required label)",
    resolvable=False,
    plugin="PodTopologySpread",
)
SKEWED = Reason("node(s) didn't match pod topology spread constraints", plugin="PodTopologySpread")
CACHED = Reason("plugin equivalence cache predicates failed", code=StatusCode.ERROR, plugin="predicate.CacheEnable")
PROPORTION = Reason("proportional of resource {resource} check failed", resolvable=False)

SIDECARS_OFF = Reason(
    "pod has a restartable init container and the SidecarContainers feature is disabled", code=StatusCode.ERROR
)
NAMES_CONFLICT = Reason("plugin NodeAffinity pre-predicates failed pod affinity terms conflict", code=StatusCode.ERROR)
