"""Which names of samples our processes can show: those of the table, and those that live processes read themselves."""

from __future__ import annotations

import inspect
import re

from stromboli.live.process import gauges
from stromboli.metrics.descriptions import CONTROLLERS, DESCRIPTIONS
from stromboli.metrics.families import PREFIX

ENDINGS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",), "gauge": ("",)}
READ = re.compile(r'(_counter\(|_gauge\(|CounterMetricFamily\(PREFIX \+ )"(\w+)"')


def shown() -> set[str]:
    """Names of samples."""
    told = {
        f"{PREFIX}{row.name.removesuffix('_total')}{ending}"
        for row in (*DESCRIPTIONS.values(), *CONTROLLERS)
        if not row.unset
        for ending in ENDINGS[row.kind]
    }
    found = READ.findall(inspect.getsource(gauges))
    return told | {gauges.PREFIX + name + ("" if call == "_gauge(" else "_total") for call, name in found}
