"""The base class of plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from stromboli.errors import PluginError
from stromboli.framework.config.argument import Argument, Complaint, parse_arguments
from stromboli.framework.extension.hook import Hook, check_hook, hooks_on

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.jobs import QueueInfo
    from stromboli.framework.extension.weighing import Weighed
    from stromboli.model.job import Job
    from stromboli.model.task import Task


class Plugin:
    """A set of answers to extension points, one instance for every session.

    A subclass sets ``name``, declares its arguments as class attributes with :func:`~stromboli.plugin.arg` and answers
    in methods under the points' decorators.  Methods keep their hooks when a subclass overrides them.
    """

    name: ClassVar[str] = ""
    trusted: ClassVar[bool] = False
    """Whether an error of a hook is an error of the scheduler; hooks of other plugins are guarded, which takes time."""
    queue_accounts: ClassVar[int] = 0
    """How much the plugin derives from the sums of queues: texts about wrong sums name the one that derives most."""
    annotations: ClassVar[tuple[str, ...]] = ()
    """Domains of annotations that the plugin reads in addition to Volcano's and Kubernetes': records keep them."""
    arguments: ClassVar[Mapping[str, Argument[Any]]] = {}
    _hooked: ClassVar[Mapping[str, tuple[Hook, ...]]] = {}

    complaints: list[Complaint]
    """What was wrong with the arguments that this instance was given."""

    def __init_subclass__(cls, trusted: bool = False) -> None:
        """Collect arguments and hooks; raise PluginError if a hook does not match its point."""
        super().__init_subclass__()
        cls.trusted = trusted
        own = vars(cls)
        cls.arguments = {**cls.arguments, **{name: value for name, value in own.items() if isinstance(value, Argument)}}
        cls._hooked = {**cls._hooked, **{name: hooks for name in own if (hooks := hooks_on(own[name]))}}
        for name, hooks in cls._hooked.items():
            for hook in hooks:
                check_hook(cls.name or cls.__name__, hook, getattr(cls, name), method=True)
                _refuse_missing(cls, hook)
        _refuse_twins(cls.name or cls.__name__, cls._hooked)

    def __init__(self, arguments: Mapping[str, object] | None = None) -> None:
        """Parse the arguments of the configuration; wrong ones keep their defaults and become ``complaints``.

        Raises PluginError if the class has no name, or for a bad value of a fatal argument.
        """
        if not self.name:
            raise PluginError(type(self).__name__, "has no name; set the class attribute name")
        values, self.complaints = parse_arguments(self.arguments, arguments or {}, self.name)
        self.__dict__.update(values)

    def on_session_open(self, session: ClusterView) -> None:
        """Called once when the session opens, after the snapshot is taken and in the order of the configuration."""

    def on_session_close(self, session: ClusterView) -> None:
        """Called once when the session closes, in the reverse of the opening order."""

    def kinds_read(self) -> tuple[str, ...]:
        """Kinds of objects that a live scheduler follows for this plugin alone, from when it is configured on."""
        return ()

    @property
    def depends_on_time(self) -> bool:
        """Whether answers change with ``session.now`` alone: no cycle of a simulation is left out then.

        That is taken for granted of plugins that do not come with Stromboli; one whose answers do not says False, and
        simulations with it run faster.
        """
        return not self.trusted

    def weighed(self, job: Job) -> Weighed | None:
        """The amounts that are weighed when the plugin is asked to admit ``job``, for texts; None: it weighs none."""

    def no_quota(self, queue: QueueInfo, task: Task) -> str:
        """Why the plugin refuses ``task`` room in ``queue`` at ``allocatable``; empty if it does not, or gives none.

        The text is shown on waiting pods, so it should name no amounts that change from cycle to cycle.
        """
        return ""

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """Every hook of this plugin with its bound function, in the order of definition."""
        for name, hooks in self._hooked.items():
            for hook in hooks:
                yield hook, getattr(self, name)


def _refuse_missing(cls: type[Plugin], hook: Hook) -> None:
    named = {"row": hook.row, "normalise": hook.normalise, "alike": hook.alike, "limit": hook.limit}
    for keyword, method in named.items():
        if method and not callable(getattr(cls, method, None)):
            problem = f"{hook.name}({keyword}={method!r}) names a method that the plugin does not have"
            raise PluginError(cls.name or cls.__name__, problem, point=hook.point.name)


def _refuse_twins(plugin: str, hooked: Mapping[str, tuple[Hook, ...]]) -> None:
    taken: dict[tuple[str, str], str] = {}
    for name, hooks in hooked.items():
        for hook in hooks:
            first = taken.setdefault((hook.point.name, hook.form), name)
            if first != name and not hook.point.several:
                raise PluginError(plugin, f"{first} and {name} are both {hook.name}; keep one", point=hook.point.name)
