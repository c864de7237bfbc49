"""Network domains as a source finds them, and the writes that make the HyperNodes of a source equal to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from stromboli.api.kinds import HYPER_NODES, KINDS
from stromboli.api.topology import HYPER_NODE, NODE, HyperNode, HyperNodeSpec
from stromboli.controllers.changes import Change, Create, Delete, Json, Outcome, Patch
from stromboli.model.names import NETWORK_TOPOLOGY_SOURCE


@dataclass(frozen=True, slots=True)
class Domain:
    """A HyperNode that there should be; ``members`` are names of nodes or, with ``of_domains``, of HyperNodes.

    ``patterns`` are regular expressions for names of further nodes, ``labels`` are written in addition to the source's.
    """

    name: str
    tier: int
    members: tuple[str, ...] = ()
    of_domains: bool = False
    tier_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    patterns: tuple[str, ...] = ()

    def spec(self) -> Json:
        """The spec of the HyperNode."""
        kind = HYPER_NODE if self.of_domains else NODE
        selectors: list[Json] = [{"exactMatch": {"name": name}} for name in self.members]
        selectors += [{"regexMatch": {"pattern": pattern}} for pattern in self.patterns]
        named: Json = {"tierName": self.tier_name} if self.tier_name else {}
        return {"tier": self.tier, **named, "members": [{"type": kind, "selector": found} for found in selectors]}


@dataclass(frozen=True, slots=True)
class Found:
    """The domains that a source finds, and what it had to leave out: sentences for the administrator."""

    domains: tuple[Domain, ...] = ()
    problems: tuple[str, ...] = ()


def owned(source: str, hyper_nodes: Iterable[HyperNode]) -> list[HyperNode]:
    """The HyperNodes that were made by a source, by name."""
    ours = [node for node in hyper_nodes if node.metadata.labels.get(NETWORK_TOPOLOGY_SOURCE) == source]
    return sorted(ours, key=lambda node: node.metadata.name)


def changes(source: str, domains: Iterable[Domain], hyper_nodes: Mapping[str, HyperNode]) -> Outcome:
    """The writes that make the HyperNodes of ``source`` equal to ``domains``; nothing is written that is equal.

    Members are created and changed before what contains them and deleted after it, a batch for each tier.  A HyperNode
    of a domain's name that ``source`` did not make is left alone; :func:`taken` names it.  ``status`` is not touched.
    """
    wanted = {domain.name: domain for domain in domains}
    by_tier: dict[int, list[Change]] = {}
    for domain in wanted.values():
        known = hyper_nodes.get(domain.name)
        if known is None or known.metadata.labels.get(NETWORK_TOPOLOGY_SOURCE) == source:
            by_tier.setdefault(domain.tier, []).extend(_written(source, domain, known))
    gone: dict[int, list[Change]] = {}
    for node in owned(source, hyper_nodes.values()):
        if node.metadata.name not in wanted:
            deletion = Delete(HYPER_NODES, "", node.metadata.name, node.metadata.uid)
            gone.setdefault(node.spec.tier, []).append(deletion)
    outcome = Outcome()
    for _, batch in [*sorted(by_tier.items()), *sorted(gone.items(), reverse=True)]:
        outcome.then(*batch)
    return outcome


def taken(source: str, domains: Iterable[Domain], hyper_nodes: Mapping[str, HyperNode]) -> list[str]:
    """Sentences on domains whose names belong to HyperNodes that ``source`` did not make."""
    return [
        f"HyperNode {domain.name} exists without the label {NETWORK_TOPOLOGY_SOURCE}={source} and is left as it is; "
        f"delete it, or add the label to have it updated"
        for domain in domains
        if (known := hyper_nodes.get(domain.name)) and known.metadata.labels.get(NETWORK_TOPOLOGY_SOURCE) != source
    ]


def _written(source: str, domain: Domain, known: HyperNode | None) -> list[Change]:
    labels = {**domain.labels, NETWORK_TOPOLOGY_SOURCE: source}
    if known is None:
        row = KINDS["HyperNode"]
        metadata: Json = {"name": domain.name, "labels": labels}
        body: Json = {"apiVersion": row.api_version, "kind": row.kind, "metadata": metadata, "spec": domain.spec()}
        return [Create(HYPER_NODES, "", body)]
    patch: Json = {}
    if known.spec != msgspec.convert(domain.spec(), HyperNodeSpec):
        patch["spec"] = {"tierName": None, **domain.spec()}
    if labels.items() - known.metadata.labels.items():
        patch["metadata"] = {"labels": labels}
    return [Patch(HYPER_NODES, "", domain.name, patch)] if patch else []
