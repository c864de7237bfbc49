"""A release has its version everywhere, its changelog's section, and archives that hold what they must."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.release import IN_SDIST, IN_WHEEL, STATED, ReleaseError, build, closed, missing, set_version, with_version

PROJECT = Path(__file__).parents[2]
LOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n\n- First.\n"


def test_the_changelog_gets_a_section_and_an_empty_one_above_it() -> None:
    expected = LOG.replace("## [Unreleased]", "## [Unreleased]\n\n## [0.2.0] - 2026-02-03")
    assert closed(LOG, "0.2.0", "2026-02-03") == expected


@pytest.mark.parametrize(
    ("log", "version", "text"),
    [
        (LOG, "0.1.0", "section for 0.1.0 already"),
        (LOG.replace("### Added\n\n- A thing.\n\n", ""), "0.2.0", "nothing under"),
        ("# Changelog\n", "0.2.0", "nothing under"),
    ],
)
def test_a_changelog_that_cannot_be_closed_is_refused(log: str, version: str, text: str) -> None:
    with pytest.raises(ReleaseError, match=text):
        closed(log, version, "2026-02-03")


def test_the_version_is_set_where_it_stands(tmp_path: Path) -> None:
    for name in (*STATED, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((PROJECT / name).read_text())
    set_version(tmp_path, "7.8.9", "2026-02-03")
    changed = [name for name in STATED if '"7.8.9"' in (tmp_path / name).read_text()]
    assert changed == list(STATED)
    assert "## [7.8.9] - 2026-02-03" in (tmp_path / "CHANGELOG.md").read_text()


def test_a_version_that_stands_nowhere_is_refused() -> None:
    with pytest.raises(ReleaseError, match="0 times"):
        with_version("", 'version = "(.+)"', "1.0.0")


def test_what_an_archive_lacks_is_named() -> None:
    assert missing(["a-1/LICENSE", "b.py"], ["LICENSE", "b.py", "NOTICE"]) == ["NOTICE"]


@pytest.mark.slow
def test_wheel_and_sdist_hold_what_they_must(tmp_path: Path) -> None:
    wheel, sdist = build(PROJECT, tmp_path)
    assert (wheel.suffix, sdist.suffix) == (".whl", ".gz")
    assert IN_WHEEL
    assert IN_SDIST
