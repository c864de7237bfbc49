"""What a sweep runs on: processes of this machine or a Dask cluster, each an executor of ``concurrent.futures``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from threading import Thread
from typing import Final, ParamSpec, TypeVar

from stromboli.errors import StudyError
from stromboli.study.tables import needed

P = ParamSpec("P")
T = TypeVar("T")
PROCESSES, DASK = "processes", "dask"
RETRIES: Final = 2
"""How often Dask runs a point once more whose worker is gone."""


def usable_cpus() -> int:
    """How many CPUs this process is bound to where the system tells, else how many the machine has."""
    bound_to = getattr(os, "sched_getaffinity", None)
    return len(bound_to(0)) if bound_to else os.cpu_count() or 1


@contextmanager
def executor(engine: str, workers: int) -> Iterator[Executor]:
    """An executor: ``processes``, ``dask`` for a cluster on this machine, or the address of a Dask scheduler.

    What it still runs when it is left, as after Ctrl-C, is ended.  Raises StudyError for any other word, or where Dask
    is not installed.
    """
    if engine == PROCESSES:
        with _processes(workers) as pool:
            yield pool
    elif engine == DASK or "://" in engine:
        with _dask(engine, workers) as found:
            yield found
    else:
        raise StudyError(f"no engine {engine!r}; write {PROCESSES}, {DASK}, or an address such as tcp://HOST:8786")


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    """Processes of this machine, which end when the executor is left, whatever they do then."""
    context = get_context("spawn")
    ended, held = context.Pipe(duplex=False)
    pool = _Processes(workers, mp_context=context, initializer=end_with_parent, initargs=(ended,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        held.close()


class _Processes(ProcessPoolExecutor):
    """Processes that do not hear Ctrl-C, which a terminal sends to all: else one takes it for what came of a call."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a call.  Processes that start meanwhile inherit that the signal is blocked."""
        before = pthread_sigmask(SIG_BLOCK, {SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            pthread_sigmask(SIG_SETMASK, before)


@contextmanager
def _dask(engine: str, workers: int) -> Iterator[Executor]:
    distributed = needed("distributed", "pip install 'stromboli[sweep]'")
    any_port = "127.0.0.1:0"  # Dask's own 8787 is taken where another sweep runs
    local = {"n_workers": workers, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": any_port}
    place = distributed.LocalCluster(**local) if engine == DASK else nullcontext(engine)
    with place as where, distributed.Client(where) as client:
        yield client.get_executor(retries=RETRIES)


def end_with_parent(ended: Connection) -> None:
    """Have this process end as soon as the one that started it ends, however that does, or closes the other end."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_watch, args=(parent.sentinel, ended), daemon=True).start()


def _watch(*ends: int | Connection) -> None:
    wait(ends)
    os._exit(1)
