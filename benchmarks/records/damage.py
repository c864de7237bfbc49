"""A thousand damaged records, read by every command: ``python -m benchmarks.records.damage SEGMENT --files 1000``."""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from stromboli.cli.main import main as stromboli
from stromboli.errors import RecordError
from stromboli.journal.segments import Segment


def damaged(content: bytes, dice: random.Random) -> bytes:
    """A record cut short, with bits turned over, a part gone or twice there, or two parts in each other's place."""
    a, b, c = sorted(dice.randrange(len(content) + 1) for _ in range(3))
    flipped = bytearray(content)
    for _ in range(dice.choice((1, 1, 8, 64))):
        flipped[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    parts = (content[:a], content[:a] + content[b:], content[:b] + content[a:], bytes(flipped))
    return dice.choice((*parts, content[:a] + content[b:c] + content[a:b] + content[c:]))


def whole_frames(file: Path) -> list[tuple[int, bytes, bytes]]:
    """The frames before the damage: place, kind and content."""
    found: list[tuple[int, bytes, bytes]] = []
    with contextlib.suppress(RecordError):
        found.extend((frame.at, frame.kind, frame.content) for frame in Segment(file).frames())
    return found


def run(arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code of a command and what it said; -1 where it broke."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = stromboli(list(arguments))
        except Exception as error:  # noqa: BLE001  # that is what is looked for
            return -1, repr(error)
    return code, out.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Damage, read, and count how commands end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.damage", description=__doc__)
    parser.add_argument("segment", type=Path)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=20, help="of the segment only so many, as each is read thrice")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    content, dice = options.segment.read_bytes(), random.Random(options.seed)
    places = [at for at, _, _ in whole_frames(options.segment)]
    content = content[: places[options.frames]] if len(places) > options.frames else content
    whole, ends, broken, wrong = whole_frames(options.segment), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / options.segment.name
        for number in range(options.files):
            file.write_bytes(damaged(content, dice))
            read = whole_frames(file)
            wrong += read != whole[: len(read)]
            for command in (["record", "verify"], ["record", "info"], ["replay"]):
                code, said = run([*command, str(file)])
                ends[f"{' '.join(command)}: {code}"] += 1
                if code not in (0, 1, 2) or "Traceback" in said or "fault of Stromboli" in said:
                    broken += 1
                    print(f"file {number}, {command}: {code} {said[-300:]}", flush=True)
    print(f"{options.files} damaged files: {broken} commands broke, {wrong} files read otherwise before the damage")
    print(dict(sorted(ends.items())))
    return 1 if broken or wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
