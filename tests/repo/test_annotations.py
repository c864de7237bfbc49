"""A record keeps every annotation that a decision may depend on."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import stromboli
from stromboli.cluster.kinds import Pod
from stromboli.journal.scrubbing import Scrub
from stromboli.model.names import SLA_WAITING_TIME_BARE
from stromboli.model.objects.base import NamespacedMetadata

SOURCES = Path(stromboli.__file__).parent
READERS = ("model", "cluster", "filters", "framework", "reservations", "plugins", "live/scheduler", "live/writing")
"""Packages whose code reads objects after the recorder has taken off what no record shall hold."""
READ_OTHERWISE = {"volcano.sh/task-topology-affinity", "volcano.sh/sla-waiting-time", SLA_WAITING_TIME_BARE}
"""Some of those that are looked up in a loop."""


def _is_annotations(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in ("annotations", "notes")


def _keys(tree: ast.Module) -> Iterator[ast.expr]:
    """What is looked up in annotations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_annotations(node.value):
            yield node.slice
        elif isinstance(node, ast.Compare) and _is_annotations(node.comparators[-1]):
            yield node.left
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and _is_annotations(node.func.value)
        ):
            yield node.args[0]


@cache
def _read() -> dict[str, str]:
    """The annotations that are read by a constant name, and a module that reads each."""
    found: dict[str, str] = {}
    for file in (file for part in READERS for file in sorted((SOURCES / part).rglob("*.py"))):
        module = ".".join(("stromboli", *file.relative_to(SOURCES).with_suffix("").parts))
        for node in _keys(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.setdefault(node.value, module)
            elif isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                value = getattr(import_module(module), node.id, None)  # None: a variable
                found.update({value: module} if isinstance(value, str) else {})
    return found


def test_what_is_read_of_annotations_is_found() -> None:
    assert _read()["pv.kubernetes.io/bind-completed"] == "stromboli.model.objects.storage"
    assert _read()["nvidia.com/use-gputype"] == "stromboli.plugins.deviceshare.vgpu"
    assert len(_read()) >= 30


def test_a_record_keeps_every_annotation_that_is_read() -> None:
    annotations = dict.fromkeys(_read().keys() | READ_OTHERWISE, "text")
    pod = Pod(metadata=NamespacedMetadata(name="p", annotations=annotations))
    kept = Scrub().clean(pod).metadata.annotations
    assert not {key: _read().get(key) for key in annotations.keys() - kept.keys()}
