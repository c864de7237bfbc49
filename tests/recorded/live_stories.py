"""Stories of live clusters as they were recorded, and as they are told now.

``python -m tests.recorded.live_stories`` shows how they differ, ``--write`` records them anew; names choose some.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.recorded import live_jobs
from tests.recorded.live_cluster import Cluster, Story
from tests.recorded.live_notes import drawn_alike
from tests.support.virtual import run

FOLDER: Final = Path(__file__).parent


class Theme(NamedTuple):
    """A story, and what its cluster is made with."""

    story: Story
    more: Mapping[str, Any] = {}


THEMES: Final = {
    "jobs": Theme(live_jobs.lives_of_jobs),
}


def told(name: str) -> list[str]:
    """The lines of a story as it goes now."""
    theme = THEMES[name]

    async def main(folder: Path, uid: Callable[[], str]) -> list[str]:
        cluster = Cluster(folder, sum(name.encode()), uid, **theme.more)
        await theme.story(cluster)
        return await cluster.end()

    with tempfile.TemporaryDirectory() as folder, drawn_alike(sum(name.encode())) as uid:
        return run(main(Path(folder), uid))


def path_of(name: str) -> Path:
    """Where the lines of a story are kept."""
    return FOLDER / f"live_{name}.txt.gz"


def kept(name: str) -> list[str]:
    """The lines of a story as it was recorded."""
    path = path_of(name)
    return gzip.decompress(path.read_bytes()).decode().splitlines() if path.exists() else []


def keep(name: str, lines: Sequence[str]) -> None:
    """Record a story."""
    path_of(name).write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the differences, and keep what is told now if wished; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.recorded.live_stories", description=__doc__)
    parser.add_argument("names", nargs="*", help="stories; all without any")
    parser.add_argument("--write", action="store_true", help="record what is told now")
    options = parser.parse_args(arguments)
    differ = False
    for name in options.names or THEMES:
        old, new = kept(name), told(name)
        differ |= old != new
        sys.stdout.writelines(
            f"{line}\n" for line in difflib.unified_diff(old, new, name, name, "recorded", "now", 1, "")
        )
        if options.write:
            keep(name, new)
    return int(differ and not options.write)


if __name__ == "__main__":
    sys.exit(main())
