"""Where what PodGroups and pods say departs from the reference; rows of :mod:`.compat`'s table."""

from __future__ import annotations

from typing import Final

from stromboli.framework.config.difference import Difference

TOLD: Final = (
    Difference(
        "events-while-bound",
        "A PodGroup of which every pod is decided and being bound is told nothing.",
        "Each cycle until its pods run warns: `0/N tasks in gang unschedulable: pod group is ready, N Binding, ...`.",
        "events",
        "It is no trouble, and the warnings are as many as the bindings.",
    ),
    Difference(
        "not-admitted",
        "A PodGroup that enqueue refuses bears the condition NotAdmitted with what each plugin said and weighed, until "
        "it is admitted.",
        "Events of type Normal say that resources are overused.",
        "enqueue",
        "Events expire, and name no amounts.",
    ),
    Difference(
        "quota-told",
        "A job whose queue has no quota left for one of its pods, or holds all that it deserves, says so on its "
        "PodGroup and its pods.",
        "The log says so at level 3; objects say how many pods wait.",
        "allocate",
        "Who waits cannot read the scheduler's log.",
    ),
    Difference(
        "hyper-nodes-told",
        "A job that needs its pods close together says on its PodGroup and its pods which HyperNode is wrong, while "
        "the HyperNodes form no tree, and on its PodGroup that no HyperNode bears the tier that it names.",
        "The log says so at level 4, or warns; objects say how many pods wait.",
        "allocate",
        "One wrong HyperNode stops all such jobs, and who waits cannot read the scheduler's log.",
    ),
)
