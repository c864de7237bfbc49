"""The one tree of errors that Stromboli raises.

::

    StromboliError
    ├── QuantityError         a text that is no Kubernetes quantity
    ├── DurationError         a text that is no Go duration
    ├── ScheduleError         a schedule or time zone of a CronJob that cannot be read
    ├── PatternError          a regular expression that cannot be used
    ├── CelError              an expression in CEL that cannot be compiled, or not be evaluated on what it is given
    ├── InsufficientResource  an amount was to be taken from a smaller one
    ├── PlacementError        a task cannot stand on, or leave, a node as asked
    ├── NotFoundError         a name that the snapshot or session does not know
    ├── ManifestError         a Kubernetes object with a wrong field
    ├── ConfigError           a scheduler configuration that is refused
    ├── ScenarioError         a scenario file that is refused
    ├── PluginError           a plugin that cannot be loaded, or that failed
    ├── ObjectInTheWay        an object that bears the name of one that a job needs
    ├── CapabilityMissing     a plugin asked for what this run does not offer
    ├── SnapshotError         recorded data that cannot be read back
    ├── RecordError           a record of cycles that cannot be read, and where in it
    ├── StudyError            a study of simulations or records that cannot be made
    ├── AccessError           no way to reach or log in to an API server is configured, or it is configured wrongly
    ├── ApiError              an API server's refusal
    ├── Unreachable           no answer from an API server: what became of the request is unknown
    ├── LostLease             another process leads, or our Lease could not be renewed in time
    ├── MeasurementError      a source of nodes' loads that gives no answer, or one that cannot be read
    ├── ExtenderError         an extender that gives no answer, or one that cannot be used
    ├── ShapeError            a description of simulated nodes that cannot be read
    ├── CannotServe           the embedded API server cannot start
    └── ApiFailure            what the embedded API server refuses a request with

Every message says what is wrong, where, and, where it can be known, what to do.  The parts of a message are attributes
too.  All errors survive pickling, so they may cross the border of a worker process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def _rebuild(kind: type[StromboliError], args: tuple[object, ...], attributes: dict[str, object]) -> StromboliError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class StromboliError(Exception):
    """Base of all errors of this package; ``message`` is the readable text, also given by ``str()``."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(
        self,
    ) -> tuple[
        Callable[[type[StromboliError], tuple[object, ...], dict[str, object]], StromboliError],
        tuple[type[StromboliError], tuple[object, ...], dict[str, object]],
    ]:
        """Pickle by attributes, because subclasses differ in the arguments of their constructors."""
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class QuantityError(StromboliError, ValueError):
    """A value that Kubernetes would not read as a quantity.

    ``value`` is what was given, ``problem`` what is wrong with it.
    """

    def __init__(self, value: object, problem: str) -> None:
        super().__init__(f"{value!r} is not a quantity: {problem}; write e.g. 500m, 2, 1.5 or 4Gi")
        self.value = value
        self.problem = problem


class DurationError(StromboliError, ValueError):
    """A text that Go would not read as a duration; ``value`` is the text, ``problem`` what is wrong with it."""

    def __init__(self, value: object, problem: str) -> None:
        super().__init__(f"{value!r} is not a duration: {problem}; write e.g. 90s, 1m30s or 2h30m")
        self.value = value
        self.problem = problem


class ScheduleError(StromboliError, ValueError):
    """A schedule or time zone of a CronJob that cannot be read; the message says what is wrong."""


class PatternError(StromboliError, ValueError):
    """A regular expression that Go would not read, or that costs too much; the message is Go's where Go has one."""


class CelError(StromboliError):
    """An expression cannot be compiled, or not be evaluated on what it is given."""


class InsufficientResource(StromboliError):
    """An amount was to be subtracted from a smaller one.

    ``available`` and ``wanted`` are printed resources, ``short`` the names of the dimensions that do not suffice.
    """

    def __init__(self, available: str, wanted: str, short: Sequence[str] = ()) -> None:
        detail = f" (short of {', '.join(short)})" if short else ""
        super().__init__(f"resource is not sufficient to do operation: <{available}> sub <{wanted}>{detail}")
        self.available = available
        self.wanted = wanted
        self.short = tuple(short)


