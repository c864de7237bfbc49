"""Records and simulations, asked from Python: ``import stromboli.study as st``.

What is offered stands in :mod:`stromboli.study.api`, which is imported when the first of it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stromboli.study.api import PLAIN as PLAIN
    from stromboli.study.api import Conf as Conf
    from stromboli.study.api import Lives as Lives
    from stromboli.study.api import Pods as Pods
    from stromboli.study.api import Record as Record
    from stromboli.study.api import Run as Run
    from stromboli.study.api import SimJob as SimJob
    from stromboli.study.api import Sweep as Sweep
    from stromboli.study.api import Table as Table
    from stromboli.study.api import Workload as Workload
    from stromboli.study.api import builtin as builtin
    from stromboli.study.api import open_record as open_record
    from stromboli.study.api import open_sweep as open_sweep
    from stromboli.study.api import read_dlrm as read_dlrm
    from stromboli.study.api import read_lives as read_lives
    from stromboli.study.api import read_openb as read_openb
    from stromboli.study.api import read_philly as read_philly
    from stromboli.study.api import read_swf as read_swf
    from stromboli.study.api import read_trace as read_trace
    from stromboli.study.api import simulate as simulate
    from stromboli.study.api import sweep as sweep


def __getattr__(name: str) -> Any:
    api = import_module("stromboli.study.api")
    if name in api.__all__:
        return getattr(api, name)
    raise AttributeError(f"stromboli.study has no {name!r}; there is {', '.join(api.__all__)}")


def __dir__() -> list[str]:
    return list(import_module("stromboli.study.api").__all__)
