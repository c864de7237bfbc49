"""Ascend 310P chips in slices, or whole, with MindCluster's device plugin (https://gitee.com/ascend/mind-cluster).

Pods ask for AI cores, ``huawei.com/npu-core``.  A number that is a multiple of a chip's cores is whole chips, another
one a template of that many cores.  The pod's annotation of the same name says which chips, or which chip and template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from stromboli.framework.extension.reason import Reason, StatusCode
from stromboli.model.resources.device_settings import CHIP, SEPARATED, ChipReport, DeviceSettings
from stromboli.model.spec import NodeSpec
from stromboli.model.task import Task
from stromboli.plugins.deviceshare.kind import CardUse, Need, amount, number, stated, words

NPU_CORE: Final = "huawei.com/npu-core"
"""The resource, and the annotation that says what of it a pod has."""
REAL: Final = "huawei.com/AscendReal"
"""What the device plugin has made for a pod: ``Ascend310P-2c.1cpu-105-0_3``, where the last is a group of slices."""
PREDICATE_TIME: Final = "predicate-time"
LEVEL, DVPP = "vnpu-level", "vnpu-dvpp"
"""Labels of pods: whether a slice is to have all AI CPUs that there are for its cores, and the chip's DVPP."""
HIGH: Final = "high"
"""The level with all AI CPUs."""
ON, OFF, ANY = "yes", "no", "null"
"""Whether a slice has the chip's only DVPP, does without, or takes it as it comes."""
ACCELERATOR, SERVER_TYPE = "accelerator", "servertype"
"""Labels of nodes: ``huawei-Ascend310P``, and ``Ascend310P-8``, where the number is a chip's AI cores."""
CORES_OF_CHIPS: Final = (8, 10)
CPUS: Final = 7
"""AI CPUs of a chip."""
PERCENT: Final = 100

WORDS: Final = (
    HIGH, ON, OFF, ANY, LEVEL, DVPP, ACCELERATOR, SERVER_TYPE, PREDICATE_TIME, CHIP, SEPARATED, f"huawei-{CHIP}",
    *(f"{CHIP}-{cores}" for cores in CORES_OF_CHIPS),
)  # fmt: skip
"""Keys and values of labels and annotations."""

PRE_SEPARATED: Final = Reason("preCheckNodePredicate failure", code=StatusCode.ERROR)
INVALID: Final = Reason(
    "checkNodeNPUByDyTask invalid VNode: its labels accelerator and servertype, or its amount of huawei.com/npu-core, "
    "do not say which chips it has",
    code=StatusCode.ERROR,
)
UNREPORTED: Final = Reason(
    "checkNodeNPUByDyTask invalid VNode: no report of its chips is known; "
    "the scheduler must be allowed to read the ConfigMaps of MindCluster's device plugin",
    code=StatusCode.ERROR,
)
NO_CHIP: Final = Reason("node not meet task request huawei.com/npu-core:{cores}")
OTHER_TEMPLATE: Final = Reason("node {node} is using {templates}, and not rewrite")
WRONG_DVPP: Final = Reason("err dvpp value:{dvpp}", code=StatusCode.ERROR)
NO_TEMPLATE: Final = Reason("no template of Ascend310P has {cores} cores", code=StatusCode.ERROR)


class Template(NamedTuple):
    """AI cores and AI CPUs of a slice, and what it says of the DVPP."""

    cores: int
    cpus: int
    dvpp: str


TEMPLATES: Final[Mapping[str, Template]] = {
    "vir01": Template(1, 1, ANY), "vir02_1c": Template(2, 1, ANY), "vir02": Template(2, 2, ANY),
    "vir04_3c": Template(4, 3, ANY), "vir04": Template(4, 4, ANY),
    "vir04_3c_ndvpp": Template(4, 3, OFF), "vir04_4c_dvpp": Template(4, 4, ON),
}  # fmt: skip


PIECES: Final = re.compile(rf"\d+(,\d+)*(-({'|'.join(TEMPLATES)}))?|{CHIP}-[0-9a-z.]+(-\d+){{1,2}}_\d+", re.ASCII)
"""Annotations that say what a pod has, ours and the device plugin's."""


class Demand(NamedTuple):
    """AI cores, the templates that would do, the best first, and what the pod says of the DVPP."""

    cores: int
    templates: tuple[str, ...]
    dvpp: str = ANY


class Piece(NamedTuple):
    """What a pod has: a slice of one chip, or with an empty ``template`` whole chips.

    ``group`` is that of the slice, as the device plugin says it; ``is_made`` whether it has said so, ``is_placed``
    whether the pod was placed in this session.
    """

    chips: tuple[int, ...]
    template: str
    group: int | None = None
    is_made: bool = True
    is_placed: bool = False

    @property
    def is_unstable(self) -> bool:
        """Whether the device plugin may be at work on the chip."""
        return not (self.is_made or self.is_placed)


