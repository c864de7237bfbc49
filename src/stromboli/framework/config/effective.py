"""What a configuration amounts to: every switch and argument with its value and where the value comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stromboli.framework.config.argument import Argument, Complaint, parse_arguments, tolerated
from stromboli.framework.config.config import HIERARCHY, Config, PluginOption
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.points import SWITCHES


@dataclass(frozen=True, slots=True)
class Row:
    """One effective setting.

    ``section`` is ``tier 1`` or ``action``, ``owner`` the plugin or action, ``kind`` switch or argument; ``origin``
    is ``default``, or file and line, with the spelling where that is not the setting's own name.
    """

    section: str
    owner: str
    kind: str
    name: str
    value: object
    origin: str


def describe(config: Config, registry: Registry) -> tuple[Row, ...]:
    """Every switch and argument of every plugin entry and action, tier by tier, written or not.

    Plugins that the registry does not know (a lenient configuration) show what is written.  Raises PluginError for a
    plugin that cannot be imported.
    """
    rows: list[Row] = []
    for number, tier in enumerate(config.tiers, 1):
        for option in tier:
            rows += _switches(config, option, f"tier {number}")
            rows += _arguments(config, _Given.of_plugin(option, registry), f"tier {number}")
    for action in config.actions:
        rows += _arguments(config, _Given.of_action(config, action, registry), "action")
    return tuple(rows)


def check_arguments(config: Config, registry: Registry) -> tuple[Complaint, ...]:
    """What is wrong with the arguments of plugins and actions, with lines.

    Plugins that the registry does not know are left out.  Raises PluginError for a bad value of a fatal argument.
    """
    sections = [_Given.of_plugin(option, registry) for option in config.plugins()]
    sections += [_Given.of_action(config, action, registry) for action in config.actions]
    return tuple(complaint for given in sections if given.declared is not None for complaint in given.complaints())


@dataclass(frozen=True, slots=True)
class _Given:
    """The arguments of one plugin or action as written, and those that it declares (None: unknown)."""

    owner: str
    arguments: Mapping[str, object]
    lines: Mapping[str, int]
    declared: Mapping[str, Argument[Any]] | None

    @classmethod
    def of_plugin(cls, option: PluginOption, registry: Registry) -> _Given:
        known = registry.plugin_class(option.name) if option.name in registry.plugin_names else None
        return cls(option.name, option.arguments, option.argument_lines, known.arguments if known else None)

    @classmethod
    def of_action(cls, config: Config, action: str, registry: Registry) -> _Given:
        entry = next((entry for entry in config.configurations if entry.name == action), None)
        declared: Mapping[str, Argument[Any]] | None = getattr(registry.action(action), "arguments", None)
        return cls(action, entry.arguments if entry else {}, entry.argument_lines if entry else {}, declared)

    def complaints(self) -> Iterator[Complaint]:
        _, found = parse_arguments(self.declared or {}, self.arguments, self.owner)
        return (replace(complaint, line=self._line(complaint.key)) for complaint in found)

    def _line(self, key: str) -> int:
        """The line of an argument, or of the section that it stands in; 0 where that is not known."""
        sections = (line for written, line in self.lines.items() if key.startswith(f"{written}."))
        return self.lines.get(key) or next(sections, 0)

    def values(self) -> dict[str, object]:
        """Every argument by key: effective values of declared ones, members of families, then undeclared ones."""
        parsed, _ = parse_arguments(self.declared or {}, self.arguments, self.owner)
        shown: dict[str, object] = {}
        for name, spec in (self.declared or {}).items():
            family = parsed[name] if spec.is_pattern else {"": parsed[name]}
            shown |= {spec.key.replace("*", gap): value for gap, value in family.items()}
        return shown | {key: value for key, value in self.arguments.items() if key not in shown}


def _switches(config: Config, option: PluginOption, section: str) -> Iterator[Row]:
    for switch in (*SWITCHES, HIERARCHY):
        value = option.enable_hierarchy if switch == HIERARCHY else option.switches.get(switch, False)
        written = option.written.get(switch)
        origin = _place(config, written.line) if written else "default"
        spelling = f" as {written.spelling}" if written and written.spelling != switch else ""
        yield Row(section, option.name, "switch", switch, value, origin + spelling)


def _arguments(config: Config, given: _Given, section: str) -> Iterator[Row]:
    refused = {complaint.key for complaint in given.complaints() if complaint.kind in ("type", "range")}
    for key, value in given.values().items():
        place = _place(config, given.lines.get(key, 0)) if key in given.arguments else ""
        origin = f"default, as {place} is refused" if key in refused else place or "default"
        if key in given.arguments and (why := tolerated(given.owner, key)):
            origin += f", without effect: {why}"
        yield Row(section, given.owner, "argument", key, value, origin)


def _place(config: Config, line: int) -> str:
    return f"{config.source}:{line}" if line else config.source
