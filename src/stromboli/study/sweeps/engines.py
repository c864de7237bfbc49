"""What a sweep runs on: processes of this machine or a Dask cluster, each an executor of ``concurrent.futures``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Final

from stromboli.errors import StudyError
from stromboli.study.tables import needed

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

    Raises StudyError for any other word, or where Dask is not installed.
    """
    if engine == PROCESSES:
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=end_with_parent)
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    elif engine == DASK or "://" in engine:
        with _dask(engine, workers) as found:
            yield found
    else:
        raise StudyError(f"no engine {engine!r}; write {PROCESSES}, {DASK}, or an address such as tcp://HOST:8786")


@contextmanager
def _dask(engine: str, workers: int) -> Iterator[Executor]:
    distributed = needed("distributed", "pip install 'stromboli[sweep]'")
    any_port = "127.0.0.1:0"  # Dask's own 8787 is taken where another sweep runs
    local = {"n_workers": workers, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": any_port}
    place = distributed.LocalCluster(**local) if engine == DASK else nullcontext(engine)
    with place as where, distributed.Client(where) as client:
        yield client.get_executor(retries=RETRIES)


def end_with_parent() -> None:
    """Have this process end as soon as the one that started it does, however that ends."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
