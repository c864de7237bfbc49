"""Metric families: one metric with all its series, kept so that telling is cheap and reading makes the samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from prometheus_client import Metric

PREFIX: Final = "volcano_"
"""What the reference's names begin with."""

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Labels: TypeAlias = tuple[str, ...]
"""Values of a series' labels, in the order of its description's names."""

Series: TypeAlias = Iterable[tuple[Labels, float]]
Span: TypeAlias = tuple[float, float, int]
"""First and last of an exponential range of buckets, and how many there are."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a metric is: its name without the prefix, kind, label names, meaning, and the range of its buckets.

    ``unset`` says why nothing sets it, of those that are known only because the reference has them.
    """

    name: str
    kind: Kind
    labels: Labels
    text: str
    span: Span | None = None
    unset: str = ""

    def family(self) -> Metric:
        """An empty family for samples.

        The client puts ``_total`` behind every counter's name in the head of the family.  A counter that the reference
        names otherwise is of unknown kind there, lest the head speak of a metric that does not exist.
        """
        name = PREFIX + self.name
        if self.kind != "counter":
            return Metric(name, self.text, self.kind)
        bare = name.removesuffix("_total")
        return Metric(bare, self.text, "unknown" if bare == name else "counter")


def exponential(span: Span) -> tuple[float, ...]:
    """Upper ends of ``count`` buckets from ``first`` to ``last``, each the same factor above the one before."""
    first, last, count = span
    factor = (last / first) ** (1 / (count - 1))
    return tuple(first * factor**i for i in range(count))


def collected(description: Description, series: Series) -> Metric:
    """The family with a sample for each series."""
    metric = description.family()
    for labels, value in series:
        metric.add_sample(PREFIX + description.name, dict(zip(description.labels, labels, strict=True)), value)
    return metric


View: TypeAlias = Callable[[], Metric]
"""Makes the samples of what a metric held when the view was taken, whatever has been told since."""

Key = TypeVar("Key", bound=Hashable)


class Numbers(Generic[Key]):
    """A gauge or counter.  ``values`` may be changed at will; ``labels`` makes a series' labels of a key.

    Where keys come to the same labels, a gauge shows the last one and a counter their sum.
    """

    def __init__(self, description: Description, labels: Callable[[Key], Labels]) -> None:
        self.description = description
        self.values: dict[Key, float] = {}
        self._labels = labels

    def add(self, key: Key, amount: float = 1) -> None:
        """Count up."""
        self.values[key] = self.values.get(key, 0) + amount

    def view(self) -> View:
        """What stands now."""
        values = self.values.copy()
        return lambda: collected(self.description, self._merged(values).items())

    def _merged(self, values: Mapping[Key, float]) -> dict[Labels, float]:
        merged: dict[Labels, float] = {}
        counts = self.description.kind == "counter"
        for key, value in values.items():
            labels = self._labels(key)
            merged[labels] = value + merged.get(labels, 0) if counts else value
        return merged


class Histogram:
    """A histogram of milliseconds; negative ones count as 0."""

    def __init__(self, description: Description) -> None:
        self.description = description
        bounds = exponential(description.span) if description.span else ()
        self._bounds = np.array(bounds)
        self._names = [*(repr(bound).removesuffix(".0") for bound in bounds), "+Inf"]
        self._counts: dict[Labels, npt.NDArray[np.int64]] = {}
        self._sums: dict[Labels, float] = {}
        if not description.labels:
            self.observe((), np.zeros(0))

    def observe(self, labels: Labels, values: npt.ArrayLike, times: npt.ArrayLike | None = None) -> None:
        """Count ``values``, each as often as ``times`` says (once without it)."""
        amounts = np.maximum(np.atleast_1d(np.asarray(values, dtype=float)), 0)
        weights = np.ones(len(amounts)) if times is None else np.asarray(times, dtype=float)
        buckets = np.searchsorted(self._bounds, amounts)
        counts = np.bincount(buckets, weights, len(self._names)).astype(np.int64)
        self._counts[labels] = self._counts.get(labels, 0) + counts
        self._sums[labels] = self._sums.get(labels, 0.0) + float(amounts @ weights)

    def count(self, *labels: str) -> int:
        """How often something was observed."""
        return int(self._counts[labels].sum()) if labels in self._counts else 0

    def view(self) -> View:
        """What stands now."""
        counts, sums = self._counts.copy(), self._sums.copy()
        return lambda: self._collected(counts, sums)

    def _collected(self, counts: Mapping[Labels, npt.NDArray[np.int64]], sums: Mapping[Labels, float]) -> Metric:
        """Cumulative buckets, sum and count of each series."""
        metric, name = self.description.family(), PREFIX + self.description.name
        for values, numbers in counts.items():
            labels = dict(zip(self.description.labels, values, strict=True))
            upto = np.cumsum(numbers).tolist()
            for bound, number in zip(self._names, upto, strict=True):
                metric.add_sample(f"{name}_bucket", {**labels, "le": bound}, number)
            metric.add_sample(f"{name}_sum", labels, sums[values])
            metric.add_sample(f"{name}_count", labels, upto[-1])
        return metric
