"""What a shadow shows: counts on ``/metrics``, differences on ``/shadow``."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily

from stromboli.live.process.gauges import PREFIX, Figures
from stromboli.live.process.web import Pages
from stromboli.live.shadow.differences import AGREED, UNSEEN, What
from stromboli.live.shadow.shadow import Shadow

PATH = "/shadow"


class ShadowFigures(Figures):
    """Counts of decisions compared, every outcome from the start."""

    def __init__(self, registry: CollectorRegistry, shadow: Shadow) -> None:
        self._shadow = shadow
        super().__init__(registry)

    def collect(self) -> Iterator[Metric]:
        """All of them as they stand."""
        text = "Decisions of the scheduler that runs, held against the shadow's plans."
        counts = CounterMetricFamily(PREFIX + "shadow_decisions", text, labels=["outcome"])
        for outcome in (AGREED, UNSEEN, *What):
            counts.add_metric([outcome], self._shadow.comparison.counts[outcome])
        yield counts
        made = "Plans that the shadow has made."
        yield CounterMetricFamily(PREFIX + "shadow_plans", made, value=self._shadow.plans)


def shadow_page(pages: Pages, shadow: Shadow) -> None:
    """``/shadow``: counts, the last differences, and what plans are made without, as JSON."""

    def answer() -> web.Response:
        counts, differences = dict(shadow.comparison.counts), list(shadow.comparison.found)
        found = {
            "plans": shadow.plans, "counts": counts, "differences": differences, "leftOut": shadow.left_out,
        }  # fmt: skip
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    pages.add(PATH, answer)
