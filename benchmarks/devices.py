"""What plugin ``deviceshare`` costs a cluster without devices: the same cycle without it, and with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.paired import Comparison
from stromboli.framework.config.config import Config, PluginOption

CASES: Final = ("gangs-5k", "single-1k", "hetero-1k", "running-single-5k", "full-5k", "preempt-1k", "reclaim-1k")
"""The cases that are looked at, by name."""

_ALL_KINDS: Final = PluginOption.filled(
    "deviceshare",
    {
        "deviceshare.VGPUEnable": True,
        "deviceshare.AscendHAMiVNPUEnable": True,
        "deviceshare.AscendMindClusterVNPUEnable": True,
        "deviceshare.SchedulePolicy": "binpack",
        "deviceshare.ScheduleWeight": 10,
    },
)


def shared(config: Config) -> Config:
    """A configuration with the plugin, each kind of devices that can be shared together switched on."""
    return replace(config, tiers=(*config.tiers[:-1], (*config.tiers[-1], _ALL_KINDS)))


COMPARISON: Final = Comparison(("without deviceshare", "with it"), (replace, shared), limit=1.02)
"""The plugin may take 2 % longer where no node has devices."""
