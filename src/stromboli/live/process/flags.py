"""The flags of ``stromboli serve``: the reference's with their names and defaults, and a few of our own.

:data:`FLAGS` is the one table.  Flags are written as the reference's are: ``--name=value``, ``--name value``, and a
switch alone or with ``=true`` or ``=false``.  An unknown flag is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from stromboli.errors import ConfigError, DurationError
from stromboli.framework.config.argument import nearest
from stromboli.framework.config.gates import DECIDING, DEFAULTS, parse_gates
from stromboli.model.names import DEFAULT_QUEUE, NAMESPACE, SCHEDULER_LEASE, SCHEDULER_NAME
from stromboli.model.values import duration


class Flag(NamedTuple):
    """One flag: its name, kind (``text texts bool some int float duration gates``), default as written, and meaning.

    ``some`` is a switch that may also name parts: none is an empty tuple, all are ``("*",)``.  ``own`` marks those that
    the reference does not have, ``idle`` those that are accepted and do nothing; their meaning says why.
    """

    name: str
    kind: str
    default: str
    help: str
    own: bool = False
    idle: bool = False


FLAGS: Final = (
    Flag("master", "text", "", "Address of the API server; replaces the one of the kubeconfig."),
    Flag("kubeconfig", "text", "", "Kubeconfig file; without it the pod's own cluster, then $KUBECONFIG."),
    Flag("kube-api-qps", "float", "2000", "Requests a second to the API server."),
    Flag("kube-api-burst", "int", "2000", "Requests at once to the API server."),
    Flag("ca-cert-file", "text", "", "Authority for clients of the health server; the next two are needed too."),
    Flag("tls-cert-file", "text", "", "Certificate of the health server."),
    Flag("tls-private-key-file", "text", "", "Key of the health server."),
    Flag("scheduler-name", "texts", SCHEDULER_NAME, "Pods with this schedulerName are handled; may be repeated."),
    Flag("scheduler-conf", "text", "", "Configuration file; a changed one counts from the next cycle on."),
    Flag("schedule-period", "duration", "1s", "Pause between cycles."),
    Flag("resync-period", "duration", "0s", "How often all objects are listed again; 0 for never."),
    Flag("default-queue", "text", DEFAULT_QUEUE, "Queue of PodGroups that name none."),
    Flag("listen-address", "text", ":8080", "Where metrics are served."),
    Flag("healthz-address", "text", ":11251", "Where /healthz and /readyz are served."),
    Flag("enable-healthz", "bool", "false", "Serve /healthz and /readyz."),
    Flag("enable-metrics", "bool", "false", "Serve /metrics."),
    Flag("enable-pprof", "bool", "false", "Serve /debug/pprof/goroutine: what every thread and coroutine is doing."),
    Flag("priority-class", "bool", "true", "Look at PriorityClasses."),
    Flag("minimum-feasible-nodes", "int", "100", "Enough nodes for a task where nodes are sampled."),
    Flag("minimum-percentage-nodes-to-find", "int", "5", "Least share of nodes to find where the next flag is 0."),
    Flag("percentage-nodes-to-find", "int", "0", "Sample: find so many percent; 0: fewer the more there are."),
    Flag("plugins-dir", "text", "", "Load plugins from the Python files of this folder."),
    Flag("job-plugins-dir", "text", "", "Load job plugins from the Python files of this folder.", own=True),
    Flag("csi-storage", "bool", "true", "Look at the room that CSI drivers say they have for new volumes."),
    Flag("node-selector", "texts", "", "label:value of the nodes to schedule on, any of them; may be repeated."),
    Flag("cache-dumper", "bool", "true", "SIGUSR1 writes the snapshot to a file, SIGUSR2 logs it."),
    Flag("cache-dump-dir", "text", "/tmp", "Where SIGUSR1 writes it."),
    Flag("node-worker-threads", "int", "20", "Nodes need no workers.", idle=True),
    Flag("gate-removal-worker-num", "int", "5", "Ignored: the workers of other writes remove gates, too.", idle=True),
    Flag("ignored-provisioners", "texts", "", "Provisioners whose volumes count for no limit of a node."),
    Flag("resource-sync-timeout", "duration", "60s", "How long to wait for the first lists; 0 for no wait."),
    Flag("disable-default-scheduler-config", "bool", "false", "Refuse to run without a usable configuration file."),
    Flag("scheduler-sharding-mode", "text", "none", "Nodes of its NodeShard only: hard; these first: soft; or none."),
    Flag("scheduler-sharding-name", "text", "volcano", "Its NodeShard."),
    Flag("version", "bool", "false", "Show the version and exit."),
    Flag("lock-object-namespace", "text", "", "Deprecated; replaces leader-elect-resource-namespace."),
    Flag("leader-elect", "bool", "true", "Of several schedulers let one lead."),
    Flag("leader-elect-lease-duration", "duration", "15s", "How long others wait for a silent leader."),
    Flag("leader-elect-renew-deadline", "duration", "10s", "How long a leader goes on without renewing."),
    Flag("leader-elect-retry-period", "duration", "2s", "Pause between attempts."),
    Flag("leader-elect-resource-lock", "text", "leases", "Only leases."),
    Flag("leader-elect-resource-name", "text", SCHEDULER_LEASE, "Name of the Lease."),
    Flag(
        "leader-elect-resource-namespace",
        "text",
        NAMESPACE,
        "Namespace of the Lease, and of the Secret of reservations.",
    ),
    Flag("feature-gates", "gates", "", "Name=true or Name=false, parted by commas."),
    Flag("v", "int", "0", "Log up to this level, 0 to 5."),
    Flag("log-flush-frequency", "duration", "5s", "How long log lines are held back at most."),
    Flag("logtostderr", "bool", "true", "Logs go to standard error, whatever this says.", idle=True),
    Flag("log-format", "text", "text", "text or json.", own=True),
    Flag("audit-period", "duration", "5m", "How often the state is compared with a fresh list; 0 for never.", own=True),
    Flag("compat", "text", "", "volcano: do as Volcano does wherever Stromboli decides otherwise.", own=True),
    Flag("lenient-config", "bool", "false", "Skip what is unknown in the configuration with a warning.", own=True),
    Flag("context", "text", "", "Context of the kubeconfig.", own=True),
    Flag("record", "text", "", "Record what changes the state in this folder, for stromboli replay.", own=True),
    Flag("record-max-size", "text", "10Gi", "Bytes of the record that are kept, the newest.", own=True),
    Flag("record-max-age", "duration", "168h", "How old segments of the record may become.", own=True),
    Flag(
        "shadow",
        "bool",
        "false",
        "Decide in parallel with the running scheduler, write nothing, report differences.",
        own=True,
    ),
    Flag("shadow-patience", "duration", "30s", "How long a plan may want what the other does not do.", own=True),
    Flag("controllers", "some", "false", "Run the controllers too; a list chooses some of them.", own=True),
)

KLOG: Final = (
    Flag("alsologtostderr", "bool", "false", "Logs go to standard error.", idle=True),
    Flag("stderrthreshold", "text", "", "Logs go to standard error, of whatever severity.", idle=True),
    Flag("log-dir", "text", "", "Logs go to standard error.", idle=True),
    Flag("log-file", "text", "", "Logs go to standard error.", idle=True),
    Flag("log-file-max-size", "text", "", "Logs go to standard error.", idle=True),
    Flag("log-backtrace-at", "text", "", "Lines have no stack traces.", idle=True),
    Flag("vmodule", "text", "", "-v holds for all files.", idle=True),
    Flag("one-output", "bool", "false", "Each line is written once.", idle=True),
    Flag("skip-headers", "bool", "false", "Lines keep their headers.", idle=True),
    Flag("skip-log-headers", "bool", "false", "Logs go to standard error.", idle=True),
    Flag("add-dir-header", "bool", "false", "Headers name no folders.", idle=True),
)
"""Flags of Go's logging library, which all components of the reference take; help does not list them."""

