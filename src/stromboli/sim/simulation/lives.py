"""How pods live on their nodes: starts, checkpoints, failures, and what is lost when a pod leaves before its end."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final, Literal

import msgspec
import yaml

from stromboli.errors import ManifestError

HOUR: Final = 3600.0


class Lives(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What holds for every pod of a simulation; times in seconds, 0: never, or at once.

    ``lost`` is what an eviction or failure takes: ``all`` that was done, what was done since the last ``checkpoint``,
    or ``none``.  A checkpoint is saved after every ``checkpoint_every`` seconds of work and costs ``checkpoint_cost``;
    a pod that begins again costs ``restart_cost`` first.  ``restarts`` is what begins again: the ``pod`` alone, or all
    pods of its ``job``, as gangs of MPI or torchrun do.  Failures are exponentially distributed with the means
    ``pod_mtbf`` and, for each node, ``node_mtbf``; a node comes back after ``node_mttr``.  A job that has failed more
    than ``retries`` times ends; by default it tries for ever.
    """

    start_after: float = 0.0
    stop_after: float = 0.0
    lost: Literal["all", "checkpoint", "none"] = "all"
    checkpoint_every: float = 0.0
    checkpoint_cost: float = 0.0
    restart_cost: float = 0.0
    restarts: Literal["pod", "job"] = "pod"
    pod_mtbf: float = 0.0
    node_mtbf: float = 0.0
    node_mttr: float = HOUR
    retries: int | None = None

    def __post_init__(self) -> None:
        wrong = [
            name
            for name in self.__struct_fields__
            if isinstance(value := getattr(self, name), float | int) and value < 0
        ]
        if wrong:
            raise ValueError(f"{wrong[0]} is less than 0")
        if self.lost == "checkpoint" and not self.checkpoint_every:
            raise ValueError("lost: checkpoint needs checkpointEvery, the seconds of work between checkpoints")

    def stay(self, work: float, again: bool) -> float:
        """How long a pod runs that has ``work`` seconds to do: with its checkpoints, and begun ``again`` or not.

        No checkpoint is saved at the very end.
        """
        saves = -(-work // self.checkpoint_every) - 1 if self._saves and work > 0 else 0.0
        return self.restart_cost * again + work + saves * self.checkpoint_cost

    def progress(self, ran: float, work: float, again: bool) -> tuple[float, float]:
        """What a pod has done after it ``ran`` for so long, in seconds of work, and what of that is saved."""
        ran = max(ran - self.restart_cost * again, 0.0)
        if not self._saves:
            done = min(ran, work)
            return done, done if self.lost == "none" else 0.0
        whole, rest = divmod(ran, self.checkpoint_every + self.checkpoint_cost)
        saved = min(whole * self.checkpoint_every, work)
        return min(saved + min(rest, self.checkpoint_every), work), saved

    def fails_after(self, seed: int, pod: str) -> float | None:
        """When a stay of the pod fails, drawn by its uid, so that no schedule changes it; None: never."""
        return Random(f"{seed} {pod}").expovariate(1 / self.pod_mtbf) if self.pod_mtbf else None

    @property
    def _saves(self) -> bool:
        return self.lost == "checkpoint"


PLAIN: Final = Lives()
"""Pods that start at once, never fail and begin again when they are evicted."""


def read_lives(file: str | Path) -> Lives:
    """The lives that a YAML file states, its keys in camel case.  Raises ManifestError and OSError."""
    try:
        return msgspec.convert(yaml.safe_load(Path(file).read_text(encoding="utf-8")) or {}, Lives, strict=False)
    except (msgspec.ValidationError, ValueError, yaml.YAMLError) as error:
        raise ManifestError(f"does not say how pods live: {error}", file=str(file)) from None
