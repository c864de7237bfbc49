"""One set of bounds for every YAML text: configurations, files and requests take the same and refuse the same."""

from __future__ import annotations

import pytest

from stromboli.cluster.files import yaml_values
from stromboli.cluster.files.yaml_values import load
from stromboli.errors import StromboliError
from stromboli.framework.config.document import read_document
from stromboli.model.values.yaml_bounds import DEEPEST, LONGEST_WORD, MOST_ALIASED
from stromboli.server.http.bodies import value_of


def _configuration(text):
    root = read_document(text, file="c.yaml").root
    return None if root is None else root.plain()


def _request(text):
    return value_of(text.encode(), "application/yaml")


READERS = [_configuration, load, _request]


def _deep(levels):
    return "{a: " * levels + "1" + "}" * levels


def _aliased(values):
    """Aliases that stand for ``values`` values, of a list and what it holds."""
    return "{list: &a [" + ", ".join("x" * 99) + "], all: [" + ", ".join(["*a"] * (values // 100)) + "]}"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(("text", "size"), [(_deep, DEEPEST), (_aliased, MOST_ALIASED)])
def test_all_readers_take_what_is_within_the_bounds_and_refuse_what_is_beyond(read, text, size):
    assert read(text(size)) is not None
    with pytest.raises(StromboliError, match="more than"):
        read(text(size + 100))


@pytest.mark.parametrize("read", READERS)
def test_a_long_word_is_a_text_to_all_readers(read):
    assert read("{a: " + "0" * (LONGEST_WORD - 1) + "." + "}") == {"a": 0.0}
    assert read("{a: " + "0" * LONGEST_WORD + "." + "}") == {"a": "0" * LONGEST_WORD + "."}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("{l: &a x, m: [*a, *a]}", 2),
        ("{l: &a [x, y], m: *a}", 3),
        ("{l: &a {k: v, n: [w]}, m: *a}", 4),
        ("{l: &a {k: v}, m: {<<: *a}}", 2),
        ("{l: &a [x], m: &b [*a, *a], n: *b}", 9),
        ("{l: &a k, *a : [*a]}", 1),
    ],
)
def test_aliases_count_with_all_that_they_stand_for(text, size, monkeypatch):
    """A list or mapping is one more than what it holds, and a key is nothing."""
    monkeypatch.setattr(yaml_values, "MOST_ALIASED", size)
    assert load(text) is not None
    monkeypatch.setattr(yaml_values, "MOST_ALIASED", size - 1)
    with pytest.raises(StromboliError, match=f"aliases stand for more than {size - 1} values"):
        load(text)
