"""What a shadow does not ask of an HTTP extender, and what would come of it.

The server behind the plugin ``extender`` may act upon what it is sent: it takes a placement that it is told of for one
that happens.  So a shadow asks it nothing, and says which decisions may differ therefore.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stromboli.framework.config.config import Config
from stromboli.model.values.redaction import without_logins
from stromboli.plugins.extender import Extender

EFFECTS: Final[Mapping[str, str]] = {
    "onSessionOpenVerb": "would be sent the cluster",
    "onSessionCloseVerb": "would be told that a cycle is over",
    "predicateVerb": "may refuse nodes",
    "prioritizeVerb": "may prefer nodes",
    "preemptableVerb": "may choose or refuse victims of preempt",
    "reclaimableVerb": "may choose or refuse victims of reclaim",
    "queueOverusedVerb": "may hold queues overused",
    "jobEnqueueableVerb": "may keep jobs out of their queues",
    "jobEnqueuedVerb": "would be told of jobs that enter their queues",
    "jobReadyVerb": "may hold gangs back",
    "allocateFuncVerb": "would be told of placements, and may object",
    "deallocateFuncVerb": "would be told of placements taken back",
}
"""What the server does under each argument of the plugin that names a verb."""


def unasked(config: Config) -> Iterator[str]:
    """A sentence for each extender of a configuration that is not asked."""
    for option in config.plugins():
        if option.name != Extender.name:
            continue
        given = {key.removeprefix(f"{Extender.name}."): value for key, value in option.arguments.items()}
        asked = [f"{given[verb]} {effect}" for verb, effect in EFFECTS.items() if given.get(verb)]
        if asked:
            url = without_logins(str(given.get("urlPrefix", "")))
            yield f"extender {url} is not asked, as it could act upon it: {', '.join(asked)}"
