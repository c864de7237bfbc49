"""Arguments of job plugins are read as Go's package flag reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.model.values.go_flags import Value, parse_flags

DEFAULTS: dict[str, Value] = {"port": 22, "on": False, "name": "n"}
ROWS: dict[str, tuple[list[str], dict[str, object], str]] = {
    "nothing": ([], {}, ""),
    "one dash or two": (["-port=1", "--name=x"], {"port": 1, "name": "x"}, ""),
    "two arguments": (["--port", "1", "-name", "-x"], {"port": 1, "name": "-x"}, ""),
    "a switch alone": (["--on"], {"on": True}, ""),
    "a switch takes no second argument": (["--on", "false", "--port=1"], {"on": True}, ""),
    "switches": (["--on=T", "--on=0", "--on=TRUE"], {"on": True}, ""),
    "an end": (["--port=1", "--", "--port=2"], {"port": 1}, ""),
    "no flag": (["port=1", "--port=2"], {}, ""),
    "a dash": (["-", "--port=2"], {}, ""),
    "nothing at all": (["", "--port=2"], {}, ""),
    "an equals sign in a value": (["--name=a=b"], {"name": "a=b"}, ""),
    "empty": (["--name="], {"name": ""}, ""),
    "the last counts": (["--port=1", "--port=2"], {"port": 2}, ""),
    "hexadecimal": (["--port=0x1F"], {"port": 31}, ""),
    "octal": (["--port=017"], {"port": 15}, ""),
    "octal, new": (["--port=0o17"], {"port": 15}, ""),
    "binary": (["--port=0b101"], {"port": 5}, ""),
    "underscores": (["--port=1_000", "--port=+0x_ff"], {"port": 255}, ""),
    "negative": (["--port=-5"], {"port": -5}, ""),
    "unknown": (["--port=1", "--prot=2", "--name=x"], {"port": 1}, "flag provided but not defined: -prot"),
    "help": (["-h"], {}, "flag: help requested"),
    "no number": (["--port=x"], {}, 'invalid value "x" for flag -port: parse error'),
    "no Go number": (["--port=1__0"], {}, 'invalid value "1__0" for flag -port: parse error'),
    "not octal": (["--port=08"], {}, 'invalid value "08" for flag -port: parse error'),
    "other digits": (["--port=٣"], {}, 'invalid value "٣" for flag -port: parse error'),
    "a blank": (["--port= 1"], {}, 'invalid value " 1" for flag -port: parse error'),
    "as Go quotes": (["--port=\a\x01\x7f\u00a0é\U000e0001\t\\"], {},
                     r'invalid value "\a\x01\x7f\u00a0é\U000e0001\t\\" for flag -port: parse error'),
    "too large": (["--port=9223372036854775808"], {},
                  'invalid value "9223372036854775808" for flag -port: value out of range'),
    "no truth": (["--on=yes"], {}, 'invalid boolean value "yes" for -on: parse error'),
    "nothing follows": (["--name"], {}, "flag needs an argument: -name"),
    "three dashes": (["---name=x"], {}, "bad flag syntax: ---name=x"),
    "no name": (["--=x"], {}, "bad flag syntax: --=x"),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_arguments(row: str) -> None:
    arguments, values, problem = ROWS[row]
    found = parse_flags(arguments, DEFAULTS)
    assert (found.values, found.problem) == ({**DEFAULTS, **values}, problem)


@given(st.lists(st.one_of(st.text(max_size=12), st.sampled_from(["--port", "-on", "--name=", "--port=0x", "--"]))))
def test_whatever_is_written_is_read_or_told(arguments: list[str]) -> None:
    found = parse_flags(arguments, DEFAULTS)
    assert {name: type(value) for name, value in found.values.items()} == {"port": int, "on": bool, "name": str}
    assert len(found.problem) < 300


def test_a_long_text_is_not_repeated() -> None:
    assert len(parse_flags(["--port=" + "9" * 10**6], DEFAULTS).problem) < 300
    assert len(parse_flags(["--" + "x" * 10**6], DEFAULTS).problem) < 300
