"""What writing reservations costs a live scheduler: 5,000 are held, and a session changes none, some or all of them.

Three figures for each: by how many milliseconds the next cycle begins later than a period after the decision, CPU
milliseconds of taking the changes over, and CPU microseconds a request of writing them.  The server answers from
memory, so that our own part alone counts.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from benchmarks.tables import figure, head, row
from stromboli.cluster.events import Added
from stromboli.cluster.objects import from_value
from stromboli.framework.books.plan import Plan, PodAnnotations
from stromboli.kube.client import Client
from stromboli.kube.collecting import holding_a_cluster
from stromboli.kube.credentials import Login
from stromboli.kube.transport import Request, Response, Stream
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.model.names import SCHEDULER_NAME
from stromboli.model.proof import KEY_BYTES
from stromboli.model.reservation import Held
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue

HELD: Final = 5_000
"""Reservations that are held."""

CHANGES: Final = (0, 50, 500, HELD)
"""How many of them one session changes."""

LIMIT: Final = 20.0
"""Milliseconds by which a session's flush may put the next cycle off."""

PERIOD: Final = 1.0
"""Seconds between two cycles, as usual."""

_ROUNDS: Final = 5


class Answers:
    """A transport whose server has pods alone, and answers patches of their annotations."""

    def __init__(self, pods: Sequence[Manifest]) -> None:
        self.pods = {made["metadata"]["name"]: made for made in pods}
        self.version = 1_000_000
        self.patches = 0

    async def send(self, request: Request, login: Login) -> Response:
        """The pod as it is afterwards."""
        self.patches += 1
        await asyncio.sleep(0.002)  # others have their turn until an answer comes
        metadata = self.pods[request.path.rpartition("/")[2]]["metadata"]
        wanted = json.loads(request.body or b"{}")["metadata"]["annotations"]
        left = {**metadata["annotations"], **wanted}
        metadata["annotations"] = {key: text for key, text in left.items() if text is not None}
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        return Response(200, {}, json.dumps(self.pods[metadata["name"]]).encode())

    def stream(self, request: Request, login: Login) -> AbstractAsyncContextManager[Stream]:
        """No client watches anything here."""
        raise NotImplementedError(request.path)

    async def close(self) -> None:
        """Nothing is open."""


class Flush(NamedTuple):
    """One session's: milliseconds by which the next is late, CPU milliseconds, CPU microseconds a request, requests."""

    late: float
    taken: float
    sending: float
    patches: int


class Bench:
    """A live scheduler on a cluster where so many pods wait, ``period`` seconds between two cycles."""

    def __init__(self, pods: int = HELD, period: float = PERIOD) -> None:
        self.period = period
        names = [(f"g{number // 50}", number % 50) for number in range(pods)]
        made = [pod(f"{group}-{n}", group=group, schedulerName=SCHEDULER_NAME) for group, n in names]
        groups = [pod_group(f"g{number}") for number in range(pods // 50)]
        self.server = Answers(made)
        self.scheduler = LiveScheduler(Client(self.server, qps=0), Options(in_thread=False, schedule_period=period))
        if (proofs := self.scheduler.mirror.proofs) is not None:  # else nothing is written: it would not be believed
            proofs.keys = (bytes(KEY_BYTES),)
        self.state, self.executor = self.scheduler.state, self.scheduler.executor
        for found in [queue("default"), *(node(f"n{number}") for number in range(1000)), *groups, *made]:
            self.scheduler.mirror.take(Added(found["kind"], from_value(found["kind"], found)))
        self.tasks = [(task.uid, task.key) for task in self.state.tasks.values()]

    async def flush(self, changes: int, turn: int) -> Flush:
        """A session changes so many reservations; another ``turn``, other nodes."""
        self.state.snapshot()
        wishes = self._wishes(changes, turn)
        before, start = self.server.patches, time.process_time()
        self.executor.finish(Plan(annotations=wishes))
        taken = time.process_time() - start
        await self.executor.quiet()
        patches = self.server.patches - before
        sending = (time.process_time() - start - taken) / max(patches, 1)
        return Flush(await self._late(changes, turn + 1), taken * 1e3, sending * 1e6, patches)

    async def _late(self, changes: int, turn: int) -> float:
        """Milliseconds by which the next cycle is late while such a session's changes are taken over and written."""
        decided = asyncio.get_running_loop().time()
        self.scheduler.pace.decided(decided)
        await self.scheduler.take_over(Plan(annotations=self._wishes(changes, turn)))
        await self.scheduler.pause()
        late = asyncio.get_running_loop().time() - decided - self.period
        await self.executor.quiet()
        return late * 1e3

    def _wishes(self, changes: int, turn: int) -> list[PodAnnotations]:
        held = [Held(f"n{(number + turn) % 1000}") for number in range(changes)]
        return [PodAnnotations(uid, key, at) for (uid, key), at in zip(self.tasks, held, strict=False)]

    async def measured(self, changes: int, rounds: int) -> list[Flush]:
        """The same several times, once all are held."""
        working = asyncio.create_task(self.executor.run())
        await self.flush(len(self.tasks), 0)
        found = [await self.flush(changes, 2 * turn) for turn in range(1, rounds + 1)]
        working.cancel()
        return found


def show(quick: bool) -> bool:
    """Print the table; answers whether no flush puts a cycle off for longer than :data:`LIMIT` (always, when quick)."""
    columns = ("reservations", "changed", "next cycle late ms", "limit", "CPU ms", "PATCHes", "CPU µs/PATCH", "verdict")
    print("\n" + head(columns))
    fine = True
    held = 500 if quick else HELD
    for changes in [change * held // HELD for change in CHANGES]:
        with holding_a_cluster():
            found = asyncio.run(Bench(held).measured(changes, 1 if quick else _ROUNDS))
        late, taken, sending = (statistics.median(column) for column in list(zip(*found, strict=True))[:3])
        wrong = any(flush.patches != changes for flush in found)
        verdict = "wrong" if wrong else "-" if quick else "ok" if late <= LIMIT else "over"
        cells = [figure(late), figure(LIMIT, 0), figure(taken), f"{changes:,}", figure(sending if changes else None, 0)]
        print(row([f"{held:,}", f"{changes:,}", *cells, verdict]), flush=True)
        fine &= verdict in {"ok", "-"}
    return fine
