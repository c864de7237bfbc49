"""YAML as the configuration reads it: values, lines, and texts that try to hurt."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.builtin import builtin_registry
from stromboli.errors import ConfigError
from stromboli.framework.config.document import Document, DocumentNode, read_document, read_text, resolve
from stromboli.model.values.yaml_bounds import DEEPEST, MOST_ALIASED


def plain(text):
    root = read_document(text, file="c.yaml").root
    return root.plain() if root else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1), ("-0x1F", -31), ("0b101", 5), ("0o17", 15), ("017", 15), ("1_000", 1000), ("0", 0), ("+7", 7),
        ("1e3", 1000.0), (".5", 0.5), ("1.", 1.0), ("-.inf", float("-inf")), ("18446744073709551616", 2.0**64),
        ("true", True), ("Yes", True), ("OFF", False), ("n", "n"), ("~", None), ("null", None), ("", None),
        ("1:30", "1:30"), ("2024-01-01", "2024-01-01"), ("1h", "1h"), ("10%", "10%"), ("0x", "0x"), ("１", "１"),
        ("9" * 401, "9" * 401),
    ],
)  # fmt: skip
def test_plain_scalars(text, expected):
    assert resolve(text) == expected
    assert type(resolve(text)) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: '1'\nb: \"true\"", {"a": "1", "b": "true"}),
        ("a: !!str 1\nb: !!int '2'\nc: !!float 3", {"a": "1", "b": 2, "c": 3}),
        ("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}", {"base": {"x": 1, "y": 2}, "more": {"x": 1, "y": 3}}),
        ("<<: [{a: 1}, {a: 2, b: 3}]", {"a": 1, "b": 3}),
        ("1: x\ntrue: y", {"1": "x", "true": "y"}),
        ("a: |\n  text\n", {"a": "text\n"}),
        ("# nothing", None),
        ("", None),
    ],
)
def test_values(text, expected):
    assert plain(text) == expected


def test_lines_are_those_of_the_keys():
    root = read_document("a: 1\n\nb:\n- x\n- y: 2\n", file="c.yaml").root
    assert root is not None
    match root.value:
        case {
            "a": DocumentNode(line=1),
            "b": DocumentNode(line=3, value=[DocumentNode() as first, DocumentNode() as second]),
        }:
            assert (first.line, second.line) == (4, 5)
        case other:
            pytest.fail(f"read as {other}")


@pytest.mark.parametrize(
    ("text", "doubts"),
    [
        ("a: 1\nb: 2\na: 3", ((3, "key a stands twice, first in line 1"),)),
        ("a: 1\n---\nb: 2", ((2, "a second document; only the first one counts"),)),
    ],
)
def test_doubts(text, doubts):
    assert read_document(text, file="c.yaml").doubts == doubts


def test_merges_add_to_what_is_written_in_their_order():
    """Into the mapping that is there: thousands of merges that each made a new one would take quadratic time."""
    root = read_document("<<: [{c: 1}, {b: 2, c: 3}]\na: 0", file="c.yaml").root
    assert root is not None
    assert isinstance(root.value, dict)
    assert [(key, node.value) for key, node in root.value.items()] == [("a", 0), ("c", 1), ("b", 2)]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [1", "c.yaml:1: not YAML", id="unfinished"),
        pytest.param("a: b: c", "c.yaml:1: not YAML: mapping values are not allowed", id="nested on one line"),
        pytest.param("\n\ta: 1", "c.yaml:2: not YAML", id="tab"),
        pytest.param("a: \x00", "c.yaml: not YAML", id="control character"),
        pytest.param("a: 1\nb: \ud800", "c.yaml:2: not YAML: half a surrogate pair", id="surrogate"),
        pytest.param("a: *b", r"c.yaml:1: alias \*b has no anchor", id="no anchor"),
        pytest.param("a: &a [*a]", r"c.yaml:1: alias \*a has no anchor before it, or stands inside", id="recursive"),
        pytest.param(BOMB, f"aliases expand to more than {MOST_ALIASED} values", id="bomb"),
        pytest.param("[" * 50_000, f"nested more than {DEEPEST} deep", id="deep"),
        pytest.param("a: !python/object:os.system x", "c.yaml:1: tag .* does not go with", id="tag"),
        pytest.param("a: !!int x", "c.yaml:1: tag .* does not go with 'x'", id="wrong tag"),
        pytest.param("[a, b]: 1", "c.yaml:1: a key must be a plain text", id="key"),
        pytest.param("<<: 1", "c.yaml:1: << takes a mapping", id="merge"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(text, message):
    with pytest.raises(ConfigError, match=message):
        read_document(text, file="c.yaml")


def test_what_is_nested_as_deep_as_may_be_is_read_and_no_deeper():
    read_document("[" * DEEPEST + "]" * DEEPEST, file="c.yaml")
    with pytest.raises(ConfigError, match=f"nested more than {DEEPEST} deep"):
        read_document("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), file="c.yaml")


@given(st.text(max_size=80) | st.text("[]{}:,-&*a<! \n'\"|>%", max_size=60))
def test_any_text_is_read_or_refused(text):
    outcome: Document | ConfigError
    try:
        outcome = read_document(text, file="c.yaml")
    except ConfigError as error:
        outcome = error
    assert isinstance(outcome, Document) or outcome.file == "c.yaml"


MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap}
data:
  volcano-scheduler.conf: |
    actions: "enqueue, allocate"
    tiers:
    - plugins:
      - name: gang
      - name: bipnack
"""


def test_a_configuration_is_read_out_of_a_config_map_and_keeps_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(MANIFEST)
    with pytest.raises(ConfigError, match=r"manifest.yaml:10: .*bipnack"):
        builtin_registry().configured(str(file))
    file.write_text(MANIFEST.replace("bipnack", "binpack"))
    config = builtin_registry().configured(str(file))
    assert (config.actions, [each.name for each in config.plugins()]) == (("enqueue", "allocate"), ["gang", "binpack"])


@pytest.mark.parametrize(
    ("data", "found"),
    [("{}", 0), ("{a.conf: x, b.conf: y}", 2), ("{a.conf: [x]}", 1), ("none", 0)],
)
def test_a_config_map_must_hold_one_configuration(data: str, found: int, tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(f"kind: ConfigMap\ndata: {data}\n")
    with pytest.raises(ConfigError, match=f"manifest.yaml:1: the ConfigMap holds {found} configurations"):
        read_text(file)


def test_other_texts_that_name_config_maps_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("# from a ConfigMap\nactions: allocate\n")
    assert read_text(file) == "# from a ConfigMap\nactions: allocate\n"
