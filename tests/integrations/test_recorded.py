"""What operators of other projects write is scheduled as they mean it: every recording is played to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded import Stage, read, recordings
from tests.support.virtual import run


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.stem)
def test_an_integration(path: Path) -> None:
    head, steps = read(path)
    assert set(head) == {"project", "version", "objects", "shows"}

    async def main() -> None:
        await Stage().play(steps)

    run(main())