class PlacementError(StromboliError):
    """A task cannot be put on, changed on, or taken off a node; ``task`` is ``namespace/name``, ``node`` its name."""

    def __init__(self, message: str, task: str = "", node: str = "") -> None:
        super().__init__(message)
        self.task = task
        self.node = node


class NotFoundError(StromboliError, LookupError):
    """Something was asked for by a name that is not known.

    ``kind`` is the sort of thing (``job``, ``node``, ``queue``, ``resource`` ...), ``name`` the name, ``where`` the
    place that was searched; ``message`` replaces the default text where an exact text is needed.
    """

    def __init__(self, kind: str, name: str, where: str = "", message: str = "") -> None:
        super().__init__(message or f"failed to find {kind} {name}" + (f" in {where}" if where else ""))
        self.kind = kind
        self.name = name
        self.where = where


class ManifestError(StromboliError):
    """A Kubernetes object that cannot be used as written.

    ``file`` and ``document`` (counted from 1, 0 = unknown) say where it was read, ``object`` which one it is
    (``Pod ns/name``), ``path`` which field (``spec.containers[0].resources.requests.cpu``), ``problem`` what is wrong.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str = "",
        document: int = 0,
        object: str = "",  # noqa: A002 - the word that Kubernetes uses for it
        path: str = "",
    ) -> None:
        places = [file, f"document {document}" if document else "", object, path]
        super().__init__(": ".join([", ".join(place for place in places if place), problem]).removeprefix(": "))
        self.problem = problem
        self.file = file
        self.document = document
        self.object = object
        self.path = path


class ConfigError(StromboliError):
    """A scheduler configuration that is refused.

    ``file`` and ``line`` (counted from 1, 0 = unknown) say where, ``problem`` what is wrong, ``nearest`` is the known
    name that was probably meant, or empty.
    """

    def __init__(self, problem: str, *, file: str = "", line: int = 0, nearest: str = "") -> None:
        place = ":".join(part for part in (file, str(line) if line else "") if part)
        hint = f"; did you mean {nearest!r}?" if nearest else ""
        super().__init__(f"{place}: {problem}{hint}" if place else f"{problem}{hint}")
        self.problem = problem
        self.file = file
        self.line = line
        self.nearest = nearest


class ScenarioError(StromboliError):
    """A scenario that is refused; ``file`` says where, ``path`` names the field, ``problem`` what is wrong."""

    def __init__(self, problem: str, *, file: str = "", path: str = "") -> None:
        place = ": ".join(part for part in (file, path) if part)
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.file = file
        self.path = path


class PluginError(StromboliError):
    """A plugin that cannot be loaded or that failed; ``plugin`` is its name, ``point`` the extension point, if any."""

    def __init__(self, plugin: str, problem: str, *, point: str = "") -> None:
        where = f"plugin {plugin}, point {point}" if point else f"plugin {plugin}"
        super().__init__(f"{where}: {problem}")
        self.plugin = plugin
        self.problem = problem
        self.point = point


class ObjectInTheWay(StromboliError):
    """An object has the name of one that a job needs, and is none that may serve it: the job waits."""


LIVE = "live"
"""The mode of a run against an API server."""
SHADOW = "shadow"
"""The mode of a run against an API server that writes nothing."""


_HINTS = {LIVE: {"gate_manager": " unless the feature gate SchedulingGatesQueueAdmission is on"}}
"""What a run of a mode must have to offer a capability, as the end of a sentence."""
_OTHERWISE = {LIVE: "", SHADOW: ", as it writes nothing, and this capability allows writes"}
"""What is said of the others."""


class CapabilityMissing(StromboliError):
    """A plugin asked for a capability (``kube_client``, ``informers`` ...) that this run does not offer.

    ``capability``, ``plugin`` and ``mode`` (``plan``, ``live`` ...) are what the text names.
    """

    def __init__(self, capability: str, plugin: str = "", mode: str = "") -> None:
        asked = f"plugin {plugin} asks for" if plugin else "asked for"
        hint = _HINTS.get(mode, {}).get(capability, _OTHERWISE.get(mode, "; use it only against a live cluster"))
        super().__init__(f"{asked} {capability}, {self.clause(mode)}{hint}")
        self.capability = capability
        self.plugin = plugin
        self.mode = mode

    @staticmethod
    def clause(mode: str) -> str:
        """The words by which a text is known to be of a run of ``mode`` that does not offer something."""
        return f"which {f'a {mode} run' if mode else 'this run'} does not offer"


class SnapshotError(StromboliError):
    """Recorded data that cannot be read back: wrong version, damaged, or not a snapshot at all."""


class RecordError(StromboliError):
    """A record cannot be read: ``file`` and ``place``, in bytes from its beginning, say where."""

    def __init__(self, file: object, place: int, problem: str) -> None:
        super().__init__(f"{file}, byte {place}: {problem}")
        self.file, self.place, self.problem = str(file), place, problem


class StudyError(StromboliError):
    """A study of simulations or records that cannot be made; the text says why and what to do."""


class AccessError(StromboliError):
    """What leads to an API server (a kubeconfig, a token, a credential plugin) is missing or wrong.

    ``file`` says where, ``path`` names the field, ``problem`` what is wrong.  Secrets never appear in it.
    """

    def __init__(self, problem: str, *, file: str = "", path: str = "") -> None:
        place = ": ".join(part for part in (file, path) if part)
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.file = file
        self.path = path


class ApiError(StromboliError):
    """An API server has refused a request.

    ``code`` is the HTTP status, ``reason`` Kubernetes' word for it (``Conflict``, ``AlreadyExists`` ...), ``problem``
    the server's text, ``request`` the method and path, ``retry_after`` the seconds to wait because it asks to, or None.
    """

    def __init__(
        self, code: int, reason: str, problem: str, *, request: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(problem or f"the server answered {code} {reason}".rstrip())
        self.code = code
        self.reason = reason
        self.problem = problem
        self.request = request
        self.retry_after = retry_after

    @property
    def not_found(self) -> bool:
        """Whether the object is not there."""
        return self.code == 404

    @property
    def conflict(self) -> bool:
        """Whether the object has changed meanwhile, or exists already."""
        return self.code == 409

    @property
    def gone(self) -> bool:
        """Whether a resource version or a page's token is too old."""
        return self.code == 410


