"""What it costs every day that reservations can be kept: the same cycle with the feature gate off, and on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from benchmarks.paired import Comparison
from stromboli.framework.config.config import Config
from stromboli.framework.config.gates import PIPELINED_STATE, parse_gates, switched_on

CASES: Final = ("gangs-5k", "hetero-1k", "full-5k", "running-single-5k", "preempt-1k", "reclaim-1k")
"""The cases that are looked at, by name."""


def gated(kept: str, config: Config) -> Config:
    """A configuration with the gate that keeps reservations set to ``true`` or ``false``."""
    return replace(config, features=switched_on(parse_gates(f"{PIPELINED_STATE}={kept}")))


COMPARISON: Final = Comparison(
    ("reservations not kept", "kept"), (partial(gated, "false"), partial(gated, "true")), limit=1.03
)
"""Keeping reservations may take 3 % longer."""
