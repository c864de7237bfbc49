"""The reference's programs as they run: versions, flags, elections, webhooks, and parts that we do not replace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from stromboli.cli.linting.findings import Rule, Spot
from stromboli.cli.migrating.bodies import Body, at, title
from stromboli.errors import ConfigError
from stromboli.framework.config.gates import ADMISSION
from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.live.process.flags import FLAGS, GIVEN, IDLE, Flag, parse
from stromboli.live.webhooks.flags import WEBHOOK_FLAGS

PROGRAM: Final = re.compile(
    r"vc-(scheduler|controller-manager|webhook-manager|hypernode-controller-manager|agent-scheduler|agent)\b"
)
"""The reference's programs, in names of images and commands."""

FLAGS_OF: Final[Mapping[str, Sequence[Flag]]] = {
    "scheduler": FLAGS,
    "controller-manager": CONTROL_FLAGS,
    "hypernode-controller-manager": CONTROL_FLAGS,
    "webhook-manager": WEBHOOK_FLAGS,
}
STAYS: Final[Mapping[str, str]] = {
    "agent": "node agents (colocation, oversubscription) stay Volcano's; Stromboli reads what they write on nodes",
    "agent-scheduler": "there is no agent scheduler; a scheduler with --scheduler-name=agent-scheduler takes its pods",
}


class Program(NamedTuple):
    """One container of the reference: which program, of which object, with which image and arguments."""

    name: str
    where: str
    image: str
    arguments: Sequence[str]
    replicas: int


class Installed(NamedTuple):
    """What of the reference is there."""

    programs: Sequence[Program]
    webhooks: Sequence[Body]

    @classmethod
    def of(cls, bodies: Iterable[Body]) -> Installed:
        """Found among objects."""
        bodies = list(bodies)
        made = [body for body in bodies if body.get("kind") in ("Deployment", "DaemonSet")]
        webhooks = [body for body in bodies if str(body.get("kind")).endswith("WebhookConfiguration")]
        return cls([one for body in made for one in programs_of(body)], webhooks)


def programs_of(body: Body) -> Iterator[Program]:
    """The reference's programs in a Deployment or DaemonSet."""
    for container in at(body, "spec", "template", "spec", "containers") or ():
        words = [*map(str, container.get("command") or ()), *map(str, container.get("args") or ())]
        match = PROGRAM.search(" ".join([str(container.get("image", "")), *words[:1]]))
        if match:
            arguments = [word for word in words if not PROGRAM.search(word)]
            replicas, image = at(body, "spec", "replicas"), str(container.get("image", ""))
            yield Program(match[1], title(body), image, arguments, 1 if replicas is None else replicas)


class Read(NamedTuple):
    """What a program's flags mean to ours, and the errors of those that it does not take."""

    values: Mapping[str, Any]
    refused: Sequence[ConfigError]


def read(program: Program) -> Read | None:
    """The flags of a program; None where ours has no such program."""
    flags, words = FLAGS_OF.get(program.name), _words(program.arguments)
    refused: list[ConfigError] = []
    while flags is not None:
        try:
            return Read(parse(words, flags), refused)
        except ConfigError as error:
            refused.append(error)
            fewer = [word for word in words if word.partition("=")[0] not in error.problem.split()]
            words = fewer if len(fewer) < len(words) else []
    return None


def _words(arguments: Iterable[str]) -> list[str]:
    """Arguments one by one; those of a shell's command line stand in one text."""
    return [word for text in arguments if text not in ("/bin/sh", "sh", "-c") for word in text.split() if word]


def versions(installed: Installed) -> Iterator[Spot]:
    """Which version runs."""
    for one in installed.programs:
        yield Spot(f"runs {one.image or 'an image without a name'}", object=one.where)


def unknown_flags(installed: Installed) -> Iterator[Spot]:
    """Flags that ours does not take."""
    for one in installed.programs:
        for error in found.refused if (found := read(one)) else ():
            hint = f"; did you mean --{error.nearest}?" if error.nearest else ""
            yield Spot(f"{error.problem}{hint}", object=one.where)


