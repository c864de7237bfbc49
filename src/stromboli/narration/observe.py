"""The observer interface: how the core reports what it does, without knowing its observers.

The core has no log or metrics.  It tells an :class:`Observer` under the keys of :mod:`stromboli.narration.catalogue`,
and when an action or plugin begins and ends; observers bring the clock.  A session asks for a :func:`teller` once a
key, so an unwanted key costs a comparison with None.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt

from stromboli.errors import NotFoundError
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.resource import Resource
from stromboli.narration.catalogue import LINES, METRIC_KEYS, WORK_KEYS, shown

Teller = Callable[..., None]
"""Tells one key; takes the fields of the key as keyword arguments."""

Columns = Mapping[str, Sequence[object]]
"""The fields of one key told many times: by field its values in order, of one type; one value counts for all."""

BulkTeller = Callable[[int, Columns], None]
"""Tells one key many times: takes how often, and the fields."""


class Observer(Protocol):
    """Hears what the core does.  No method may change what it is given.

    Three more methods are optional.  ``tell_all(key, count, columns)`` takes many of a key at once, which are else told
    one by one.  ``teller(key)`` answers with :meth:`tell` of one key that takes the fields as keyword arguments; a
    session asks for it once for each wanted key.  ``span(kind, name)`` answers with :meth:`started` and :meth:`ended`
    of one span, for those that are announced at every placement.
    """

    def wants(self, key: str) -> bool:
        """Whether to tell ``key``; asked once a session, so a changed answer counts from the next session on."""

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Something has happened; ``fields`` are what the catalogue names for ``key``, and do not change any more."""

    def started(self, kind: str, name: str) -> None:
        """A span begins; spans nest.

        ``kind`` is ``cycle``, ``open_session``, ``action``, ``plugin_open``, ``plugin_close`` or ``stage`` (Predicate,
        Scoring, PreBind, Bind); ``name`` is that of the action, plugin or stage, empty for the first two.  Stages are
        announced only to observers that want ``metric.stage_duration``.
        """

    def ended(self, kind: str, name: str) -> None:
        """The span that :meth:`started` announced is over.

        The span of work that failed may never end; it is then not measured.
        """


class Silent:
    """Wants nothing."""

    def wants(self, key: str) -> bool:
        """Never."""
        return False

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Not heard."""

    def started(self, kind: str, name: str) -> None:
        """Not heard."""

    def ended(self, kind: str, name: str) -> None:
        """Not heard."""


class Passing:
    """Passes everything on to another observer."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def wants(self, key: str) -> bool:
        """Whether the other one does."""
        return self.observer.wants(key)

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Pass it on."""
        self.observer.tell(key, fields)

    def started(self, kind: str, name: str) -> None:
        """Pass it on."""
        self.observer.started(kind, name)

    def ended(self, kind: str, name: str) -> None:
        """Pass it on."""
        self.observer.ended(kind, name)


SILENT: Final = Silent()
"""The observer of unobserved runs."""


class Several:
    """Passes everything on to several observers, in their order, each hearing only what it wants."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self.observers = tuple(observers)

    def wants(self, key: str) -> bool:
        """Whether any of them does."""
        return any(observer.wants(key) for observer in self.observers)

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Tell the observers that want ``key``."""
        for observer in self.observers:
            if observer.wants(key):
                observer.tell(key, fields)

    def started(self, kind: str, name: str) -> None:
        """To all."""
        for observer in self.observers:
            observer.started(kind, name)

    def ended(self, kind: str, name: str) -> None:
        """To all, the last one first, so that no observer's time contains another's work twice."""
        for observer in reversed(self.observers):
            observer.ended(kind, name)


STANDING: Final = frozenset(("complaint", "idle_negative", "node_out_of_sync", "resources_insufficient"))
"""What lasts: every session finds and tells it until the cluster or the configuration has changed."""


class Unrepeated(Passing):
    """Passes everything on to ``observer``, but of ``keys`` only what the cycle before has not told, too.

    What was told is compared as it is shown: a node that is overfull by another amount is told of again.
    """

    def __init__(self, observer: Observer, keys: Iterable[str] = STANDING) -> None:
        super().__init__(observer)
        self.keys = frozenset(keys)
        self._before: set[tuple[str, ...]] = set()
        self._now: set[tuple[str, ...]] = set()

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Pass it on, unless it is one of ``keys`` and was so in the cycle before."""
        if key in self.keys:
            said = (key, *(f"{name}={shown(fields[name])}" for name in sorted(fields)))
            self._now.add(said)
            if said in self._before:
                return
        self.observer.tell(key, fields)

    def ended(self, kind: str, name: str) -> None:
        """Pass it on; with a cycle ends what its successor compares with."""
        self.observer.ended(kind, name)
        if kind == "cycle":
            self._before, self._now = self._now, set()


