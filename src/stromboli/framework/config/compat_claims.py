"""Where volumes and claims of devices depart from the reference; rows of :mod:`.compat`'s table."""

from __future__ import annotations

from typing import Final

from stromboli.framework.config.difference import Difference

CLAIMS: Final = (
    Difference(
        "attachable-volumes",
        "How many volumes a node's CSI drivers attach is their CSINode's say, unless the provisioner is among those "
        "ignored; nodes without one attach any number.",
        "Each claim also asks for a thousandth of `attachable-volumes-csi-DRIVER`, which nodes without a CSINode do "
        "not offer, local volumes included: `kubernetes.io/no-provisioner` counts as a driver. Ignored provisioners "
        "are left out of this alone: what a CSINode says holds for them, too.",
        "cluster state, predicates",
        "Pods with local volumes should be bound without a flag that excuses them.",
    ),
    Difference(
        "claims-under-way",
        "Pods of one cycle share a ResourceClaim that the cycle allocates.",
        "Such pods wait until the claim's allocation is written: a gang that shares a claim never starts.",
        "predicates",
        "A gang with a shared device should start.",
    ),
    Difference(
        "missing-claims",
        "A pod that names a ResourceClaim which is not there counts in its queue, and is told that it waits for it.",
        "It is not known to the scheduler until the claim is there; so in scenarios alone.",
        "cluster state",
        "The pod's owner should see what it waits for.",
    ),
    Difference(
        "read-write-once-pod",
        "A pod waits while another has its claim with access mode ReadWriteOncePod.",
        "It is bound, and waits at its kubelet.",
        "predicates",
        "A gang would hold its nodes and not start.",
    ),
    Difference(
        "storage-scores",
        "With `volumebinding.shape` nodes are scored by how much of volumes, or of drivers' room, pods would use.",
        "Kubernetes' feature gate StorageCapacityScoring is off in it, so that the argument acts on nothing.",
        "predicates",
        "An argument should do what it says.",
    ),
)
