"""Which names of samples our processes can show: those of the table, and those that live processes read themselves."""

from __future__ import annotations

import inspect
import re

from stromboli.live.process import gauges
from stromboli.live.webhooks import process
from stromboli.metrics.descriptions import CONTROLLERS, DESCRIPTIONS
from stromboli.metrics.families import PREFIX

ENDINGS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
"""What stands behind names of the table; the reference's counters are called as it calls them, with _total or not."""
OF_WEBHOOKS = re.compile(r'(Counter|Gauge)\(\s*f"\{PREFIX\}(\w+)"')
READ = re.compile(r'(_counter\(|_gauge\(|CounterMetricFamily\(PREFIX \+ )"(\w+)"')


def shown() -> set[str]:
    """Names of samples."""
    told = {
        f"{PREFIX}{row.name}{ending}"
        for row in (*DESCRIPTIONS.values(), *CONTROLLERS)
        if not row.unset
        for ending in ENDINGS[row.kind]
    }
    found = READ.findall(inspect.getsource(gauges))
    told |= {
        gauges.PREFIX + name + ("_total" if call == "Counter" else "")
        for call, name in OF_WEBHOOKS.findall(inspect.getsource(process))
    }
    return told | {gauges.PREFIX + name + ("" if call == "_gauge(" else "_total") for call, name in found}
