"""What the administrator says of devices, in the key ``device-config.yaml`` of a ConfigMap."""

from __future__ import annotations

from typing import Final

import msgspec

from stromboli.model.spec import Wire

DEVICE_CONFIG: Final = "volcano-vgpu-device-config"
"""The ConfigMap, unless deviceshare is told another."""
DEVICE_CONFIG_NAMESPACE: Final = "kube-system"


class Instance(Wire, frozen=True):
    """``count`` MIG instances of ``memory`` MB each."""

    name: str
    memory: int
    count: int


class Geometry(Wire, frozen=True):
    """The instances into which a card is cut together."""

    group: str
    geometries: tuple[Instance, ...] = ()


class Models(Wire, frozen=True):
    """The geometries of the cards whose type contains one of ``models``."""

    models: tuple[str, ...] = ()
    allowed_geometries: tuple[Geometry, ...] = ()


class NvidiaSettings(Wire, frozen=True):
    """Names of resources, geometries, and by what MIG multiplies the memory that pods ask for."""

    resource_count_name: str = "volcano.sh/vgpu-number"
    resource_memory_name: str = "volcano.sh/vgpu-memory"
    resource_core_name: str = "volcano.sh/vgpu-cores"
    resource_memory_percentage_name: str = ""
    known_mig_geometries: tuple[Models, ...] = ()
    gpu_memory_factor: int = msgspec.field(default=0, name="gpuMemoryFactor")

    def geometries_of(self, card_type: str) -> tuple[Geometry, ...]:
        """How cards of a type may be cut; empty for types that are not known."""
        known = (one for one in self.known_mig_geometries if any(model in card_type for model in one.models))
        return next((one.allowed_geometries for one in known), ())


class Template(Wire, frozen=True):
    """A slice of an NPU with ``memory`` MB."""

    name: str
    memory: int


class ChipSettings(Wire, frozen=True):
    """A kind of NPU: names of its resources, its memory in MB, and its templates."""

    common_word: str
    resource_name: str
    resource_memory_name: str
    memory_allocatable: int = 0
    memory_capacity: int = 0
    templates: tuple[Template, ...] = ()

    @property
    def resource_core_name(self) -> str:
        """The resource for percents of its cores."""
        return f"{self.resource_name}-core"


class NpuSettings(Wire, frozen=True):
    """The kinds of NPU; ``hami_vnpu_core`` says that nodes can slice them by software if they don't say otherwise."""

    hami_vnpu_core: bool = False
    configs: tuple[ChipSettings, ...] = ()


_310P: Final = ChipSettings(
    "Ascend310P", "huawei.com/Ascend310P", "huawei.com/Ascend310P-memory", 21527, 24576,
    (Template("vir01", 3072), Template("vir02", 6144), Template("vir04", 12288)),
)  # fmt: skip


CHIP: Final = "Ascend310P"
"""The one type of chip of MindCluster's that is looked at, as labels and reports call it."""
SEPARATED: Final = "PreSeparate"
"""The status that NodeD reports of a node that is about to be taken out of use."""


class ChipReport(Wire, frozen=True):
    """What MindCluster says of the NPUs of a node: numbers of chips that are free, and that are broken.

    None for ``free`` where nothing is said of them; ``status`` is the node's.
    """

    free: tuple[int, ...] | None = None
    unhealthy: tuple[int, ...] = ()
    status: str = ""


class DeviceSettings(Wire, frozen=True):
    """The whole configuration; ``chips`` is what is reported of nodes, by name."""

    nvidia: NvidiaSettings = NvidiaSettings()
    vnpus: NpuSettings = NpuSettings(configs=(_310P,))
    chips: dict[str, ChipReport] = {}


DEFAULTS: Final = DeviceSettings()
