"""A thousand damaged records, read by every command: ``python -m benchmarks.records.damage --files 1000 --seed 1``.

A file may be cut or lack parts, have some twice or in another's place; bits may be turned over, with a checksum that is
wrong or, as in an attack, right; and a frame may be small in the file and huge once it is unpacked.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final
from unittest.mock import patch

from stromboli.cli.main import main as stromboli
from stromboli.errors import RecordError
from stromboli.journal.segments import CHECKPOINT, ENTRIES, LARGEST, Frame, Segment, write
from stromboli.live.scheduler import scheduler as live
from tests.support.filled_record import PERIOD, filled

EACH: Final = (["record", "verify"], ["record", "info"], ["replay"])
"""Commands that read every file; of :func:`others` one does."""

Dice = random.Random


def others(file: str, into: Path, number: int, job: str) -> list[str]:
    """A command that reads more of a record, another one for each number."""
    commands = (
        ["record", "anonymise", file, "--into", str(into / str(number))],
        ["job", "explain", job.partition("/")[2], "-n", job.partition("/")[0], "--record", file],
        ["diff", file, "--closed-loop", "--conf", ""],
        ["eta", "--record", file],
        ["diff", file, "--conf", ""],
    )
    return commands[number // len(DAMAGES) % len(commands)]


def framed(frames: Sequence[Frame]) -> bytes:
    """The file of some frames."""
    file = io.BytesIO()
    for one in frames:
        write(file, one.kind, one.first, one.time, one.content)
    return file.getvalue()


def flipped(content: bytes, dice: Dice) -> bytes:
    """With bits turned over."""
    found = bytearray(content)
    for _ in range(dice.choice((1, 1, 8, 64))):
        found[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return bytes(found)


def _bytes(frames: Sequence[Frame], dice: Dice) -> bytes:
    """Cut short, a part gone or twice there, two parts in each other's place, or bits turned over."""
    content = framed(frames)
    a, b, c = sorted(dice.randrange(len(content) + 1) for _ in range(3))
    parts = (content[:a], content[:a] + content[b:], content[:b] + content[a:], flipped(content, dice))
    return dice.choice((*parts, content[:a] + content[b:c] + content[a:b] + content[c:]))


def _frames(frames: Sequence[Frame], dice: Dice) -> bytes:
    """A frame gone, twice there, or elsewhere."""
    found = list(frames)
    at = dice.randrange(len(found))
    one = found.pop(at)
    for _ in range(dice.randrange(3)):
        found.insert(dice.choice((at, dice.randrange(len(found) + 1))), one)
    return framed(found)


def _contents(frames: Sequence[Frame], dice: Dice) -> bytes:
    """Bits of a frame's content turned over, its checksum right."""
    found = list(frames)
    at = dice.randrange(len(found))
    if found[at].content:
        found[at] = found[at]._replace(content=flipped(found[at].content, dice))
    return framed(found)


def _bomb(frames: Sequence[Frame], dice: Dice) -> bytes:
    """A frame of next to nothing that is huge once it is unpacked: zeros, or entries without end."""
    size, kind = dice.choice((1 << 24, LARGEST >> 4)), dice.choice((CHECKPOINT, ENTRIES))
    gone = b"\x92\xa4Gone\xa1a"
    many = size // len(gone)
    content = dice.choice((bytes(size), b"\xdd" + many.to_bytes(4, "big") + gone * many))
    found = list(frames)
    found.insert(dice.randrange(1, len(found) + 1), Frame(0, kind, 0, 0.0, content))
    return framed(found)


DAMAGES: Final[tuple[Callable[[Sequence[Frame], Dice], bytes], ...]] = (_bytes, _bytes, _frames, _contents, _contents)
BOMBS: Final = 25
"""One file in so many is a bomb."""


def damaged(frames: Sequence[Frame], dice: Dice, number: int) -> bytes:
    """A damaged file."""
    return (_bomb if number % BOMBS == BOMBS - 1 else DAMAGES[number % len(DAMAGES)])(frames, dice)


def whole_frames(file: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """The frames before the damage: place, kind and content."""
    with contextlib.suppress(RecordError):
        yield from ((frame.at, frame.kind, frame.content) for frame in Segment(file).frames())


def run(arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code of a command and what it said; -1 where it broke."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = stromboli(list(arguments))
        except Exception as error:  # noqa: BLE001  # that is what is looked for
            return -1, repr(error)
    return code, out.getvalue()


def broke(code: int, said: str) -> bool:
    """Whether a command ended otherwise than with an answer or a message."""
    return code not in (0, 1, 2) or "Traceback" in said or "fault of Stromboli" in said


def survey(frames: Sequence[Frame], job: str, files: int, seed: int, folder: Path) -> tuple[Counter[str], int]:
    """How commands ended on so many damaged files, and how many broke."""
    dice, ends, broken = random.Random(seed), Counter[str](), 0
    file = folder / "rec-01700000000000-000.stj"
    for number in range(files):
        file.write_bytes(damaged(frames, dice, number))
        for command in (*([*one, str(file)] for one in EACH), others(str(file), folder, number, job)):
            code, said = run(command)
            ends[f"{' '.join(command[:2]).replace(str(file), '').strip()}: {code}"] += 1
            if broke(code, said):
                broken += 1
                print(f"file {number}, {command[:2]}: {code} {said[-400:]}", flush=True)
    return ends, broken


def main(arguments: Sequence[str] | None = None) -> int:
    """Damage, read, and count how commands end; 1 if one broke."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.damage", description=__doc__)
    parser.add_argument("segment", type=Path, nargs="?", help="damage this one; without, one is recorded")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=12, help="of the segment only so many")
    parser.add_argument("--job", default="ns/early", help="the job that is explained, NAMESPACE/NAME")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        folder = Path(name)
        segment = options.segment
        if segment is None:
            with patch.object(live, "LOOK_EVERY", PERIOD):
                segment = min(filled(folder).rglob("*.stj"))
        frames = list(Segment(segment).frames())[: options.frames]
        ends, broken = survey(frames, options.job, options.files, options.seed, folder)
    print(f"{options.files} damaged files, seed {options.seed}: {broken} of {ends.total()} commands broke")
    for end, many in sorted(ends.items()):
        print(f"  {end}  {many}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
