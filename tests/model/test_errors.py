"""Errors say what, where and what to do, and cross process borders."""

from __future__ import annotations

import copy
import pickle

import pytest

from stromboli import errors

EXAMPLES = [
    (errors.QuantityError("1i", "no suffix"), ["'1i'", "no suffix"]),
    (errors.DurationError("1d", "no unit"), ["'1d'", "no unit"]),
    (errors.PatternError("error parsing regexp: unexpected ): `)`"), ["unexpected )"]),
    (
        errors.InsufficientResource("cpu 1.00, memory 0.00", "cpu 2.00, memory 0.00", ["cpu"]),
        ["resource is not sufficient to do operation: <cpu 1.00, memory 0.00> sub <cpu 2.00, memory 0.00>", "of cpu"],
    ),
    (errors.PlacementError("task a/b already on node n", task="a/b", node="n"), ["already on node n"]),
    (errors.NotFoundError("job", "ns/j", "session"), ["failed to find job ns/j in session"]),
    (
        errors.ManifestError("is negative", file="p.yaml", document=2, object="Pod a/b", path="spec.priority"),
        ["p.yaml, document 2, Pod a/b, spec.priority: is negative"],
    ),
    (errors.ManifestError("is empty"), ["is empty"]),
    (
        errors.ConfigError("unknown action bakfill", file="c.yaml", line=3, nearest="backfill"),
        ["c.yaml:3: ", "'backfill'"],
    ),
    (errors.ScenarioError("no pods", file="s.yaml", path="pods"), ["s.yaml: pods: no pods"]),
    (errors.PluginError("zone", "wrong arguments", point="predicate"), ["zone", "predicate", "wrong arguments"]),
    (errors.CapabilityMissing("kube_client", "extender", "plan"), ["extender", "kube_client", "plan"]),
    (errors.SnapshotError("version 9 is newer than 1"), ["version 9"]),
    (errors.RecordError("r.stj", 12, "is cut off"), ["r.stj, byte 12: is cut off"]),
    (errors.StudyError("out/ is in use by another sweep"), ["out/ is in use"]),
    (errors.AccessError("is missing", file="config", path="current-context"), ["config", "current-context"]),
    (errors.ApiError(409, "Conflict", "the object has been modified", request="PUT /a"), ["the object has been"]),
    (errors.MeasurementError("prometheus", "no answer within 5 s"), ["prometheus", "no answer within 5 s"]),
    (errors.Unreachable("no answer within 60 s", request="GET /a"), ["GET /a", "no answer"]),
    (errors.ExtenderError("http://x/verb", "no answer within 1 s"), ["http://x/verb", "no answer within 1 s"]),
    (errors.ShapeError("--nodes '3y': write e.g. 3x8cpu,32Gi"), ["3y"]),
    (errors.CannotServe("port 1 of 127.0.0.1: in use"), ["port 1"]),
    (errors.ApiFailure(404, "NotFound", 'pods "a" not found', {"name": "a"}), ['"a" not found']),
    (errors.ScheduleError("end of range (70) above maximum (59): 70"), ["above maximum"]),
    (errors.CelError("CEL runtime error: no such key: a"), ["no such key: a"]),
    (errors.ObjectInTheWay("Service j belongs to something else"), ["Service j"]),
    (errors.LostLease("leaderelection lost"), ["leaderelection lost"]),
]


@pytest.mark.parametrize(("error", "parts"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_message_and_round_trip(error: errors.StromboliError, parts: list[str]) -> None:
    assert all(part in str(error) for part in parts)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error) == again.message
        assert vars(again) == vars(error)


def test_every_error_of_the_tree_has_an_example() -> None:
    kinds = {type(error) for error, _ in EXAMPLES}
    assert kinds == set(errors.StromboliError.__subclasses__())


def test_drawing_in_the_docstring_is_the_tree() -> None:
    drawn = [line.split("── ")[1].split()[0] for line in (errors.__doc__ or "").splitlines() if "── " in line]
    assert set(drawn) == {kind.__name__ for kind in errors.StromboliError.__subclasses__()}
