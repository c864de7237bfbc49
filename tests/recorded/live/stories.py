"""Stories of live clusters as they were recorded, and as they are told now.

``python -m tests.recorded.live.stories`` shows how they differ, ``--write`` records them anew; names choose some.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import lzma
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.recorded.live import jobs, parts, places, sharing, troubles
from tests.recorded.live.cluster import Cluster, Story
from tests.recorded.live.notes import InOrder, drawn_alike

FOLDER: Final = Path(__file__).parent / "told"
WIDTH: Final = 120
"""Characters of a row of what is packed."""


class Theme(NamedTuple):
    """A story, and what its cluster is made with."""

    story: Story
    more: Mapping[str, Any] = {}


THEMES: Final = {
    "jobs": Theme(jobs.lives_of_jobs),
    "plugins": Theme(jobs.plugins_of_jobs),
    "policies": Theme(jobs.policies_of_jobs),
    "flows": Theme(jobs.flows_of_jobs),
    "cron": Theme(jobs.scheduled_jobs),
    "queues": Theme(sharing.queues),
    "preemption": Theme(sharing.preemption),
    "pods": Theme(sharing.pods_of_others),
    "nodes": Theme(troubles.nodes),
    "faults": Theme(troubles.faults),
    "away": Theme(troubles.away),
    "leaders": Theme(troubles.leaders),
    "configurations": Theme(troubles.configurations),
    "topology": Theme(places.topology, {"nodes": ("6x4cpu,16Gi",)}),
    "unseen": Theme(places.unseen),
    "shards": Theme(places.shards, {"nodes": ("6x4cpu,16Gi",)}),
    "ring": Theme(places.ring, {"nodes": ("6x4cpu,16Gi",)}),
    "cards": Theme(places.cards),
    "claims": Theme(places.claims),
    "loads": Theme(places.loads),
    "shadow": Theme(parts.shadow),
    "small_cluster": Theme(parts.small_cluster),
    "dumps": Theme(parts.dumps),
    "upstream": Theme(parts.upstream),
}


def told(name: str) -> list[str]:
    """The lines of a story as it goes now."""
    theme = THEMES[name]

    async def main(folder: Path, uid: Callable[[], str]) -> list[str]:
        cluster = Cluster(folder, sum(name.encode()), uid, **theme.more)
        await theme.story(cluster)
        return await cluster.end()

    loop = asyncio.Runner(loop_factory=InOrder)
    with tempfile.TemporaryDirectory() as folder, drawn_alike(sum(name.encode())) as uid, loop as runner:
        return runner.run(main(Path(folder), uid))


def path_of(name: str) -> Path:
    """Where a story is kept: how many lines each part has in each minute, with a digest, and all lines, packed."""
    return FOLDER / f"{name}.txt"


def kept(name: str) -> list[str]:
    """The lines of a story as it was recorded."""
    path = path_of(name)
    packed = path.read_text(encoding="ascii").partition("\n\n")[2] if path.exists() else ""
    return lzma.decompress(b64decode(packed)).decode().splitlines() if packed else []


def keep(name: str, lines: Sequence[str]) -> None:
    """Record a story."""
    packed = b64encode(lzma.compress("\n".join(lines).encode(), preset=9)).decode()
    rows = (packed[start : start + WIDTH] for start in range(0, len(packed), WIDTH))
    path_of(name).write_text("\n".join([*digests(lines), "", *rows, ""]), encoding="ascii")


def digests(lines: Sequence[str]) -> Iterator[str]:
    """Of each minute and part how many lines there are, and a digest of them."""
    parts: dict[tuple[int, str], list[str]] = {}
    for line in lines:
        seconds, author, _ = line.split(" ", 2)
        parts.setdefault((int(float(seconds) // 60), author), []).append(line)
    for (minute, author), some in sorted(parts.items()):
        yield f"minute {minute} {author} {len(some)} {sha256('|'.join(some).encode()).hexdigest()[:16]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the differences, and keep what is told now if wished; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.recorded.live.stories", description=__doc__)
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