class Chip(NamedTuple):
    """A chip, what of it is free, and its pods' pieces."""

    id: int
    cores: int
    cpus: int
    pieces: tuple[Piece, ...] = ()

    def takes(self, template: Template) -> bool:
        """Whether another slice can be made."""
        if any(piece.is_unstable or not piece.template for piece in self.pieces):
            return False
        groups = {piece.group for piece in self.pieces if piece.group is not None}
        most = {3: 2, 4: 1}.get(len(groups), template.cores)
        enough = self.cores >= template.cores and self.cpus >= template.cpus
        return enough and template.cores <= most and self._has_dvpp_for(template.dvpp)

    def _has_dvpp_for(self, wish: str) -> bool:
        taken = {TEMPLATES[piece.template].dvpp for piece in self.pieces}
        return not taken & ({ON, ANY} if wish == ON else {ON} if wish == ANY else set())


class MindCluster:
    """The kind; ``reports`` are what is said of each node's chips."""

    lock, offered = "", NPU_CORE

    def __init__(self, reports: Mapping[str, ChipReport]) -> None:
        self._reports = reports

    def demand_of(self, task: Task) -> Demand | None:
        """What the first container that names any asks for."""
        cores = cores_of(task)
        if not cores:
            return None
        dvpp = task.labels.get(DVPP, ANY)
        return Demand(cores, templates_for(cores, dvpp, is_high=task.labels.get(LEVEL) == HIGH), dvpp)

    def need(self, demand: Demand) -> Need:
        """See :class:`~stromboli.plugins.deviceshare.kind.Kind`; a chip is thought to have 8 cores."""
        whole, rest = divmod(demand.cores, CORES_OF_CHIPS[0])
        return Need(1, 0, PERCENT * rest // CORES_OF_CHIPS[0]) if rest else Need(whole, None)

    def pool_of(self, node: NodeSpec) -> ChipPool | None:
        """The node's chips; without any where its labels, or what is reported of it, do not say which it has."""
        if amount(node.allocatable, NPU_CORE) <= 0:
            return None
        kind, cores = _second(node.labels.get(ACCELERATOR, "")), number(_second(node.labels.get(SERVER_TYPE, ""))) or 0
        report, total = self._reports.get(node.name, ChipReport()), amount(node.capacity, NPU_CORE)
        is_labelled = kind == CHIP and cores in CORES_OF_CHIPS and total % cores == 0
        why = PRE_SEPARATED if report.status == SEPARATED else None if is_labelled else INVALID
        why = UNREPORTED if why is None and report.free is None else why
        return ChipPool(node.name, max(cores, 1), total // max(cores, 1), report, why)


def cores_of(task: Task) -> int:
    """The AI cores that the first container asks for that names any; 0 for none."""
    return next((asked for one in task.spec.containers if (asked := stated(one, NPU_CORE)) > 0), 0)


def templates_for(cores: int, dvpp: str, *, is_high: bool) -> tuple[str, ...]:
    """Templates of so many cores, the best first: with fewer AI CPUs unless the pod's level is high."""
    if cores == 4 and dvpp in (ON, OFF):  # as the table of templates has it
        return ("vir04_4c_dvpp" if dvpp == ON else "vir04_3c_ndvpp",)
    found = [name for name, one in TEMPLATES.items() if one.cores == cores and one.dvpp == ANY]
    if is_high:
        found.reverse()
        return tuple(found)
    return tuple(found[:1])


def reports_in(settings: Mapping[str, DeviceSettings]) -> dict[str, ChipReport]:
    """What all ConfigMaps together say of each node."""
    found: dict[str, ChipReport] = {}
    for key in sorted(settings):
        for node, report in settings[key].chips.items():
            known = found.get(node, ChipReport())
            says = report if report.free is not None else known
            found[node] = ChipReport(says.free, says.unhealthy, report.status or known.status)
    return found


def piece_of(notes: Mapping[str, str]) -> Piece | None:
    """What a pod's annotations say that it has: ``0-vir02``, or ``0,1``; None for nothing."""
    text, dash, template = notes.get(NPU_CORE, "").partition("-")
    ids = tuple(found for word in words(text) if (found := number(word)) is not None)
    if not ids or (dash and (template not in TEMPLATES or len(ids) > 1)):
        return None
    real = notes.get(REAL, "")
    return Piece(ids, template, number(real.rpartition("_")[2]) if "_" in real else None, bool(real))


class ChipPool:
    """The chips of one node, ``total`` of ``cores`` AI cores each; ``why`` says why none is given."""

    def __init__(self, node: str, cores: int, total: int, report: ChipReport, why: Reason | None) -> None:
        self.node, self._cores, self._total, self._why = node, cores, total, why
        self._ids, self._unhealthy = set(report.free or ()), set(report.unhealthy)
        self._is_reported = report.free is not None
        self.held: dict[str, Piece] = {}

    def refusal(self, demand: Demand) -> Reason | None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        found = self._found(demand)
        return found if isinstance(found, Reason) else None

    def cards(self) -> list[CardUse]:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`; memory is not told, and without a report nothing."""
        chips = self._chips() if self._is_reported else ()
        used = ((chip, PERCENT * (self._cores - chip.cores) // self._cores) for chip in chips)
        return [CardUse(f"{CHIP}-{chip.id}", CHIP, 0, 0, PERCENT, part, not chip.cores) for chip, part in used]

    def shortage(self, demand: Demand) -> str:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        chips = [f"{CHIP}-{chip.id} {chip.cores} of {self._cores} cores, {chip.cpus} CPUs" for chip in self._chips()]
        why = "no healthy chip of it is reported" if self._is_reported else "no report of its chips is known"
        return "free: " + ("; ".join(chips) or f"nothing on node {self.node}, as {why}")

    def score(self, demand: Demand) -> float:
        """Nodes are scored together: see :func:`scores`."""
        return 0.0

    def free_cores(self) -> int:
        """AI cores of all chips together."""
        return sum(chip.cores for chip in self._chips())

    def gives_less(self, demand: Demand) -> bool:
        """Whether the pod would get fewer AI CPUs than its level asks for."""
        found = self._found(demand)
        return isinstance(found, Piece) and bool(found.template) and found.template != demand.templates[0]

    def assign(self, task: Task, demand: Demand, now: float) -> Mapping[str, str]:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        found = self._found(demand)
        if isinstance(found, Reason):
            return {}
        self.held[task.uid] = found
        chips = ",".join(map(str, found.chips))
        return {PREDICATE_TIME: str(int(now * 1e9)), NPU_CORE: f"{chips}-{found.template}" if found.template else chips}

    def restore(self, task: Task) -> None:
        """Pods that ask for cores hold what ``huawei.com/npu-core`` names."""
        if (found := piece_of(task.annotations)) is not None and cores_of(task):
            self.held[task.uid] = found

    def release(self, task: Task) -> None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        self.held.pop(task.uid, None)

    def _chips(self) -> list[Chip]:
        """Healthy chips: those that are reported as free, and those that pods have."""
        by_chip: dict[int, list[Piece]] = {}
        for piece in self.held.values():
            for one in piece.chips:
                by_chip.setdefault(one, []).append(piece)
        ids = {one for one in self._ids | by_chip.keys() if 0 <= one < self._total} - self._unhealthy
        return [self._chip(one, by_chip.get(one, ())) for one in sorted(ids)]

    def _chip(self, number: int, pieces: Iterable[Piece]) -> Chip:
        slices = [TEMPLATES[one.template] if one.template else Template(self._cores, CPUS, ANY) for one in pieces]
        cores, cpus = (sum(amounts) for amounts in zip(*(one[:2] for one in slices), strict=True)) if slices else (0, 0)
        return Chip(number, max(self._cores - cores, 0), max(CPUS - cpus, 0), tuple(pieces))

    def _found(self, demand: Demand) -> Piece | Reason:
        """What a pod would get; why nothing."""
        if self._why is not None:
            return self._why
        if demand.cores % self._cores == 0:
            idle = [chip.id for chip in self._chips() if not chip.pieces][: demand.cores // self._cores]
            enough = len(idle) * self._cores == demand.cores
            return Piece(tuple(idle), "", None, False, True) if enough else NO_CHIP.of(cores=demand.cores)
        if demand.dvpp not in (ON, OFF, ANY):
            return WRONG_DVPP.of(dvpp=demand.dvpp[:40])
        if not demand.templates:
            return NO_TEMPLATE.of(cores=demand.cores)
        return self._slice(demand)

    def _slice(self, demand: Demand) -> Piece | Reason:
        """A slice of the first template that some chip takes, of the chip with the least room that suffices.

        Device plugins make slices of one template at a time; those that are made already may be others.  A pod waits
        while they make another one than its own, and does not get fewer AI CPUs for that: it does where chips lack
        them.
        """
        for name in demand.templates:
            chips = [chip for chip in self._chips() if chip.takes(TEMPLATES[name])]
            others = {piece.template for piece in self.held.values() if not piece.is_made} - {"", name}
            if chips and others:
                return OTHER_TEMPLATE.of(node=self.node, templates=", ".join(sorted(others)))
            if chips:
                best = min(chips, key=lambda chip: (chip.cores, chip.cpus, chip.id))
                return Piece((best.id,), name, None, False, True)
        return NO_CHIP.of(cores=demand.cores)


FIRST: Final = 8.0
"""The score of the node that is preferred, or of each that gives less."""


def scores(pools: Iterable[ChipPool], demand: Demand) -> dict[str, float]:
    """What nodes score for a pod, those with the fewest free cores first.

    8 for the first where the pod gets what its level asks for everywhere; else 8 for each that gives less, up to the
    first that does not, which gets 16.
    """
    ordered = sorted(pools, key=lambda pool: (pool.free_cores(), pool.node))
    less = {pool.node for pool in ordered if pool.gives_less(demand)}
    if not less:
        return {ordered[0].node: FIRST} if ordered else {}
    found: dict[str, float] = {}
    for pool in ordered:
        found[pool.node] = FIRST if pool.node in less else 2 * FIRST
        if pool.node not in less:
            break
    return found


def _second(text: str) -> str:
    """The second part of a label such as ``Ascend310P-8`` or ``huawei-Ascend310P``."""
    return text.split("-")[1] if "-" in text else ""
