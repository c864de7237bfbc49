"""Source ``file``: a tree that an administrator or another program wrote down.

Two forms: YAML, ``tiers: [{name: rack, hypernodes: {rack-1: [node-1, "node-1*"]}}, ...]`` from the narrowest tier, and
Slurm's ``topology.conf``, https://slurm.schedmd.com/topology.conf.html, which NVIDIA's topograph writes, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from stromboli.cluster.files import yaml_values
from stromboli.controllers.discovery.domains import Domain, Found
from stromboli.errors import ManifestError

SOURCE: Final = "file"
LARGEST: Final = 8 << 20
"""Bytes of the largest file that is read."""
MOST_NAMES: Final = 200_000
"""Names that the host lists of a file may stand for in all."""
_SWITCH: Final = re.compile(r"(?m)^[ \t]*SwitchName[ \t]*=", re.IGNORECASE)
_PART: Final = re.compile(r"([^\[\],]*)(?:\[([^\]]*)\])?")


def discover(text: str) -> Found:
    """The domains that a file describes.  Raises ManifestError."""
    if len(text) > LARGEST:
        raise ManifestError(f"the file is larger than {LARGEST} bytes", object="network topology")
    domains = tuple(_slurm(text) if _SWITCH.search(text) else _tiers(text))
    names = [domain.name for domain in domains]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ManifestError(f"{twice[0]} stands there twice", object="network topology")
    return Found(domains)


# -- YAML --------------------------------------------------------------------------------------------------------------


def _tiers(text: str) -> Iterator[Domain]:
    found = yaml_values.load(text)
    tiers = found.get("tiers") if isinstance(found, dict) else None
    if not isinstance(tiers, list):
        raise ManifestError("there is no list tiers", object="network topology", path="tiers")
    for number, tier in enumerate(tiers, 1):
        path = f"tiers[{number - 1}].hypernodes"
        domains = tier.get("hypernodes") if isinstance(tier, dict) else None
        if not isinstance(domains, dict):
            raise ManifestError("there are no hypernodes", object="network topology", path=path)
        for name, members in domains.items():
            yield _of_tier(number, str(tier.get("name") or ""), str(name), members, f"{path}.{name}")


def _of_tier(number: int, tier_name: str, name: str, members: Any, path: str) -> Domain:
    if not isinstance(members, list) or not members or not all(isinstance(member, str) for member in members):
        raise ManifestError("this is no list of names", object="network topology", path=path)
    globs = [member for member in members if "*" in member or "?" in member]
    if globs and number > 1:
        raise ManifestError(f"{globs[0]}: only names of nodes may have * and ?", object="network topology", path=path)
    return Domain(
        name,
        number,
        tuple(sorted(set(members).difference(globs))),
        of_domains=number > 1,
        tier_name=tier_name,
        patterns=tuple(_regex(glob) for glob in sorted(globs)),
    )


def _regex(glob: str) -> str:
    """A shell pattern as a regular expression."""
    letters = {"*": ".*", "?": "."}
    return "^" + "".join(letters.get(letter) or re.escape(letter) for letter in glob) + "$"


# -- Slurm -------------------------------------------------------------------------------------------------------------


def _slurm(text: str) -> list[Domain]:
    switches = dict(_switches(text))
    tiers: dict[str, int] = {}
    for _ in range(len(switches)):
        ready = {
            name: 1 + max((tiers[child] for child in children), default=0)
            for name, (_, children) in switches.items()
            if name not in tiers and all(child in tiers for child in children)
        }
        if not ready:
            break
        tiers.update(ready)
    if stuck := sorted(switches.keys() - tiers.keys()):
        raise ManifestError(f"switch {stuck[0]} contains itself or a switch that is missing", object="topology.conf")
    return [
        Domain(name, tiers[name], children or nodes, of_domains=bool(children))
        for name, (nodes, children) in sorted(switches.items(), key=lambda item: (tiers[item[0]], item[0]))
    ]


def _switches(text: str) -> Iterator[tuple[str, tuple[tuple[str, ...], tuple[str, ...]]]]:
    """Each switch with its nodes and its switches."""
    budget = [MOST_NAMES]
    for line in text.replace("\\\n", " ").splitlines():
        words = line.partition("#")[0].split()
        settings = {key.lower(): value for key, _, value in (word.partition("=") for word in words)}
        nodes = tuple(sorted(set(hosts(settings.get("nodes", ""), budget))))
        children = tuple(sorted({_named(child) for child in hosts(settings.get("switches", ""), budget)}))
        for name in hosts(settings.get("switchname", ""), budget):
            if bool(nodes) == bool(children):
                raise ManifestError(f"switch {name} needs either Nodes or Switches", object="topology.conf")
            yield _named(name), (nodes, children)


def _named(switch: str) -> str:
    """A switch's name as that of an object."""
    return re.sub(r"[^a-z0-9.-]", "-", switch.lower()).strip("-.")


def hosts(text: str, budget: list[int]) -> Iterator[str]:
    """The names that a host list of Slurm stands for: ``n[0-2,7],m``; ``budget`` holds how many there may still be."""
    for match in _PART.finditer(text):
        prefix, ranges = match.groups()
        for number in _numbers(ranges, budget) if ranges is not None else ("",) if prefix else ():
            budget[0] -= 1
            if budget[0] < 0:
                raise ManifestError(f"the file names more than {MOST_NAMES} hosts", object="topology.conf")
            yield prefix + number


def _numbers(ranges: str, budget: list[int]) -> Iterator[str]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if not (first.isascii() and last.isascii() and first.isdigit() and last.isdigit() and len(last) <= 9):
            raise ManifestError(f"[{ranges[:63]}] is no range of numbers", object="topology.conf")
        for number in range(int(first), min(int(last), int(first) + budget[0]) + 1):
            yield str(number).zfill(len(first))
