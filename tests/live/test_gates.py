"""A live scheduler has the feature gates that `plan` has."""

from __future__ import annotations

import pytest

from stromboli.errors import ConfigError
from stromboli.framework.config.gates import DEFAULTS, switched_on
from stromboli.live.process.flags import parse
from stromboli.live.process.process import source_of
from stromboli.live.scheduler.configuration import Source


@pytest.mark.parametrize("gate", DEFAULTS)
def test_each_gate_can_be_turned(gate: str) -> None:
    on = not DEFAULTS[gate]
    flags = parse([f"--feature-gates={gate}={str(on).lower()}"])
    assert source_of(flags).load().features == switched_on({gate: on})


def test_without_flags_the_usual_ones_are_on() -> None:
    assert Source().load().features == source_of(parse([])).load().features == switched_on({})


def test_an_unknown_one_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="QueueScopedOvercomit"):
        parse(["--feature-gates=QueueScopedOvercomit=true"])
