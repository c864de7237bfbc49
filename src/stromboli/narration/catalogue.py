"""What the core tells: the one table of log lines, and the names of the figures that metrics are made of.

A key of :data:`LINES` names a line of the scheduler's log; its placeholders are given as fields
(:func:`stromboli.narration.observe.teller`).  A key of :data:`METRIC_KEYS` names figures and has no text.

A field may be text, a number, a Task or Job (shown as ``namespace/name``), a Queue or Node (its name), a sequence or
mapping of those, or anything with a text form, such as an amount; it is made into text when the line is printed.

Levels: a number N is printed by ``-v N`` and above, ``"E"`` (error), ``"W"`` (warning) and ``"F"`` (fatal) always.
Texts are printed as they stand, angle brackets included.  A text that begins with a quotation mark is a structured
line, ``"message" name="value" ..``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.narration import catalogue_core, catalogue_live, catalogue_plugins
from stromboli.narration.catalogue_dropped import DROPPED

_PLACEHOLDER: Final = re.compile(r"\{(\w+)(?::(\.\d+f))?\}")
_STRUCTURED: Final = re.compile(r'"([^"]*)"(.*)')
_PAIR: Final = re.compile(r' (\w+)="\{(\w+)\}"')


@dataclass(frozen=True)
class Line:
    """One line of the log: its key, level, the component that says it, and its text with placeholders in braces."""

    key: str
    level: int | str
    component: str
    text: str

    @property
    def severity(self) -> str:
        """The letter that the printed line begins with: I, W, E or F."""
        return "I" if isinstance(self.level, int) else self.level

    @property
    def verbosity(self) -> int:
        """The lowest ``-v`` that prints the line; 0 for errors and warnings."""
        return self.level if isinstance(self.level, int) else 0

    @cached_property
    def structured(self) -> bool:
        """Whether the line is of the form ``"message" name="value" ..``."""
        return self.text.startswith('"')

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The placeholders in the order of the text; one that stands twice is named twice."""
        return tuple(name for name, _ in _PLACEHOLDER.findall(self.text))

    @cached_property
    def formats(self) -> tuple[str, ...]:
        """For each of :attr:`fields` its format such as ``.2f``, empty where the value is shown as it is."""
        return tuple(form for _, form in _PLACEHOLDER.findall(self.text))

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """What stands before, between and after the placeholders: one more than :attr:`fields`."""
        return tuple(_PLACEHOLDER.split(self.text)[::3])

    @cached_property
    def message(self) -> str:
        """The text, of a structured line the message alone."""
        match = _STRUCTURED.fullmatch(self.text)
        return match[1] if match else self.text

    @cached_property
    def names(self) -> Mapping[str, str]:
        """By field, the name under which a JSON line shows it: structured lines bring names of their own."""
        pairs = {field: name for name, field in _PAIR.findall(self.text)} if self.structured else {}
        return {field: pairs.get(field, field) for field in self.fields}


def _lines(*tables: Mapping[str, Iterable[tuple[str, int | str, str]]]) -> Mapping[str, Line]:
    every = chain.from_iterable(table.items() for table in tables)
    return {key: Line(key, level, component, text) for component, rows in every for key, level, text in rows}


LINES: Final[Mapping[str, Line]] = _lines(catalogue_core.ROWS, catalogue_plugins.ROWS, catalogue_live.ROWS)
"""Every line by its key."""

WORK_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "plan.committed": ("plan",),  # the plan, which has just grown by binds or evictions
}
"""What an executor listens to while a cycle goes on."""

