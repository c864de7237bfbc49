"""The scheduler's configurations that come with an installation, under the names that Volcano's chart has for them."""

from __future__ import annotations

from typing import Final

CONFIG_KEY: Final = "volcano-scheduler.conf"
CONFIGURATION: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
"""The configuration that a new installation begins with; Volcano's own."""

_TESTED: Final = """\
actions: "enqueue, reclaim, allocate, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
"""All actions on single pods: what ``config/volcano-scheduler-ci.conf`` is for."""

_ADMISSION: Final = "#resourceGroups: []\n"

CONFIGURATIONS: Final = {
    f"config/{CONFIG_KEY}": CONFIGURATION,
    "config/volcano-scheduler-ci.conf": _TESTED,
    "config/volcano-admission.conf": _ADMISSION,
}
"""The files, by their paths in the chart."""