class Unreachable(StromboliError):
    """No answer came to ``request`` (method and path); ``problem`` says why.  It may have been carried out or not."""

    def __init__(self, problem: str, *, request: str = "") -> None:
        super().__init__(f"{request}: {problem}" if request else problem)
        self.problem = problem
        self.request = request


class LostLease(StromboliError):
    """This process no longer holds the Lease of the leader."""


class MeasurementError(StromboliError):
    """Another system did not answer as it should: ``source`` names it, if known, ``problem`` says what is wrong."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}" if source else problem)
        self.source = source
        self.problem = problem


class ExtenderError(StromboliError):
    """An extender (``url``) gave no usable answer; ``problem`` says why."""

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(f"extender {url}: {problem}" if url else problem)
        self.url = url
        self.problem = problem


class ShapeError(StromboliError):
    """A description of nodes that cannot be read; the message says which part."""


class CannotServe(StromboliError):
    """The embedded API server could not start; the message says why."""


class ApiFailure(StromboliError):
    """A request that is refused; ``code`` is the HTTP status, ``reason`` and ``details`` stand in the Status object."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details

    @property
    def status(self) -> dict[str, Any]:
        """The Status object that answers the request."""
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body |= {"message": self.message} | ({"reason": self.reason} if self.reason else {})
        if self.details is not None:
            body["details"] = dict(self.details)
        return {**body, "code": self.code}


def innermost(error: BaseException) -> BaseException:
    """What really went wrong: of errors in groups, as concurrent work raises them, the first that is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def in_words(error: BaseException) -> str:
    """What went wrong: the message, which of an error of ours says it all; of any other its type, too."""
    return str(error) if isinstance(error, StromboliError) else f"{type(error).__name__}: {error}".rstrip(": ")
