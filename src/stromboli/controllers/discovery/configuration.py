"""The sources that a ConfigMap asks for, as the key ``networkTopologyDiscovery`` of ``volcano-controller.conf``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from stromboli.cluster.files import yaml_values
from stromboli.controllers.discovery import labels, static_tree, ufm
from stromboli.errors import DurationError, ManifestError
from stromboli.model.values import duration

KEY: Final = "volcano-controller.conf"
SECTION: Final = "networkTopologyDiscovery"
HOUR: Final = 3600.0
SHORTEST: Final = 1.0
"""Seconds between two polls at least."""
SOURCES: Final = (labels.SOURCE, ufm.SOURCE, static_tree.SOURCE)
LONGEST: Final = 1 << 20
"""Characters of a configuration, as many as a ConfigMap can hold."""


@dataclass(frozen=True, slots=True)
class Source:
    """One enabled source: its name, the seconds between two polls, its settings, and the Secret with its login."""

    name: str
    interval: float = HOUR
    config: Mapping[str, object] = field(default_factory=dict)
    secret: tuple[str, str] | None = None
    """Namespace and name."""


def sources_of(data: Mapping[str, str]) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """The enabled sources that a ConfigMap's ``data`` names, and sentences on entries that are left out.

    Of two entries for one source the first enabled one counts.  Raises ManifestError for what cannot be read.
    """
    if KEY not in data:
        raise ManifestError(f"config key not found in ConfigMap: {KEY}")
    if len(data[KEY]) > LONGEST:
        raise ManifestError(f"failed to parse config: {KEY} has more than {LONGEST} characters")
    try:
        found = yaml_values.load(data[KEY])
    except ManifestError as error:
        raise ManifestError(f"failed to parse config: {error}") from error
    entries = found.get(SECTION) if isinstance(found, dict) else None
    if entries is not None and not isinstance(entries, list):
        raise ManifestError(f"failed to parse config: {SECTION} is no list")
    problems: list[str] = []
    sources: dict[str, Source] = {}
    for source in _enabled(entries or [], problems):
        sources.setdefault(source.name, source)
    return tuple(sources.values()), tuple(problems)


def _enabled(entries: list[object], problems: list[str]) -> Iterator[Source]:
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("enabled") is not True:
            continue
        name = str(entry.get("source") or "")
        if name not in SOURCES:
            known = ", ".join(SOURCES)
            problems.append(f"failed to create discoverer: unsupported discoverer type: {name[:63]}; there are {known}")
            continue
        config = entry.get("config")
        yield Source(name, _interval(entry, problems), config if isinstance(config, dict) else {}, _secret(entry))


def _interval(entry: Mapping[str, object], problems: list[str]) -> float:
    given = entry.get("interval")
    if given is None:
        return HOUR
    try:
        seconds = duration.seconds(str(given))
    except DurationError as error:
        problems.append(f"interval of {entry['source']}: {error}; polling every hour")
        return HOUR
    return max(seconds, SHORTEST) if seconds > 0 else HOUR


def _secret(entry: Mapping[str, object]) -> tuple[str, str] | None:
    credentials = entry.get("credentials")
    reference = credentials.get("secretRef") if isinstance(credentials, dict) else None
    if not isinstance(reference, dict):
        return None
    return str(reference.get("namespace") or ""), str(reference.get("name") or "")
