"""Objects whose controllers are not offered: they are stored, nothing comes of them, and they are told so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stromboli.controllers.changes import Outcome, Subject, warning
from stromboli.crds.fields import Metadata
from stromboli.crds.kinds import KINDS

REASON: Final = "NotSupported"
TEXT: Final = (
    "{controller} is not run here, as Stromboli does not offer it yet: no controller makes Jobs of this {kind} unless "
    "another program runs one"
)

CONTROLLERS: Final[Mapping[str, str]] = {
    "JobFlow": "jobflow-controller",
    "JobTemplate": "jobtemplate-controller",
}
"""By kind, the controller of the reference that is missing."""


def tell(kind: str, metadata: Metadata) -> Outcome:
    """The event on an object of ``kind``."""
    about = Subject(KINDS[kind].api_version, kind, metadata.namespace, metadata.name, metadata.uid)
    text = TEXT.format(controller=CONTROLLERS[kind], kind=kind)
    return Outcome().then(warning(about, REASON, text))
