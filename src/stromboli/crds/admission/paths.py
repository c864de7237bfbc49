"""The paths of the webhook server: what each is asked about, and how it is registered with an API server.

Paths, names of webhooks and configurations, and which of them are on by default are Volcano's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from stromboli.api.kinds import CRON_JOBS, HYPER_NODES, JOB_FLOWS, JOBS, POD_GROUPS, PODS, QUEUES, RESOURCES
from stromboli.crds.admission import HOOKS
from stromboli.errors import ConfigError
from stromboli.framework.config.argument import nearest

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"

_ONLY_CREATE: Final = "expect operation to be 'CREATE'"
_TOLD_CREATE: Final = "invalid operation `{0}`, expect operation to be `CREATE`"
_BOTH: Final = "expect operation to be 'CREATE' or 'UPDATE'"


class Path(NamedTuple):
    """One path: the resource that it is about, whether it changes objects or judges them, and for which operations.

    ``unexpected`` is how another operation is refused.  Other than by Volcano, jobs are filled in when they
    change, too: a list of tasks that is applied again leaves out again what was filled into it.
    """

    resource: str
    is_mutating: bool
    operations: tuple[str, ...]
    unexpected: str

    @property
    def plural(self) -> str:
        """``jobs``."""
        return self.resource.partition(".")[0]

    @property
    def verb(self) -> str:
        """``mutate`` or ``validate``."""
        return "mutate" if self.is_mutating else "validate"

    @property
    def path(self) -> str:
        """``/jobs/mutate``."""
        return f"/{self.plural}/{self.verb}"

    @property
    def webhook(self) -> str:
        """The name of the webhook, which refusals show: ``mutatejob.volcano.sh``."""
        return f"{self.verb}{HOOKS[self.resource].name}.volcano.sh"

    @property
    def configuration(self) -> str:
        """The name of the configuration that registers it."""
        return f"volcano-admission-service-{self.plural}-{self.verb}"

    @property
    def place(self) -> tuple[str, str, str]:
        """Group, version and resource, as requests name them."""
        kind = RESOURCES.get(self.resource)
        return (kind.group, kind.version, kind.plural) if kind is not None else ("", "v1", self.plural)


ALL_PATHS: Final[Mapping[str, Path]] = {
    row.path: row
    for row in (
        Path(JOBS, True, (CREATE, UPDATE), f"{_ONLY_CREATE} "),
        Path(JOBS, False, (CREATE, UPDATE), _BOTH),
        Path(QUEUES, True, (CREATE,), _TOLD_CREATE),
        Path(QUEUES, False, (CREATE, UPDATE, DELETE), f"{_TOLD_CREATE}, `UPDATE` or `DELETE`"),
        Path(POD_GROUPS, True, (CREATE,), _TOLD_CREATE),
        Path(POD_GROUPS, False, (CREATE,), "unsupported operation {0}"),
        Path(PODS, True, (CREATE,), f"{_ONLY_CREATE} "),
        Path(PODS, False, (CREATE,), _ONLY_CREATE),
        Path(HYPER_NODES, False, (CREATE, UPDATE), _BOTH),
        Path(CRON_JOBS, False, (CREATE, UPDATE), _BOTH),
        Path(JOB_FLOWS, False, (CREATE, UPDATE), _BOTH),
    )
}
"""Every path, by itself."""

PODS_MUTATE: Final = "/pods/mutate"
"""The path that gates and resource groups need."""

INSTALLED: Final = tuple(path for path, row in ALL_PATHS.items() if row.resource != PODS)
"""What an installation of ours registers: all but pods' hooks, which are registered where they are asked for."""


def chosen(paths: Iterable[str]) -> tuple[Path, ...]:
    """The paths of those names, each once; blanks around them are cut.  Raises ConfigError for an unknown one."""
    names = dict.fromkeys(filter(None, (path.strip() for path in paths)))
    for name in names:
        if name not in ALL_PATHS:
            told = f"enabled admission {name} not found on the admission registered map"
            raise ConfigError(told, nearest=nearest(name, ALL_PATHS))
    return tuple(ALL_PATHS[name] for name in names)
