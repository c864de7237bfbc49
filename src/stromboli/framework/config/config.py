"""The scheduler's configuration file: read, checked and filled with its defaults.

Mistakes are refused with file, line and the nearest known name.  A lenient reading does as the reference does: what is
unknown is skipped and becomes a complaint; only what the reference rejects is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NoReturn

from stromboli.errors import ConfigError
from stromboli.framework.config.argument import Complaint, nearest
from stromboli.framework.config.compat import Compat
from stromboli.framework.config.document import DocumentNode, read_document
from stromboli.framework.config.gates import PIPELINED_STATE, switched_on
from stromboli.framework.config.known_names import PLUGINS
from stromboli.framework.config.sampling import Sampling
from stromboli.framework.extension.points import SWITCHES, Point

DEFAULT_CONFIG = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
"""What holds where no file is given."""
BUILT_IN = "built-in configuration"
"""How messages call it."""

ACTION_ALIASES: Mapping[str, str] = MappingProxyType({"gangPreempt": "gangpreempt", "gangReclaim": "gangreclaim"})
"""Other spellings of actions."""

HIERARCHY = "enableHierarchy"
"""The switch of a plugin entry that belongs to no extension point; off unless written."""

TOP_KEYS = ("actions", "tiers", "configurations", "metrics", "compat", "tie-break")
METRICS_KEYS = (
    "type", "address", "interval", "tls.insecureSkipVerify", "elasticsearch.index", "elasticsearch.username",
    "elasticsearch.password", "elasticsearch.hostnameFieldName",
)  # fmt: skip
TIE_BREAKS = ("first", "seeded")


@dataclass(frozen=True, slots=True)
class Written:
    """Where something stands in the file, in which spelling, and its value."""

    spelling: str
    line: int
    value: object


@dataclass(frozen=True, slots=True)
class PluginOption:
    """One plugin entry of a tier.

    ``switches`` has every switch in the reference's spelling, filled by the loader (one that is missing is off);
    ``arguments`` is what the file gives, unchecked; ``path`` names a Python file the plugin is loaded from;
    ``line`` is the entry's place in the file.  ``written`` (by switch) and ``argument_lines`` say what was written.
    """

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    enable_hierarchy: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict)
    path: str = ""
    line: int = 0
    written: Mapping[str, Written] = field(default_factory=dict)
    argument_lines: Mapping[str, int] = field(default_factory=dict)

    def enabled(self, point: Point) -> bool:
        """Whether the plugin is asked at this point."""
        return point.enabled(self.switches)

    @classmethod
    def filled(cls, name: str, /, arguments: Mapping[str, object] | None = None, **switches: bool) -> PluginOption:
        """An entry as the loader makes it: every switch not given has its default."""
        hierarchy = switches.pop(HIERARCHY, False)
        return cls(name, {**SWITCHES, **switches}, hierarchy, arguments or {})


@dataclass(frozen=True, slots=True)
class ActionOption:
    """One entry of ``configurations``: arguments of an action, unchecked."""

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    line: int = 0
    argument_lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration that is in effect; ``source`` is its file, ``complaints`` what was skipped while reading it.

    ``features`` are the feature gates that are on, ``sampling`` says that not all nodes are looked at, ``rows`` of the
    compatibility table are restored on trial; the process sets them, not the file.
    """

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    configurations: tuple[ActionOption, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    compat: bool = False
    tie_break: str = "first"
    complaints: tuple[Complaint, ...] = ()
    source: str = ""
    features: frozenset[str] = switched_on({})
    sampling: Sampling | None = None
    rows: frozenset[str] = frozenset()

    @property
    def ways(self) -> Compat:
        """What to ask where the reference's way may differ from ours."""
        return Compat(self.compat, self.rows)

    @property
    def gates(self) -> frozenset[str]:
        """The feature gates that count: in the reference's way a reservation ends with its session."""
        return self.features - {PIPELINED_STATE} if self.ways.asks("persisted-reservations") else self.features

    @property
    def keeps_reservations(self) -> bool:
        """Whether reservations outlive the session that made them."""
        return PIPELINED_STATE in self.gates

    @property
    def follows_placements(self) -> bool:
        """Whether filters and scores see the session's placements; the reference's do if ``predicates`` is there."""
        return not self.ways.asks("node-map") or any(option.name == "predicates" for option in self.plugins())

    def plugins(self) -> tuple[PluginOption, ...]:
        """All plugin entries in the order in which they open."""
        return tuple(option for tier in self.tiers for option in tier)

    def only_plugins(self, known: Callable[[PluginOption], bool]) -> Config:
        """The configuration with the plugin entries alone that are ``known``; its complaints speak of the others."""
        return replace(self, tiers=tuple(tuple(filter(known, tier)) for tier in self.tiers))

    def hierarchy_enabled(self, plugin: str) -> bool:
        """Whether the first listing of ``plugin`` switches its hierarchy on."""
        options = (option for tier in self.tiers for option in tier)
        return next((option.enable_hierarchy for option in options if option.name == plugin), False)

    def arguments_of(self, action: str) -> Mapping[str, object]:
        """The arguments of an action: those of the first entry with its name, else none."""
        return next((entry.arguments for entry in self.configurations if entry.name == action), {})


def load_config(
    text: str,
    *,
    source: str,
    known_plugins: Collection[str],
    known_actions: Collection[str],
    lenient: bool = False,
    compat: bool = False,
    allow_hdrf_with_proportion: bool = False,
    without_unknown_actions: bool = False,
) -> Config:
    """Read a configuration.

    ``source`` is the file's name for messages.  ``compat``, or ``compat: volcano`` in the text, asks for the
    reference's ways, which are lenient.  ``allow_hdrf_with_proportion`` lets a tier have both, for recorded scenarios
    only.  ``without_unknown_actions`` leaves them out with a complaint, so that whatever else is wrong is found, too.
    Raises ConfigError for whatever is refused.
    """
    document = read_document(text, file=source)
    ways = Compat(compat or _asks_for_compat(document.root))
    loader = _Loader(source, ways, lenient or ways.asks("config-strictness"), known_plugins, known_actions)
    loader.goes_on = without_unknown_actions
    for line, doubt in document.doubts:
        loader.mistake(doubt, line)
    config = loader.config(loader.mapping(document.root or DocumentNode(1, {}), "the configuration", TOP_KEYS))
    if not allow_hdrf_with_proportion:
        _refuse_two_shares(config)
    return config


def _asks_for_compat(root: DocumentNode | None) -> bool:
    entry = root.value.get("compat") if root and isinstance(root.value, dict) else None
    return entry is not None and entry.value == "volcano"


def _refuse_two_shares(config: Config) -> None:
    for tier in config.tiers:
        hierarchical = [option for option in tier if option.name == "drf" and option.enable_hierarchy]
        if hierarchical and any(option.name == "proportion" for option in tier):
            problem = "proportion and drf with hierarchy enabled conflicts"
            raise ConfigError(problem, file=config.source, line=hierarchical[0].line)


def other_spelling(switch: str) -> str:
    """``enableX`` for ``enabledX`` and the other way round."""
    return f"enable{switch[7:]}" if switch.startswith("enabled") else f"enabled{switch[6:]}"


class _Loader:
    """Turns the tree of one file into a Config, collecting complaints on the way."""

    def __init__(
        self, file: str, ways: Compat, lenient: bool, known_plugins: Collection[str], known_actions: Collection[str]
    ) -> None:
        self.file = file
        self.ways = ways
        self.lenient = lenient
        self.known_plugins = known_plugins
        self.known_actions = known_actions
        self.complaints: list[Complaint] = []
        self.goes_on = False

    def mistake(self, problem: str, line: int, name: str = "", known: Collection[str] = ()) -> None:
        """Something the reference lives with: refused, or in a lenient reading a complaint."""
        close = nearest(name, known)
        if not self.lenient:
            raise ConfigError(problem, file=self.file, line=line, nearest=close)
        self.complaints.append(Complaint("unknown", problem, key=name, line=line, nearest=close))

    def refuse(self, problem: str, line: int, name: str = "", known: Collection[str] = ()) -> NoReturn:
        """Something the reference rejects, too."""
        raise ConfigError(problem, file=self.file, line=line, nearest=nearest(name, known))

    # ---- shapes

    def mapping(self, node: DocumentNode, what: str, known: Collection[str] = ()) -> dict[str, DocumentNode]:
        """The entries of a mapping; with ``known`` any other key is a mistake.  Nothing at all is an empty mapping."""
        if node.value is None:
            return {}
        if not isinstance(node.value, dict):
            self.refuse(f"{what} must be a mapping, not {_shape(node)}", node.line)
        for key, entry in node.value.items():
            if known and key not in known:
                self.mistake(f"unknown key {key} in {what}", entry.line, key, known)
        return node.value

    def sequence(self, node: DocumentNode | None, what: str) -> list[DocumentNode]:
        """The items of a list; nothing at all is an empty one."""
        if node is None or node.value is None:
            return []
        if not isinstance(node.value, list):
            self.refuse(f"{what} must be a list, not {_shape(node)}", node.line)
        return node.value

    def text(self, node: DocumentNode | None, what: str) -> str:
        """A scalar as written; empty where there is none."""
        if node is None or node.value is None:
            return ""
        if isinstance(node.value, (list, dict)):
            self.refuse(f"{what} must be a text, not {_shape(node)}", node.line)
        return node.raw

    # ---- sections

    def config(self, top: dict[str, DocumentNode]) -> Config:
        tie_break = self._tie_break(top.get("tie-break"))
        self._check_compat(top.get("compat"))
        return Config(
            actions=self._actions(top.get("actions")),
            tiers=tuple(self._tier(node) for node in self.sequence(top.get("tiers"), "tiers")),
            configurations=tuple(
                self._configuration(node) for node in self.sequence(top.get("configurations"), "configurations")
            ),
            metrics=self._metrics(top.get("metrics")),
            compat=self.ways.on,
            tie_break=tie_break,
            complaints=tuple(self.complaints),
            source=self.file,
        )

    def _actions(self, node: DocumentNode | None) -> tuple[str, ...]:
        names = [name.strip() for name in self.text(node, "actions, a comma-separated text,").split(",")]
        for name in names:
            if ACTION_ALIASES.get(name, name) not in self.known_actions:
                problem = f"failed to find Action {name}{'' if name else _EMPTY}"
                self._no_action(problem, node.line if node else 1, name)
        actions = (ACTION_ALIASES.get(name, name) for name in names)
        return tuple(name for name in actions if name in self.known_actions)

    def _no_action(self, problem: str, line: int, name: str) -> None:
        known = (*self.known_actions, *ACTION_ALIASES)
        if not self.goes_on:
            self.refuse(problem, line, name, known)
        self.complaints.append(Complaint("refused", problem, key=name, line=line, nearest=nearest(name, known)))

    def _tier(self, node: DocumentNode) -> tuple[PluginOption, ...]:
        tier = self.mapping(node, "a tier", ("plugins",))
        return tuple(self._plugin(entry) for entry in self.sequence(tier.get("plugins"), "plugins"))

    def _plugin(self, node: DocumentNode) -> PluginOption:
        entry = self.mapping(node, "a plugin entry", _PLUGIN_KEYS)
        name, path = self.text(entry.get("name"), "name"), self.text(entry.get("path"), "path")
        if name not in self.known_plugins and not path:
            absent = f"plugin {name} is the reference's, but this release does not have it; take it out"
            problem = absent if name in PLUGINS else f"unknown plugin {name}" if name else "a plugin entry without name"
            self.mistake(problem, entry.get("name", node).line, "" if name in PLUGINS else name, self.known_plugins)
        written = self._written(entry)
        arguments, lines = self._arguments(entry.get("arguments"))
        switches = {switch: bool(written[switch].value) if switch in written else on for switch, on in SWITCHES.items()}
        hierarchy = HIERARCHY in written and bool(written[HIERARCHY].value)
        return PluginOption(name, switches, hierarchy, arguments, path, node.line, written, lines)

    def _written(self, entry: dict[str, DocumentNode]) -> dict[str, Written]:
        written: dict[str, Written] = {}
        for switch in (*SWITCHES, HIERARCHY):
            for spelling in (other_spelling(switch), switch):
                node = entry.get(spelling)
                if node is None or node.value is None:
                    continue
                if not isinstance(node.value, bool):
                    self.refuse(f"{spelling} must be true or false, not {_shape(node)}", node.line)
                if self._counts(switch, spelling, entry, node.line):
                    written[switch] = Written(spelling, node.line, node.value)
        return written

    def _counts(self, switch: str, spelling: str, entry: dict[str, DocumentNode], line: int) -> bool:
        if spelling == switch:
            return True
        if self.ways.asks("switch-spelling"):
            self.mistake(f"unknown key {spelling} in a plugin entry", line, spelling, (switch,))
            return False
        if switch in entry:
            text = f"{spelling} is not looked at, because {switch} stands there too"
            self.complaints.append(Complaint("tolerated", text, key=spelling, line=line, nearest=switch))
        return True

    def _arguments(self, node: DocumentNode | None) -> tuple[dict[str, object], dict[str, int]]:
        entries = self.mapping(node, "arguments") if node else {}
        lines = {key: value.line for key, value in entries.items()}
        return {key: value.plain() for key, value in entries.items()}, lines

    def _configuration(self, node: DocumentNode) -> ActionOption:
        entry = self.mapping(node, "a configuration", ("name", "arguments"))
        written = self.text(entry.get("name"), "name")
        name = ACTION_ALIASES.get(written, written)
        if name not in self.known_actions:
            problem = f"configuration of an unknown action {written}"
            self.mistake(problem, entry.get("name", node).line, written, (*self.known_actions, *ACTION_ALIASES))
        arguments, lines = self._arguments(entry.get("arguments"))
        return ActionOption(name, arguments, node.line, lines)

    def _metrics(self, node: DocumentNode | None) -> dict[str, str]:
        entries = self.mapping(node, "metrics", METRICS_KEYS) if node else {}
        return {key: self.text(value, f"metrics {key}") for key, value in entries.items()}

    def _tie_break(self, node: DocumentNode | None) -> str:
        written = self.text(node, "tie-break") or "first"
        if node and written not in TIE_BREAKS:
            self.mistake(f"tie-break knows {', '.join(TIE_BREAKS)}, not {written}", node.line, written, TIE_BREAKS)
        return written if written in TIE_BREAKS else "first"

    def _check_compat(self, node: DocumentNode | None) -> None:
        written = self.text(node, "compat")
        if node and written not in ("", "volcano"):
            self.mistake(f"compat knows volcano, not {written}", node.line, written, ("volcano",))


_PLUGIN_KEYS = (
    "name",
    "arguments",
    "path",
    *(spelling for switch in (*SWITCHES, HIERARCHY) for spelling in (switch, other_spelling(switch))),
)

_EMPTY = '(an empty name; list the actions, e.g. actions: "enqueue, allocate, backfill")'


def _shape(node: DocumentNode) -> str:
    if isinstance(node.value, dict):
        return "a mapping"
    return "a list" if isinstance(node.value, list) else repr(node.raw)