def idle_flags(installed: Installed) -> Iterator[Spot]:
    """Flags that are taken and do nothing."""
    for one in installed.programs:
        found = read(one)
        yield from (Spot(text, object=one.where) for text in (found.values[IDLE] if found else ()))


def without_election(installed: Installed) -> Iterator[Spot]:
    """Programs that hold no Lease, so that nothing keeps the two from writing at the same time."""
    for one in installed.programs:
        found = read(one)
        if found is None or "leader_elect" not in found.values:
            continue
        if one.replicas and not (found.values["leader_elect"] and "leader-elect" in found.values[GIVEN]):
            yield Spot("runs without --leader-elect=true: it holds no Lease", object=one.where)


def one_sided_gates(installed: Installed) -> Iterator[Spot]:
    """The gate of queue admission where only one of the scheduler and the webhooks has it on."""
    programs = {one.name: one for one in installed.programs if one.name in _LACKING and one.replicas}
    on = {name for name, one in programs.items() if (found := read(one)) and found.values["feature_gates"][ADMISSION]}
    if len(programs) == len(_LACKING) and len(on) == 1:
        (name,) = on
        yield Spot(f"has {ADMISSION} on, and {_LACKING[name]}", object=programs[name].where)


def leases(installed: Installed) -> Iterator[Spot]:
    """Which Leases the two hand to each other."""
    for one in installed.programs:
        found = read(one)
        if found and found.values.get("leader_elect"):
            values = found.values
            lease = f"{values['leader_elect_resource_namespace']}/{values['leader_elect_resource_name']}"
            yield Spot(f"elects by Lease {lease}", object=one.where)


def staying(installed: Installed) -> Iterator[Spot]:
    """Parts that ours does not replace."""
    for one in installed.programs:
        if one.name in STAYS:
            yield Spot(STAYS[one.name], object=one.where)


def webhooks(installed: Installed) -> Iterator[Spot]:
    """Webhooks that the API server asks at the reference's service."""
    for body in installed.webhooks:
        for hook in body.get("webhooks") or ():
            service = at(hook, "clientConfig", "service", "name")
            if service and str(service).endswith("admission-service"):
                text = f"webhook {hook.get('name')} asks Service {service}, failure policy"
                yield Spot(f"{text} {hook.get('failurePolicy', 'Fail')}", object=title(body))


_LEASE_FIX: Final = "Start ours with the same --leader-elect-resource-name and -namespace; the two never write at once."

_LACKING: Final = {
    "webhook-manager": "the scheduler has not: it never takes the gate off pods that the webhooks give one",
    "scheduler": "the webhooks have not: no pod gets a gate, whatever its annotation asks for",
}
"""What happens where only the program of this name has the gate of queue admission on."""

DEPLOYMENT_RULES: Final[tuple[Rule[Installed], ...]] = (
    Rule(
        "unknown-flag", "error", unknown_flags, "Stromboli does not start with it.",
        "Leave it out of the copied manifest.",
    ),
    Rule(
        "no-election", "warning", without_election,
        "Both schedulers would bind and evict at the same time.",
        "Set --leader-elect=true on it first, or scale it to 0 before ours starts.",
    ),
    Rule(
        "one-sided-gate", "warning", one_sided_gates,
        "Gated pods would wait for ever, or none is gated.",
        f"Give --feature-gates={ADMISSION}=true to both, or to neither.",
    ),
    Rule(
        "part-stays", "warning", staying, "This program has no successor here.",
        "Leave it running; see docs/operators/migration.md.",
    ),
    Rule(
        "webhook", "warning", webhooks,
        "Where the policy is Fail, nothing of these kinds can be created once that service is gone.",
        "Keep it running, or install ours (`stromboli webhooks`) and delete the old configuration in the same step.",
    ),
    Rule(
        "flag-without-effect", "note", idle_flags, "It is taken as it stands and does nothing.",
        "Leave it, or drop it.",
    ),
    Rule("lease", "note", leases, "The Lease is how one hands over to the other.", _LEASE_FIX),
    Rule("version", "note", versions, "Fields and decisions are those of Volcano 1.15.", "Nothing."),
)  # fmt: skip