GIVEN: Final = "given"
"""Under which name :func:`parse` tells which flags were written."""

IDLE: Final = "idle"
"""Under which name :func:`parse` tells, in sentences, what was written without effect."""

SHELL: Final = frozenset({"2>&1", "1>&2"})
"""Redirections that stand among the arguments of the reference's own manifests, where no shell takes them."""

SAMPLING: Final = ("minimum-feasible-nodes", "minimum-percentage-nodes-to-find", "percentage-nodes-to-find")
"""Flags of which any, once written, has nodes sampled: else all are looked at."""

LOG_TO_STDERR: Final = "logtostderr"

SWITCHES: Final = frozenset({"bool", "some"})
"""Kinds of flags that mean yes when they stand alone."""

_TRUTH: Final = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}

Value = Any


def _bool(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError(f"{text!r} is neither true nor false")
    return _TRUTH[text.lower()]


def _gates(text: str) -> dict[str, bool]:
    return {**DEFAULTS, **parse_gates(text)}


_READ: Final[Mapping[str, Callable[[str], Value]]] = {
    "text": str,
    "texts": lambda text: tuple(part for part in text.split(",") if part),
    "bool": _bool,
    "some": lambda text: _READ["texts"](text) if text.lower() not in _TRUTH else ("*",) if _bool(text) else (),
    "int": int,
    "float": float,
    "duration": duration.seconds,
    "gates": _gates,
}


def parse(arguments: Sequence[str], flags: Sequence[Flag] = FLAGS) -> dict[str, Value]:
    """The values of all ``flags``, by name with underscores; ``given`` are the names of those that were written.

    ``idle`` are sentences on what was written without effect.  Raises ConfigError naming the flag.
    """
    flags = (*flags, *KLOG)
    known = {flag.name: flag for flag in flags}
    values = {flag.name: _read(flag, flag.default) for flag in flags}
    given: dict[str, list[str]] = {}
    for name, text in _pairs(arguments, known):
        given.setdefault(name, []).append(text)
    for name, texts in given.items():
        flag = known[name]
        values[name] = _read(flag, ",".join(texts) if flag.kind == "texts" else texts[-1])
    idle = [text for name, texts in given.items() for text in without_effect(known[name], texts[-1], values[name])]
    told: tuple[tuple[str, Value], ...] = ((GIVEN, frozenset(given)), (IDLE, idle))
    return {name.replace("-", "_"): value for name, value in (*values.items(), *told)}


def without_effect(flag: Flag, text: str, value: Value) -> list[str]:
    """What of a flag that was written makes no difference: the flag itself, or gates that decide nothing."""
    if flag.name == LOG_TO_STDERR and value:  # as it is
        return []
    if flag.idle:
        return [f"--{flag.name} does nothing: {flag.help[:1].lower()}{flag.help[1:]}"]
    idle = sorted(parse_gates(text).keys() - DECIDING) if flag.kind == "gates" else ()
    return [f"--{flag.name}: {name} makes no difference to what is decided" for name in idle]


def _read(flag: Flag, text: str) -> Value:
    try:
        return _READ[flag.kind](text)
    except (ValueError, DurationError) as error:
        raise ConfigError(f"--{flag.name}={text}: {error}") from error


def _pairs(arguments: Iterable[str], known: Mapping[str, Flag]) -> Iterator[tuple[str, str]]:
    """Names and texts of flags, in order."""
    rest = iter(arguments)
    for argument in rest:
        if argument in SHELL:
            continue
        name, has_value, text = argument.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not argument.startswith("-") or name not in known:
            raise ConfigError(f"unknown flag {argument.partition('=')[0]}", nearest=nearest(name, known))
        if not has_value:
            text = "true" if known[name].kind in SWITCHES else next(rest, "")
            if not text and known[name].kind != "text":
                raise ConfigError(f"--{name} needs a value")
        yield name, text


def help_text(command: str = "serve", flags: Sequence[Flag] = FLAGS) -> str:
    """All ``flags`` of a command with their defaults, a line each."""
    width = max(len(f"--{flag.name}={flag.default}") for flag in flags)
    rows = (f"  {f'--{flag.name}={flag.default}':{width}}  {'Does nothing. ' * flag.idle}{flag.help}" for flag in flags)
    return "\n".join([f"Usage: stromboli {command} [FLAGS]", "", *rows, ""])