METRIC_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    # In bulk. What is told belongs to the observer from then on, which reads it when metrics are asked for: the teller
    # must not change it any more. Times since creation are taken by the observer's clock when it is told.
    "metric.job_share": ("shares",),  # job uid -> share of each job; others have none any more
    "metric.queue_figures": ("figures",),  # queue -> observe.QueueFigures
    "metric.unschedule_task_count": ("counts",),  # job uid -> tasks that its gang lacks; others have no gang
    "metric.job_retry_counts": ("jobs",),  # job uids, one retry each
    "metric.e2e_job": ("placed",),  # observe.Placed of each job: tasks that it just placed
    "metric.task_latency": ("stage", "created"),  # Watched, Assumed, PreBound, Bound; each pod's creation, unix seconds
    "metric.namespace_figures": ("figures",),  # namespace -> observe.NamespaceFigures
    "metric.vgpu_devices": ("figures",),  # makes two mappings, of cards and of pods on cards, by labels
    # One by one.
    "metric.unschedule_job_count": ("count",),
    "metric.job_started": ("job", "queue", "created"),  # job uid; creation in unix seconds
    "metric.stage_duration": ("stage", "seconds"),  # for stages that overlap, where spans do not serve
    "metric.preemption_victims": ("count",),  # size of the last list of victims
    "metric.preemption_attempt": (),
    "metric.eviction_transaction": ("action",),
    "metric.schedule_attempt": ("result",),
    "metric.inconsistencies": ("count",),  # objects quarantined in the last cycle
    "metric.config_reload": ("result",),  # ok or refused
    "metric.argument_invalid": ("plugin",),
    "metric.job_deleted": ("job",),
    "metric.queue_deleted": ("queue",),
    # Tasks that wait for room which is about to become free.
    "metric.pipelined_tasks": ("count",),
    "metric.pipelined_restored": ("result",),
    "metric.pipelined_fast_path": ("result",),
    "metric.pipelined_given_up": ("reason",),
    "metric.pod_annotation_patch": ("result",),
    "metric.unproven_reservation": ("reason",),
    "metric.reservation_keys": ("count",),
    "metric.bind_already_bound": ("result",),
    "metric.dealloc_underflow": ("plugin",),
}
"""Every figure by its key, with the names of its fields; :mod:`stromboli.narration.observe` has the types."""


def shown(value: object) -> str:
    """How a field looks in a line: lists as ``[a b]``, mappings as ``map[k:v]`` by key, true, false and <nil>."""
    form = FORMS.get(type(value))
    return form(value) if form else _shown_by_kind(value)


def _shown_by_kind(value: object) -> str:
    if isinstance(value, Mapping):
        return _shown_mapping(value)
    if isinstance(value, Set):
        return _shown_sequence(sorted(value, key=shown))
    return str(value)


def _shown_number(value: float) -> str:
    """As Go's ``%v``: whole numbers without a point."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return _NOT_FINITE.get(repr(value)) or repr(value)


_NOT_FINITE: Final[Mapping[str, str]] = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}


def _shown_sequence(values: Iterable[object]) -> str:
    return "[" + " ".join(map(shown, values)) + "]"


def _shown_mapping(values: Mapping[Any, object]) -> str:
    return "map[" + " ".join(f"{shown(key)}:{shown(values[key])}" for key in sorted(values)) + "]"


FORMS: Final[Mapping[type, Callable[[Any], str]]] = {
    str: str,
    int: str,
    Task: attrgetter("key"),
    Job: attrgetter("uid"),
    Queue: attrgetter("name"),
    Node: attrgetter("name"),
    bool: {True: "true", False: "false"}.__getitem__,
    float: _shown_number,
    list: _shown_sequence,
    tuple: _shown_sequence,
    dict: _shown_mapping,
    type(None): lambda _nothing: "<nil>",
}
"""How values of a type are shown."""


def generate_page() -> str:
    """The documentation page of the log: every line by component, in Markdown."""
    head = ("# Log lines", "", *_EXPLANATION, "")
    sections = chain.from_iterable(_section(*group) for group in _components().items())
    return "\n".join((*head, *sections, *_dropped())) + "\n"


def _dropped() -> Iterable[str]:
    yield from ("## Not printed", "", "Lines of the reference for which there is no occasion here.", "")
    yield from ("| text | why |", "|---|---|")
    yield from (f"| `{_cell(text)}` | {why} |" for text, why in DROPPED.values())


_EXPLANATION: Final = (
    "Generated from `stromboli.narration.catalogue`. `-v N` prints the levels up to N; E (error) and W (warning) are",
    "always printed. Words in braces are placeholders. The key names the line in JSON logs.",
)


def _components() -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {}
    for line in LINES.values():
        groups.setdefault(line.component, []).append(line)
    return groups


def _section(component: str, lines: Iterable[Line]) -> Iterable[str]:
    yield from (f"## {component}", "", "| level | key | text |", "|---|---|---|")
    yield from (f"| {line.level} | `{line.key}` | `{_cell(line.text)}` |" for line in lines)
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").rstrip()
