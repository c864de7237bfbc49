"""Leader election: only the holder of the Lease may write, or every process if election is off."""

from __future__ import annotations

import asyncio

from stromboli.errors import LostLease
from stromboli.kube.client import Client
from stromboli.kube.lease import Election, Terms
from stromboli.kube.recorder import Recorder
from stromboli.live.process.events import Telling


def hinted(trouble: str, namespace: str) -> str:
    """``trouble`` with something in ``namespace``, and what helps where that is not there."""
    missing = f'namespaces "{namespace}" not found' in trouble
    return f"{trouble}; make it: kubectl create namespace {namespace}" if missing else trouble


class Leadership:
    """What a process knows of its leading; without :meth:`stand` it always leads."""

    def __init__(self) -> None:
        self.election: Election | None = None

    def stand(self, client: Client, terms: Terms, tell: Telling, recorder: Recorder) -> None:
        """Stand for election: from now on only the holder of the Lease leads."""

        def troubled(error: Exception) -> None:
            tell("lease_trouble", lease=terms.name, error=hinted(str(error), terms.namespace))

        self._tell = tell
        self.election = Election(client, terms, troubled=troubled, recorder=recorder)

    def leads(self) -> bool:
        """Whether we may write now."""
        return self.election is None or self.election.leads

    async def lead(self) -> None:
        """Win the Lease and hold it; returns when it is lost, never without leader election."""
        if self.election is None:
            await asyncio.Event().wait()
            return
        terms = self.election.terms
        lease = f"{terms.namespace}/{terms.name}"
        self._tell("waiting_for_lease", lease=lease, identity=terms.identity)
        await self.election.win()
        self._tell("leading", lease=lease, identity=terms.identity)
        try:
            await self.election.hold()
        except LostLease:
            self._tell("lease_lost")

    async def release(self) -> None:
        """Give the Lease back, if there is one."""
        if self.election is not None:
            await self.election.release()
