"""The admission file (``--admission-conf``): resource groups, read again when the file changes."""

from __future__ import annotations

import asyncio
from typing import Final

from stromboli.crds.admission.resource_groups import ResourceGroup, parse_groups
from stromboli.errors import ConfigError
from stromboli.framework.config.document import read_text
from stromboli.live.process.events import Telling

LOOK_EVERY: Final = 5.0
"""Seconds between looks at the file."""


class AdmissionFile:
    """The groups of a file; of one that cannot be used the last good ones, none at first."""

    def __init__(self, file: str, tell: Telling) -> None:
        self._file, self._tell = file, tell
        self._text: str | None = None
        self._trouble = ""
        self.groups: tuple[ResourceGroup, ...] = ()

    def look(self) -> None:
        """Read the file, if it says something new."""
        if not self._file:
            return
        try:
            text = read_text(self._file)
            if text != self._text:
                self._text, self.groups = text, parse_groups(text, file=self._file)
                self._trouble = ""
                self._tell("admission_file_read", file=self._file, groups=len(self.groups))
        except (ConfigError, OSError) as error:
            if str(error) != self._trouble:
                self._tell("admission_file_refused", file=self._file, error=error)
            self._trouble = str(error)

    async def follow(self) -> None:
        """Look from time to time, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.look()
