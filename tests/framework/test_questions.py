"""The typed questions of a session are those of the table of points."""

from __future__ import annotations

import inspect

import pytest

from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.questions import Ask, Comparison

OF_A_NODE = {"predicate_for_allocate", "predicate_for_preempt"}
"""Questions of the predicates that are no points of their own."""


def parameters(function: object) -> tuple[str, ...]:
    assert callable(function)
    return tuple(inspect.signature(function).parameters)[1:]


ASKED = POINTS.keys() - {"on_allocate", "on_deallocate"}
"""The points that are asked; the others are events."""


def test_there_is_one_question_a_point():
    assert {name for name in vars(Ask) if not name.startswith("_")} == ASKED | OF_A_NODE


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_question_has_the_parameters_of_its_point(name):
    question, point = vars(Ask)[name], POINTS[name]
    if isinstance(question, property):
        assert parameters(Comparison.opinion) == point.arguments
    elif point.unsplit:
        assert parameters(question) == ("job", *point.arguments)
    else:
        assert parameters(question) == point.arguments
