"""Published cluster traces as Kubernetes manifests: the importers, and the writer of their manifests as YAML files.

The traces themselves are no part of the package; the importers read the files that their user names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import yaml

from stromboli.errors import ManifestError
from stromboli.sim.traces.dlrm import MEMORY_GIB_PER_CPU, import_dlrm
from stromboli.sim.traces.openb import import_openb
from stromboli.sim.traces.trace_objects import Manifest

__all__ = ["FILES", "MEMORY_GIB_PER_CPU", "import_dlrm", "import_openb", "write_manifests"]

FILES: Final = {
    "Node": "nodes.yaml",
    "Queue": "queues.yaml",
    "PriorityClass": "priorityclasses.yaml",
    "PodGroup": "podgroups.yaml",
    "Pod": "pods.yaml",
}
"""The file that takes the manifests of each kind."""


class Dumper(yaml.CSafeDumper):
    """Writes every document out in full, without anchors; many objects share parts in memory."""

    def ignore_aliases(self, data: object) -> bool:
        """Nothing is worth an anchor."""
        return True


def write_manifests(manifests: Iterable[Manifest], directory: Path) -> dict[str, int]:
    """Write manifests into the files of :data:`FILES` in a directory, as they come; answer how many of each kind.

    Each file is a stream of YAML documents. One that would be empty is taken away, so that nothing of an earlier import
    remains. They take their names only when all manifests are written: an importer's error leaves the directory as it
    was, or none where there was none. Raises ManifestError for a kind that has no file, and what the iterable or the
    disk raises.
    """
    with made(directory):
        return _write_all(manifests, directory)


@contextmanager
def made(directory: Path) -> Iterator[None]:
    """A directory that is there meanwhile; after an error those that were made for it are gone, if they are empty."""
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for one in missing:
                one.rmdir()
        raise


def _write_all(manifests: Iterable[Manifest], directory: Path) -> dict[str, int]:
    parts = {kind: directory / f".{name}.partial" for kind, name in FILES.items()}
    try:
        counts = write_parts(manifests, parts)
        for kind, part in parts.items():
            if counts[kind]:
                part.replace(directory / FILES[kind])
            else:
                (directory / FILES[kind]).unlink(missing_ok=True)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return counts


def write_parts(manifests: Iterable[Manifest], files: dict[str, Path]) -> dict[str, int]:
    """Write each manifest into the file of its kind; answer how many of each."""
    counts = dict.fromkeys(files, 0)
    with ExitStack() as stack:
        dumpers = {kind: stack.enter_context(documents(file)) for kind, file in files.items()}
        for manifest in manifests:
            kind = str(manifest.get("kind"))
            if kind not in dumpers:
                raise ManifestError(f"no file takes this kind; known are {', '.join(files)}", object=kind)
            dumpers[kind].represent(manifest)
            counts[kind] += 1
    return counts


@contextmanager
def documents(file: Path) -> Iterator[Dumper]:
    """A file open for YAML documents; the dumper's `represent` writes one."""
    with file.open("w", encoding="utf-8") as stream:
        dumper = Dumper(stream, explicit_start=True, sort_keys=False, default_flow_style=False)
        dumper.open()
        try:
            yield dumper
        finally:
            dumper.close()
