"""The base class of actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from stromboli.framework.config.argument import Argument, Complaint, parse_arguments

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session


class Action:
    """One step of a cycle: looks at the session, and places or evicts tasks through statements.

    A subclass sets ``name`` and declares its arguments as class attributes with :func:`~stromboli.plugin.arg`.
    """

    name: ClassVar[str] = ""
    arguments: ClassVar[Mapping[str, Argument[Any]]] = {}
    complaints: list[Complaint]

    def __init_subclass__(cls) -> None:
        """Collect the declared arguments."""
        super().__init_subclass__()
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Argument)}
        cls.arguments = {**cls.arguments, **own}

    def __init__(self, arguments: Mapping[str, object] | None = None) -> None:
        values, self.complaints = parse_arguments(self.arguments, arguments or {}, self.name)
        self.__dict__.update(values)

    def initialize(self) -> None:
        """Called right before :meth:`execute`."""

    def execute(self, session: Session) -> None:
        """Do this action's part of the cycle."""

    def uninitialize(self) -> None:
        """Called right after :meth:`execute`, also where that failed."""

    def run(self, session: Session) -> None:
        """All three in order."""
        self.initialize()
        try:
            self.execute(session)
        finally:
            self.uninitialize()
