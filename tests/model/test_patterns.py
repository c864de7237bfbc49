"""Patterns of objects: Go's syntax and texts, and time linear in the text."""

from __future__ import annotations

import re
from typing import Literal

import pytest

from stromboli.cluster.lives import Run, commanded
from stromboli.errors import ManifestError, PatternError, QuantityError
from stromboli.fairness.tree import parse_weights
from stromboli.model.resources.quantity import parse
from stromboli.model.values import patterns
from stromboli.model.values.patterns import pattern, problem
from stromboli.model.values.reading import convert

_Listed = list[Literal["a"]]
LONG = "a" * 1_000_000 + "!"
"""A name on which tracking back would take longer than the universe has been there."""


@pytest.mark.parametrize(
    "text", ["(a+)+$", "(a|aa)+$", "(a|a?)+b$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){25}$", "(x+x+)+y"]
)
def test_patterns_that_track_back_for_ever_are_decided(text):
    """Nothing is timed: with ``re``, this test would not end."""
    assert not pattern(text).found_in(LONG)


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("b-[13]", "node-b-1.rack", True),
        ("^b", "ab", False),
        ("", "anything", True),
        ("b$", "ab\n", False),
        (r"b\z", "ab", True),
        (r"^\d+$", "१२", False),
        (r"^\w$", "é", False),
        (r"^.$", "é", True),
        (r"^\pL+$", "éß", True),
        ("(?i)NODE", "node", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"\\C", r"\C", True),
        (r"\QC:\C\E", r"C:\C", True),
        ("(?P<n>a)(?<n>b)", "ab", True),
        ("a{,2}", "a{,2}", True),
        ("[[:alpha:]]", "7", False),
    ],
)
def test_what_matches_is_what_gos_match_string_finds(text, name, found):
    assert pattern(text).found_in(name) is found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(", "missing closing ): `(`"),
        ("[a", "missing closing ]: `[a`"),
        (")", "unexpected ): `)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("x{1001}", "invalid repeat count: `{1001}`"),
        ("(a{500}){3}", "invalid repeat count: `{3}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        (r"a\C", r"invalid escape sequence: `\C`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("\\", "trailing backslash at end of expression"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(text, told):
    """Texts as Go 1.26's regexp.Compile gives them."""
    assert problem(text) == f"error parsing regexp: {told}"
    with pytest.raises(PatternError, match=re.escape(told)):
        pattern(text)


def test_patterns_have_bounds():
    assert problem("a" * patterns.LONGEST) == ""
    assert problem("a" * 4097) == "the pattern has 4097 bytes, more than 4096"
    assert problem(r"\pL{1,253}") == "the compiled pattern takes more than 256 KiB"
    assert problem("((" * 1000 + "a" + "+)+)" * 500) != ""


def test_texts_that_a_pattern_would_be_busy_with_for_long_are_not_looked_at():
    large = pattern("(a|b)*a(a|b){999}c")
    assert not large.found_in("ab" * 1000)
    with pytest.raises(PatternError, match="a text of 2000000 bytes is too long for it: at most 9"):
        large.found_in("ab" * 1_000_000)


def test_halves_of_surrogate_pairs_are_read_as_go_reads_them():
    assert pattern("^\ufffd$").found_in("\ud800")
    assert pattern("\ud800").found_in("a\ufffd")
    assert pattern("^.$").found_in("\ud83d\ude00")


def test_no_more_patterns_are_kept_than_said():
    for number in range(1000):
        assert pattern(f"n-{number}").found_in(f"n-{number}")
        assert problem(f"({number}")
    assert patterns._kept.cache_info().currsize <= patterns._KEPT


@pytest.mark.parametrize(
    "read",
    [
        lambda: parse("0" * 1_000_000 + "\n"),
        lambda: parse("1." + "0" * 1_000_000 + "\n"),
        lambda: parse("1E" + "0" * 1_000_000 + "\n"),
        lambda: convert([" - at `$" * 200_000], _Listed),
    ],
    ids=["quantity", "decimals", "exponent", "value"],
)
def test_our_own_patterns_are_linear_too(read):
    with pytest.raises((QuantityError, ManifestError)):
        read()


def test_weights_and_scripts_are_linear_too():
    assert parse_weights("1" * 1_000_000 + "x/2.5") == [1.0, 2.5]
    assert commanded(["sh", "-c", " " * 1_000_000 + "sleep 5 ;\n echo"]) == Run(5.0)
