"""The guide to debugging: its functions are entered, its debugger stops, its keywords are in the log's catalogue."""

from __future__ import annotations

import re

import pytest

from stromboli.narration.catalogue import LINES
from tests.docs.debugging_guide import TEXT, expected, rows


def test_the_table_names_every_step():
    assert len(rows()) >= 18
    assert {place for place, _, _ in expected()} == {"P1", "P2", "P4", "R1", "R2"}


def known(level: str) -> str:
    """All texts of the catalogue at a level, gaps as dots."""
    return "\n".join(re.sub(r"\{[^}]*\}", "…", line.text) for line in LINES.values() if str(line.level) == level)


def keywords() -> list[tuple[str, str]]:
    table = TEXT.partition("## Keywords and levels")[2].partition("Metrics:")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")
    ]
    return [(word, row[1]) for row in cells for word in re.findall(r"`([^`]*)`", row[0])]


@pytest.mark.parametrize(("word", "level"), [pair for pair in keywords() if not pair[0].startswith("grep")])
def test_a_keyword_stands_in_the_catalogue_at_its_level(word: str, level: str):
    word = word.replace("Reclaim", "…") if word == "Reclaim" else re.sub(r"(Enter|Leaving) Preempt", r"\1 …", word)
    texts = known(level)
    assert word in texts or word == "…" or word.rstrip("<") in texts, word


def test_the_pattern_for_overused_queues_finds_the_line():
    [pattern] = re.findall(r'`grep -E "([^"]*)"`', TEXT)
    assert re.search(pattern, LINES["queue_overused"].text.format(queue="q1"))
