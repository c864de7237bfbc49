"""The files of a record are the same format whatever compresses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from stromboli.journal import segments

CONTENT = b"what a frame holds " * 1000
WITHOUT = """
import sys, zlib
from pathlib import Path
sys.modules["isal.isal_zlib"] = None
from stromboli.journal import segments
assert segments.compress is zlib.compress
(found,) = segments.Segment(Path(sys.argv[1])).frames()
with open(sys.argv[2], "wb") as file:
    segments.write(file, found.kind, found.first, found.time, found.content)
"""


def test_a_record_is_read_and_written_without_the_extra(tmp_path: Path) -> None:
    """Here it is installed, so that the bytes differ."""
    written, again = tmp_path / f"with{segments.SUFFIX}", tmp_path / f"without{segments.SUFFIX}"
    with written.open("wb") as file:
        segments.write(file, segments.ENTRIES, 7, 1.5, CONTENT)
    subprocess.run([sys.executable, "-c", WITHOUT, written, again], check=True)
    assert written.read_bytes() != again.read_bytes()
    for path in (written, again):
        assert [tuple(one) for one in segments.Segment(path).frames()] == [(0, segments.ENTRIES, 7, 1.5, CONTENT)]
