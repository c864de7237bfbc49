"""Silence during trials: nested blocks, and the keys that are reported all the same."""

from __future__ import annotations

from stromboli.narration.mute import Mute


def test_an_inner_block_leaves_the_outer_one_silent() -> None:
    heard: list[object] = []
    mute = Mute()
    say = mute.over(lambda **fields: heard.append(fields["what"]))
    assert say is not None
    with mute:
        with mute:
            say(what="inner")
        say(what="outer")
        with mute.lifted():
            with mute:
                say(what="within lifted")
            say(what="lifted")
        say(what="outer again")
    say(what="after")
    assert heard == ["lifted", "after"]


def test_what_is_told_many_at_once_is_muted_too() -> None:
    heard: list[object] = []
    mute = Mute()
    say = mute.over_all(lambda count, columns: heard.append((count, columns)))
    assert say is not None
    with mute:
        say(2, {"name": ["a", "b"]})
    say(1, {"name": ["c"]})
    assert heard == [(1, {"name": ["c"]})]
    assert mute.over(None) is None
    assert mute.over_all(None) is None