class Counting(Silent):
    """Counts what it is told and keeps the last of it; for tests.

    ``counts`` is by key, ``told`` holds the last ``keep`` pairs of key and fields, ``spans`` the finished spans as
    (kind, name) in the order of their ends.  ``keys`` limits what it wants; None means everything.  Raises
    :class:`~stromboli.errors.NotFoundError` when told a key that the catalogue lacks, or not all fields of a key.
    """

    def __init__(self, keys: Iterable[str] | None = None, keep: int = 1000) -> None:
        self.keys = None if keys is None else frozenset(keys)
        self.counts: Counter[str] = Counter()
        self.told: deque[tuple[str, dict[str, object]]] = deque(maxlen=keep)
        self.spans: list[tuple[str, str]] = []

    def wants(self, key: str) -> bool:
        """Whether it is one of ``keys``."""
        return self.keys is None or key in self.keys

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Count and keep."""
        _check(key, fields)
        self.counts[key] += 1
        self.told.append((key, dict(fields)))

    def ended(self, kind: str, name: str) -> None:
        """Keep the span."""
        self.spans.append((kind, name))

    def of(self, key: str) -> list[dict[str, object]]:
        """The kept fields of ``key``, oldest first."""
        return [fields for told, fields in self.told if told == key]


def _check(key: str, fields: Mapping[str, object]) -> None:
    line = LINES.get(key)
    others = {**METRIC_KEYS, **WORK_KEYS}
    if line is None and key not in others:
        raise NotFoundError("key", key, "stromboli.narration.catalogue")
    for name in line.fields if line else others[key]:
        if name not in fields:
            raise NotFoundError("field", name, f"what was told of {key}")


def teller(observer: Observer, key: str) -> Teller | None:
    """A function that tells ``observer`` ``key`` with its keyword arguments as fields; None when it is unwanted."""
    ends = [_prepared(end, key) for end in wanting(observer, key)]
    if len(ends) <= 1:
        return ends[0] if ends else None

    def told(**fields: object) -> None:
        for end in ends:
            end(**fields)

    return told


def _prepared(observer: Observer, key: str) -> Teller:
    prepared: Callable[[str], Teller] | None = getattr(observer, "teller", None)
    if prepared is not None:
        return prepared(key)
    tell = observer.tell

    def told(**fields: object) -> None:
        tell(key, fields)

    return told


def wanting(observer: Observer, key: str) -> list[Observer]:
    """The observers within ``observer`` that want ``key``."""
    if observer is SILENT:
        return []
    if not isinstance(observer, _PASSING):
        return [observer] if observer.wants(key) else []
    return [end for end in _listeners(observer, key) if end.wants(key)]


_PASSING: Final = (Several, Unrepeated)


def _listeners(observer: Observer, key: str) -> list[Observer]:
    if isinstance(observer, Several):
        return [end for part in observer.observers for end in _listeners(part, key)]
    if isinstance(observer, Unrepeated) and key not in observer.keys:
        return _listeners(observer.observer, key)
    return [observer]


def teller_all(observer: Observer, key: str) -> BulkTeller | None:
    """A function that tells ``observer`` ``key`` many times at once; None when it is unwanted."""
    ends = [_bulk(end, key) for end in wanting(observer, key)]
    if len(ends) <= 1:
        return ends[0] if ends else None

    def told(count: int, columns: Columns) -> None:
        for end in ends:
            end(count, columns)

    return told


class OneOrMany:
    """Tells one key, once or many times, whichever is cheaper; false when it is unwanted."""

    __slots__ = ("_wanted", "many", "one")

    def __init__(self, one: Teller | None, many: BulkTeller | None) -> None:
        self._wanted = one is not None
        self.one: Teller = one or _unwanted
        self.many: BulkTeller = many or _unwanted

    def __bool__(self) -> bool:
        return self._wanted


def _unwanted(*_columns: object, **_fields: object) -> None:
    """The key is unwanted."""


def _bulk(observer: Observer, key: str) -> BulkTeller:
    tell_all: Callable[..., None] | None = getattr(observer, "tell_all", None)
    if tell_all is not None:
        return partial(tell_all, key)

    def told(count: int, columns: Columns) -> None:
        for fields in each(count, columns):
            observer.tell(key, fields)

    return told


def each(count: int, columns: Columns) -> Iterator[dict[str, object]]:
    """The fields of what is told at once, one after the other.  ValueError for a column of another length."""
    cells = (values if len(values) != 1 else repeat(values[0], count) for values in columns.values())
    for _, *values in zip(range(count), *cells, strict=True):
        yield dict(zip(columns, values, strict=True))


class OnAxes(NamedTuple):
    """An amount by column, to be told as it stands: made into text or a Resource only when read.

    ``vector`` is a tuple of its own; a list that changes later must be copied.
    """

    axes: Axes
    vector: tuple[int, ...]

    def __str__(self) -> str:
        return str(self.resource())

    def resource(self) -> Resource:
        """The amount as a Resource."""
        return self.axes.resource(self.vector)


class AmountRows(Sequence[OnAxes]):
    """A column of amounts: ``amounts`` has one row each, shape (count, resources), and belongs to the observer."""

    __slots__ = ("amounts", "axes")

    def __init__(self, axes: Axes, amounts: npt.NDArray[np.int64]) -> None:
        self.axes, self.amounts = axes, amounts

    def __len__(self) -> int:
        return len(self.amounts)

    @overload
    def __getitem__(self, place: int) -> OnAxes: ...
    @overload
    def __getitem__(self, place: slice) -> AmountRows: ...
    def __getitem__(self, place: int | slice) -> OnAxes | AmountRows:
        if isinstance(place, slice):
            return AmountRows(self.axes, self.amounts[place])
        return OnAxes(self.axes, tuple(self.amounts[place].tolist()))


Raw = TypeVar("Raw")


class Derived(Mapping[str, float], Generic[Raw]):
    """Figures that are worked out when read; what they are worked out of must not change any more."""

    __slots__ = ("_figure", "_raw")

    def __init__(self, raw: Mapping[str, Raw], figure: Callable[[Raw], float]) -> None:
        self._raw, self._figure = raw, figure

    def __getitem__(self, key: str) -> float:
        return self._figure(self._raw[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return repr(dict(self))


class QueueFigures(NamedTuple):
    """What the metrics of one queue show; what is None stays as it was told last."""

    allocated: OnAxes | Resource | None = None
    request: OnAxes | Resource | None = None
    deserved: OnAxes | Resource | None = None
    capacity: OnAxes | Resource | None = None
    real_capacity: OnAxes | Resource | None = None
    inqueue: OnAxes | Resource | None = None
    share: float | None = None
    weight: int | None = None
    overused: bool | None = None


class NamespaceFigures(NamedTuple):
    """What the metrics of one namespace show."""

    share: float
    weight: float
    weighted_share: float


class Placed(NamedTuple):
    """That ``tasks`` tasks of a job have just got nodes.

    ``job`` is the uid (``namespace/podgroup``), ``created`` its creation in seconds since 1970.
    """

    job: str
    queue: str
    created: float
    tasks: int = 1
