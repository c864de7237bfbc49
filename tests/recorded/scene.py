"""What a recorded scene is: a configuration, a cluster, and what happens to it from cycle to cycle."""

from __future__ import annotations

from dataclasses import dataclass, field

from stromboli.framework.config.sampling import Sampling
from stromboli.testing.builders import Manifest

BEGINNING = 1_760_000_000.0
"""When the first cycle runs, in seconds since 1970."""


@dataclass(frozen=True)
class Turn:
    """What happens before a cycle: ``seconds`` pass, objects come or change, others go, nodes are measured.

    ``usage`` are loads of CPU and memory in percent, by node.
    """

    seconds: float = 0.0
    objects: list[Manifest] = field(default_factory=list)
    gone: list[Manifest] = field(default_factory=list)
    usage: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scene:
    """A cluster and its turns, of which each ends with a cycle; the first turn's objects are there from the beginning.

    ``lingers``: evicted pods are there for one cycle more.  ``bound`` pods do not run before the cycle after the next.
    ``gates`` are feature gates as on a command line; ``shard`` says how nodes are divided (hard, soft), and which are
    ours.
    """

    name: str
    conf: str
    turns: list[Turn]
    compat: bool = False
    lingers: bool = False
    bound: bool = False
    gates: str = ""
    sampling: Sampling | None = None
    shard: tuple[str, tuple[str, ...]] = ("", ())
