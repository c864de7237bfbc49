"""The engine against the plain evaluation, which works everything out node by node."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.testing.plain.cycle import run_plain_cycle
from tests.laws.scenes import (
    CONFIGURATIONS,
    NOW,
    REGISTRY,
    SEEDED,
    Scene,
    ending_scenes,
    held_scenes,
    scenes,
    tight_scenes,
    waiting_scenes,
)


@pytest.mark.law("the engine decides as the plain evaluation does")
@settings(max_examples=50)
@given(st.one_of(scenes(), tight_scenes(), ending_scenes(), held_scenes(), waiting_scenes()))
def test_plain(scene: Scene) -> None:
    assert scene.plan() == run_plain_cycle(scene.snapshot(), scene.config, REGISTRY, NOW)


@pytest.mark.law("the engine decides as the plain evaluation does, ties drawn by a seed")
@given(st.one_of(scenes(), tight_scenes(), ending_scenes()), st.sampled_from(CONFIGURATIONS), st.integers(0, 9))
def test_plain_with_drawn_ties(scene: Scene, conf: str, seed: int) -> None:
    drawn = Scene(scene.objects, SEEDED + conf)
    assert drawn.plan(seed) == run_plain_cycle(drawn.snapshot(), drawn.config, REGISTRY, NOW, seed)
