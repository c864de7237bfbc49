"""Whether a server is there: what its answers, and their absence, tell about watches that say nothing.

A watch that is silent waits for news, or for a server that has gone and come back while something between the two kept
the connection open.  Where other requests show that, it need not wait until the silence has gone on for too long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stromboli.errors import Unreachable

NO_SERVER: Final = frozenset({502, 503, 504})
"""Answers of a gateway without a server behind it, and of a server that is not ready."""


class Contact:
    """When a server was last heard, and when last something got no answer, both in the event loop's seconds."""

    def __init__(self) -> None:
        self.heard = self.lost = float("-inf")

    def note(self, status: int) -> None:
        """Note an answer; a gateway's status for an absent server counts as no answer."""
        now = asyncio.get_running_loop().time()
        if status in NO_SERVER:
            self.lost = now
        else:
            self.heard = now

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Note when what is done meanwhile finds the server Unreachable."""
        try:
            yield
        except Unreachable:
            self.lost = asyncio.get_running_loop().time()
            raise

    def doubts(self, since: float) -> bool:
        """Whether what has said nothing from ``since`` on may wait for a server that has gone and come back."""
        return since < self.lost < self.heard
