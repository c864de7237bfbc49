"""What statements, reservations and the opening of a session work on: the books, and what keeps them in step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.engine.placement import Choice, Ties
from stromboli.framework.engine.placer import Placer
from stromboli.framework.engine.rows import Bools
from stromboli.framework.extension.guarded import PluginFailed
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.session_hooks import SessionHooks
from stromboli.framework.statement.operation import Operation
from stromboli.model.reservation import Held
from stromboli.model.table import Node
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.statement.statement import Statement
    from stromboli.framework.statement.statement_events import StatementEvents


class ActionSource(Protocol):
    """Where the class of an action is found by its name; it is called with the action's arguments."""

    def action(self, name: str, /) -> Callable[[Mapping[str, object]], Any]:
        """The class of action ``name``."""
        ...


class PluginSource(ActionSource, Protocol):
    """Where plugins are made by their names, too."""

    def build(self, name: str, arguments: Mapping[str, object], /) -> Plugin:
        """A plugin of that name.  Raises PluginError for an unknown one, or for bad arguments."""
        ...


class ReservationBook(Protocol):
    """What is noted of reservations while a session decides."""

    @property
    def terminating(self) -> LaterRoom:
        """Where tasks fit once pods that are being deleted have left."""
        ...

    def committed(self, operations: Iterable[Operation], /) -> None:
        """The operations of a committed statement."""
        ...

    def kept(self, operations: Iterable[Operation], /) -> None:
        """The operations of a statement that is kept, but not committed."""
        ...

    def bound(self, tasks: Sequence[Task], /) -> None:
        """Tasks that are handed over for binding."""
        ...

    def wish(self, task: Task, held: Held | None, /) -> None:
        """What the pod of ``task`` is to state: ``held``, or nothing."""
        ...


class LaterRoom(Protocol):
    """The room of nodes once pods that are being deleted have left."""

    def place(self, task: Task, within: Bools | None, /) -> Choice | None:
        """The best node for ``task`` among ``within``; None where it fits none."""
        ...

    def passes(self, task: Task, row: int, /) -> bool:
        """Whether ``task`` fits the node in ``row``."""
        ...


class SessionState(ClusterView, Protocol):
    """A session as its own parts see it, beyond what plugins do.

    See :class:`~stromboli.framework.session.session.Session` for what each member does.
    """

    hooks: SessionHooks
    plugins: dict[str, Plugin]
    placer: Placer
    ties: Ties

    @property
    def registry(self) -> PluginSource:
        """Where plugins and actions are found."""
        ...

    @property
    def reservations(self) -> ReservationBook | None:
        """The reservations that outlive a session; None where they do not."""
        ...

    @property
    def statement_events(self) -> StatementEvents:
        """Reports what statements do."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name, in snapshot order."""
        ...

    def statement(self) -> Statement:
        """A new transaction."""
        ...

    def put_aside(self, failure: PluginFailed) -> None:
        """Go on without a plugin that raised an error."""
        ...

    def recompile(self) -> None:
        """Merge the answers of the plugins that are left."""
        ...
