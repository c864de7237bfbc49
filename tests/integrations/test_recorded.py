"""What operators of other projects write is scheduled as they mean it: every recording is played to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.framework.config.config import DEFAULT_CONFIG
from tests.support.recorded import Stage, read, recordings
from tests.support.virtual import run


@pytest.mark.parametrize("path", recordings("embedded"), ids=lambda path: path.stem)
def test_an_integration(path: Path, tmp_path: Path) -> None:
    head, steps = read(path)
    assert set(head) - {"plugins", "servers"} == {"project", "version", "objects", "shows"}
    more = "".join(f"  - name: {name}\n" for name in head.get("plugins", ()))
    (tmp_path / "conf").write_text(DEFAULT_CONFIG + more, encoding="utf-8")

    async def main() -> None:
        await Stage(str(tmp_path / "conf")).play(steps)

    run(main())
