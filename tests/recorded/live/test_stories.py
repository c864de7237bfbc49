"""What a running scheduler and the controllers do is what was recorded: all requests, events, log lines and figures.

Nothing that users or the API server see of them changes by accident.  What is changed on purpose is recorded anew by
``python -m tests.recorded.live.stories --write``, which shows what differs.
"""

from __future__ import annotations

from itertools import zip_longest

import pytest

from tests.recorded.live.stories import THEMES, digests, kept, path_of, told

AROUND = 3
"""Lines before the first one that differs that a failure shows."""


def test_every_record_has_a_story() -> None:
    paths = [path_of(name) for name in THEMES]
    assert sorted(paths) == sorted(paths[0].parent.glob("*.txt"))


@pytest.mark.parametrize("name", THEMES)
def test_digests_are_those_of_the_lines(name: str) -> None:
    assert path_of(name).read_text(encoding="ascii").partition("\n\n")[0].splitlines() == list(digests(kept(name)))


@pytest.mark.parametrize("name", THEMES)
def test_story_goes_as_recorded(name: str) -> None:
    before, now = kept(name), told(name)
    for number, (old, new) in enumerate(zip_longest(before, now, fillvalue="(no more)")):
        if old != new:
            rows = ["", *(f"  {line}" for line in before[max(number - AROUND, 0) : number]), f"- {old}", f"+ {new}"]
            which = f"line {number + 1} of story {name} is not as recorded (-); all that differs, or to record it anew:"
            pytest.fail("\n".join([which, f"python -m tests.recorded.live.stories {name} [--write]", *rows]))
