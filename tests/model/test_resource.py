"""Amounts: every operation, with the acceptance rows S1-01 to S1-19 and S1-39 by their names."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stromboli.errors import InsufficientResource, NotFoundError, QuantityError
from stromboli.framework.extension.figures import amounts_text, by_name, exceeding, shown
from stromboli.model.resources.resource import (
    INFINITE,
    MIN,
    UNLIMITED,
    Default,
    Resource,
    exceeded_part,
    intersection,
    intersection_without_pods,
    le,
    maximum,
    minimum,
    share,
)

GPU = "nvidia.com/gpu"
ZERO, INFINITY = Default.ZERO, Default.INFINITY


def res(cpu: str | int = 0, memory: str | int = 0, gpu: str | int | None = None, **scalars: float) -> Resource:
    """cpu in cores, memory as a quantity, GPUs as a count; further scalars raw (``pods=1``)."""
    amounts: dict[str, str | int] = {"cpu": cpu, "memory": memory}
    if gpu is not None:
        amounts[GPU] = gpu
    resource = Resource.from_list(amounts)
    for name, amount in scalars.items():
        resource.set_scalar(name, amount)
    return resource


def outcome(action: Callable[[], object]) -> object:
    try:
        return action()
    except (InsufficientResource, NotFoundError) as error:
        return type(error)


def after(resource: Resource, *operations: Callable[[Resource], object]) -> Resource:
    for operation in operations:
        operation(resource)
    return resource


G = 2**30

ROWS = [
    ("S1-01", lambda: Resource.from_list({"cpu": "500m", "memory": "4Gi"}), Resource(500.0, 4294967296.0)),
    (
        "S1-01",
        lambda: [le(1.09, 1), le(1.1, 1), Resource(0.09).is_empty(), Resource(0.1).is_empty()],
        [True, False, True, False],
    ),
    ("S1-02", lambda: Resource.from_list({GPU: 2, "pods": 3}), Resource(0, 0, {GPU: 2000.0, "pods": 3.0}, 3)),
    ("S1-02", lambda: Resource.from_list({"huawei.com/Ascend310": 1}).names(), ["huawei.com/Ascend310"]),
    ("S1-03", lambda: Resource(1, 1, None, 5).add(Resource(1, 1, None, 7)).max_task_num, 5),
    ("S1-03", lambda: Resource(2, 2, None, 5).sub(Resource(1, 1, None, 7)).max_task_num, 5),
    ("S1-03", lambda: Resource(1, 1, None, 9).less(Resource(2, 2, None, 1), ZERO), True),
    ("S1-03", lambda: Resource(1, 1, None, 9).equal(Resource(1, 1, None, 1)), True),
    ("S1-04", lambda: res(gpu=1).less_equal(res(), ZERO), False),
    ("S1-04", lambda: res(gpu=1).less_equal(res(), INFINITY), True),
    ("S1-05", lambda: res(2, "4Gi", 1).add(res(1, "2Gi", 1)), res(3, "6Gi", 2)),
    ("S1-05", lambda: [each.add(res(1)) is each for each in [res()]], [True]),
    ("S1-06", lambda: res(1).sub(res(2)), InsufficientResource),
    ("S1-06", lambda: after(res(1), lambda r: r.sub_without_assert(res(2))), Resource(-1000.0)),
    ("S1-06", lambda: res(1).sub_without_assert(res(2, 0, 1)), ["cpu", GPU]),
    ("S1-07", lambda: res(2, "4Gi", 2).multi(0.5), res(1, "2Gi", 1)),
    ("S1-08", lambda: res(1, "2Gi", 1).less(res(2, "4Gi", 2), ZERO), True),
    ("S1-08", lambda: res(2, "2Gi", 1).less(res(2, "4Gi", 2), ZERO), False),
    ("S1-08", lambda: res(1, "2Gi", 2).less(res(2, "4Gi", 2), ZERO), False),
    ("S1-09", lambda: Resource(1000.09).less_equal(Resource(1000.0), ZERO), True),
    ("S1-09", lambda: Resource(1000.1).less_equal(Resource(1000.0), ZERO), False),
    ("S1-10", lambda: res().equal(res(gpu=5)), True),
    ("S1-10", lambda: res(gpu=5).equal(res()), False),
    ("S1-10", lambda: Resource(1000.09).equal(Resource(1000.0)), True),
    ("S1-11", lambda: res(3, "1Gi").less_partly(res(2, "2Gi"), ZERO), True),
    ("S1-11", lambda: res(3, "1Gi").greater_partly(res(2, "2Gi"), ZERO), (True, ["cpu"])),
    ("S1-11", lambda: res(3, "2Gi").less_equal_partly(res(2, "2Gi"), ZERO), True),
    ("S1-11", lambda: res(3, "2Gi").less_partly(res(2, "2Gi"), ZERO), False),
    ("S1-12", lambda: res(3, "8Gi", 2).less_equal_names(res(2, "4Gi", 4), ZERO), (False, ["cpu", "memory"])),
    ("S1-13", lambda: res(3, "8Gi").less_equal_dims_names(res(2, "4Gi"), res(gpu=1)), (True, [])),
    ("S1-14", lambda: res(3, "2Gi").diff(res(2, "4Gi")), (Resource(1000.0, 0, {}), Resource(0, 2.0 * G, {}))),
    ("S1-15", lambda: res(4, 0, 2).min_dimension(res(3), ZERO), res(3, 0, 0)),
    ("S1-15", lambda: res(4, 0, 2).min_dimension(res(3), INFINITY), res(3, 0, 2)),
    ("S1-16", lambda: str(res(1).fit_delta(res(2))), "cpu -1000.10, memory 0.00"),
    ("S1-17", lambda: res(1, "512Mi").set_max(res("200m", "2Gi")), res(1, "2Gi")),
    ("S1-18", lambda: res(pods=1).is_empty(), True),
    ("S1-18", lambda: res(gpu=1).is_empty(), False),
    (
        "S1-19",
        lambda: [(after(each.clone(), lambda r: r.set_scalar(GPU, 7)), each)[1] for each in [res(1, 1, 2)]],
        [res(1, 1, 2)],
    ),
    ("S1-39", lambda: res(1, 0, 1).less_equal(res(2), INFINITY), True),
    ("S1-39", lambda: res(1, 0, 1).less_equal_names(res(2), ZERO), (False, [GPU])),
]


@pytest.mark.parametrize(("action", "expected"), [pytest.param(*row[1:], id=row[0]) for row in ROWS])
def test_acceptance_rows(action: Callable[[], object], expected: object) -> None:
    assert outcome(action) == expected


# -- Reading and writing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "amount", "counted"),
    [
        ("cpu", "1500u", ("milli_cpu", 2)),
        ("memory", "1.5", ("memory", 2)),
        ("ephemeral-storage", 3, 3000.0),
        ("hugepages-2Mi", "4Mi", 4194304000.0),
        ("nvidia.com/gpu", 2, 2000.0),
        ("deviceclass/gpu", 2, 2000.0),
        ("kubernetes.io/batch-cpu", 5, 5000.0),
        ("attachable-volumes-csi-ebs", 5, 5000.0),
        ("count/pods", 1, None),
        ("count/jobs.batch", 1, None),
        ("storage", "1Gi", None),
        ("requests.cpu", 1, None),
        ("requests.nvidia.com/gpu", 1, None),
        ("limits.memory", 1, None),
        ("limits.nvidia.com/gpu", 1, None),
        ("batch-cpu", 1, None),
        ("a/b/c", 1, None),
        ("UPPER.com/x", 1, None),
        ("vendor.com/", 1, None),
        ("vendor.com/-x", 1, None),
        (f"vendor.com/{'x' * 64}", 1, None),
        (f"vendor.com/{'x' * 63}", 1, 1000.0),
        (f"{'x' * 244}/y", 1, 1000.0),
        (f"{'x' * 245}/y", 1, None),
    ],
)
def test_from_list(name: str, amount: str | int, counted: tuple[str, int] | float | None) -> None:
    expected = Resource()
    if isinstance(counted, tuple):
        setattr(expected, counted[0], float(counted[1]))
    elif counted is not None:
        expected.scalars = {name: counted}
    assert Resource.from_list({name: amount}) == expected


def test_ignored_devices_are_left_out_of_this_reading_only() -> None:
    amounts = {"cpu": 1, GPU: 2, "ephemeral-storage": 1}
    assert Resource.from_list(amounts, ignored=[GPU]) == Resource(1000.0, 0, {"ephemeral-storage": 1000.0})
    assert Resource.from_list(amounts).get(GPU) == 2000


def test_a_bad_amount_is_refused_even_of_memory() -> None:
    with pytest.raises(QuantityError):
        Resource.from_list({"memory": "1Zi"})


def test_to_list() -> None:
    resource = Resource(2070.9, 18944 * 2**20, {GPU: 1500.0, "pods": 2000.0, "ephemeral-storage": 3000.0})
    assert resource.to_list() == {
        "cpu": "2070m",
        "memory": "18944Mi",
        "ephemeral-storage": "3",
        GPU: "1500m",
        "pods": "2k",
    }
    assert Resource().to_list() == {"cpu": "0", "memory": "0"}
    assert Resource.from_list(Resource.infinite().to_list()).memory == 2**63 - 1


def test_text() -> None:
    assert str(Resource(1000, 2.5, {"z/z": 1.0, GPU: 0.005})) == f"cpu 1000.00, memory 2.50, {GPU} 0.01, z/z 1.00"
    unlimited = Resource(sys.float_info.max, sys.float_info.max, {GPU: 2.0**63})
    assert str(unlimited) == f"cpu maxFloat, memory maxFloat, {GPU} maxInt"


def test_names_and_get() -> None:
    resource = Resource(1, 0.05, {"pods": 1.0, "b/b": 5.0, "a/a": 0.05})
    assert resource.names() == ["cpu", "b/b", "pods"]
    assert [resource.get(name) for name in ("cpu", "memory", "b/b", "c/c")] == [1, 0.05, 5.0, 0.0]


def test_is_zero() -> None:
    assert Resource(0.05).is_zero("cpu")
    assert not Resource(0, 1).is_zero("memory")
    assert Resource().is_zero(GPU)
    assert Resource(scalars={GPU: 0.05}).is_zero(GPU)
    with pytest.raises(NotFoundError, match=r"^unknown resource a/a$"):
        Resource(scalars={}).is_zero("a/a")


def test_infinite() -> None:
    unlimited = Resource.infinite()
    assert (unlimited.scalars, unlimited.max_task_num) == (None, 2**63 - 1)
    assert res(10**6, "1Ei").less(unlimited, INFINITY)


def test_equality_is_exact() -> None:
    assert Resource(1.0) == Resource(1.0)
    assert Resource(1.0) != Resource(1.05)
    assert Resource(max_task_num=1) != Resource()
    resource = res(1, 2, 3, pods=1.0)
    assert pickle.loads(pickle.dumps(resource)) == copy.deepcopy(resource) == resource


# -- Arithmetic ------------------------------------------------------------------------------------------------------


def test_sub_refuses_without_touching_anything() -> None:
    resource = res(1, "1Gi", 1)
    with pytest.raises(
        InsufficientResource, match=r"^resource is not sufficient to do operation: <cpu 1000\.00"
    ) as caught:
        resource.sub(res(2, "1Gi", 3))
    assert caught.value.short == ("cpu", GPU)
    assert resource == res(1, "1Gi", 1)
    assert resource.sub(resource.clone()) == Resource(0, 0, {GPU: 0.0})


def test_subtraction_without_own_scalars_drops_the_others() -> None:
    resource = res(2)
    assert resource.sub_without_assert(res(1, 0, 1)) == [GPU]
    assert resource == res(1)
    named = Resource(2000.0, 0, {"a/a": 1.0})
    assert named.sub_without_assert(res(1, 0, 1)) == [GPU]
    assert named == Resource(1000.0, 0, {"a/a": 1.0, GPU: -1000.0})


def test_set_max_takes_all_scalars() -> None:
    assert res(1).set_max(Resource(scalars={GPU: -1.0})) == Resource(1000.0, 0, {GPU: -1.0})
    assert Resource(scalars={GPU: 2.0}).set_max(Resource(scalars={GPU: 1.0, "a/a": 3.0})).scalars == {
        GPU: 2.0,
        "a/a": 3.0,
    }


def test_min_dimension_never_adds_scalars() -> None:
    assert res(1).min_dimension(res(2, 0, 1), ZERO) == res(1)
    assert res(1, 0, 3).min_dimension(res(2, 0, 1), INFINITY) == res(1, 0, 1)


def test_fit_delta_looks_at_requested_dimensions_only() -> None:
    left = res(1, "1Gi").fit_delta(res(0, 0, 1))
    assert left == Resource(1000.0, G, {GPU: -1000.1})


def test_diff_of_open_scalars() -> None:
    left, right = Resource(scalars={"a/a": 5.0, "b/b": 1.0}), Resource(scalars={"b/b": 1.0, "c/c": 2.0})
    assert left.diff(right, ZERO) == (Resource(scalars={"a/a": 5.0}), Resource(scalars={"b/b": 0.0, "c/c": 2.0}))
    assert left.diff(right, INFINITY) == (
        Resource(scalars={"c/c": UNLIMITED}),
        Resource(scalars={"a/a": UNLIMITED, "b/b": 0.0}),
    )


def test_exceeded_part() -> None:
    assert exceeded_part(None, res(1)) == Resource()
    assert exceeded_part(res(3, "1Gi"), None) == res(3, "1Gi")
    assert exceeded_part(res(3, "1Gi", 2), res(1, "2Gi", 2)) == Resource(2000.0, 0, {})
    assert exceeded_part(res(3, 0, 2), res(1)) == Resource(2000.0, 0, {GPU: 2000.0})


def test_minimum_and_maximum() -> None:
    assert minimum(res(1, "2Gi", 2), res(2, "1Gi")) == res(1, "1Gi")
    assert minimum(res(gpu=2), Resource(scalars={"a/a": 1.0})) == Resource(scalars={GPU: 0.0})
    assert maximum(res(1, "2Gi", 2), res(2, "1Gi", 1)) == res(2, "2Gi", 2)
    assert maximum(res(1), res(2)) == res(2)
    assert maximum(Resource(scalars={GPU: -1.0}), Resource(scalars={"a/a": 1.0})) == Resource(scalars={"a/a": 1.0})


@pytest.mark.parametrize(
    ("amount", "total", "expected"), [(0, 0, 0.0), (1, 0, 1.0), (-1, 0, 1.0), (1, 4, 0.25), (6, 4, 1.5)]
)
def test_share(amount: float, total: float, expected: float) -> None:
    assert share(amount, total) == expected


def test_intersection() -> None:
    left, right = res(1, 0, 1, pods=1.0), res(1, "1Gi", 1, pods=1.0)
    assert intersection(left, right) == ["cpu", GPU, "pods"]
    assert intersection_without_pods(left, right) == ["cpu", GPU]


# -- Comparisons -----------------------------------------------------------------------------------------------------

OPEN_SCALARS = [  # method, only left names it, only right names it (value 0): with ZERO, with INFINITY
    ("less", (False, True), (True, False)),
    ("less_equal", (False, True), (True, False)),
    ("less_partly", (False, True), (True, False)),
    ("less_equal_partly", (False, True), (True, False)),
]


@pytest.mark.parametrize(("method", "left_only", "right_only"), OPEN_SCALARS)
def test_scalars_that_one_side_does_not_name(
    method: str, left_only: tuple[bool, bool], right_only: tuple[bool, bool]
) -> None:
    small, large = (Resource(2, 2), Resource(1, 1)) if "partly" in method else (Resource(1, 1), Resource(2, 2))
    with_scalar = Resource(small.milli_cpu, small.memory, {GPU: 5.0})
    assert tuple(getattr(with_scalar, method)(large, default) for default in (ZERO, INFINITY)) == left_only
    limited = Resource(large.milli_cpu, large.memory, {GPU: 0.0})
    assert tuple(getattr(small, method)(limited, default) for default in (ZERO, INFINITY)) == right_only


def test_less_equal_names_ignores_what_only_the_other_names() -> None:
    assert res(1).less_equal_names(res(2, 0, 1), INFINITY) == (True, [])
    assert res(1, 0, 1).less_equal_names(res(2), INFINITY) == (True, [])
    short = Resource(2, 2, {"b/b": 1.0, "a/a": 1.0}).less_equal_names(Resource(1, 2), ZERO)
    assert short == (False, ["cpu", "a/a", "b/b"])


REQUESTED = [  # left, right, request, less_equal_dims_names
    (res(3, "8Gi"), res(2, "4Gi"), res(1), (False, ["cpu"])),
    (res(3, "8Gi"), res(2, "4Gi"), None, (False, ["cpu", "memory"])),
    (res(3, "8Gi", 1), None, res(gpu=1), (False, ["cpu", "memory", GPU])),
    (res(0, 0, 1), res(), res(gpu=1), (False, [GPU])),
    (res(0, 0, 1), res(), res(1), (True, [])),
    (res(1), Resource(1000.0, 0, {GPU: -5.0}), res(gpu=1), (True, [])),
    (Resource(1000.0, 0, {}), Resource(1000.0, 0, {GPU: -5.0}), res(gpu=1), (False, [GPU])),
    (Resource(1000.05), Resource(1000.0), res(1), (False, ["cpu"])),
    (res(pods=3.0), res(pods=2.0), res(pods=1.0), (True, [])),
]


@pytest.mark.parametrize(("left", "right", "request_", "expected"), REQUESTED)
def test_requested_dimensions(
    left: Resource, right: Resource | None, request_: Resource | None, expected: tuple[bool, list[str]]
) -> None:
    assert left.less_equal_dims_names(right, request_) == expected
    everything = ["cpu", "memory", GPU, "pods"]
    assert left.less_equal_with_dimension(right, request_, everything) == expected
    named = [name for name in expected[1] if name != "cpu"]
    assert left.less_equal_with_dimension(right, request_, ["memory", GPU]) == (not named, named)


def test_a_queue_without_a_figure_does_not_limit_but_a_written_zero_does() -> None:
    used = res(1, 0, 1)
    assert used.less_equal_with_dimension(res(2), res(1, 0, 1), ["cpu"]) == (True, [])
    assert used.less_equal_with_dimension(res(2, 0, 0), res(1, 0, 1), ["cpu", GPU]) == (False, [GPU])


def test_partly_within_requested_dimensions() -> None:
    left, right = res(3, "1Gi", pods=5.0), res(2, "2Gi", pods=9.0)
    assert left.less_equal_partly_dims(right, res(1, "1Gi", pods=1.0)) == (True, ["memory"])
    assert left.less_equal_partly_dims(right, res(1)) == (False, [])
    assert left.less_equal_partly_dims(right, None) == (False, [])
    assert res(1).less_equal_partly_dims(res(1), res(1, 0, 1)) == (True, ["cpu", GPU])
    assert res(1).less_equal_partly_dims_zero_filtered(res(1), res(1, 0, 1)) == (True, ["cpu"])
    assert res(2).less_equal_partly_dims_zero_filtered(res(1), res(1, 0, 1)) == (False, [])
    assert Resource(1000.05).less_equal_partly_dims(Resource(1000.0), res(1)) == (True, ["cpu"])


def test_partly_beyond_requested_dimensions() -> None:
    left = res(3, "1Gi", 1, pods=5.0)
    assert left.greater_partly_dims(res(2, "2Gi"), res(1, 1, 1, pods=1.0)) == (True, ["cpu", GPU])
    assert left.greater_partly_dims(None, res(1)) == (True, ["cpu"])
    assert left.greater_partly_dims(res(1), None) == (False, [])
    assert Resource(1000.05).greater_partly_dims(Resource(1000.0), res(1)) == (True, ["cpu"])
    assert left.greater_partly_relevant(res(0, "512Mi"), res(1, 1, 1)) == (True, ["memory"])
    assert left.greater_partly_relevant(res(0, 0, 0), res(1, 1, 1)) == (True, [GPU])
    assert left.greater_partly_relevant(None, res(1, 1, 1)) == (False, [])


# -- Laws ------------------------------------------------------------------------------------------------------------

amounts = st.integers(0, 2**40).map(float)
resources = st.builds(
    Resource,
    amounts,
    amounts,
    st.none() | st.dictionaries(st.sampled_from([GPU, "a/a", "pods"]), amounts, max_size=3),
)
defaults = st.sampled_from(Default)


@given(resources, resources)
def test_subtracting_what_was_added_gives_it_back(left: Resource, right: Resource) -> None:
    total = left.clone().add(right)
    assert right.less_equal(total, ZERO)
    assert total.sub(right).equal(left)


@given(resources, resources)
def test_sub_is_refused_exactly_when_something_is_short(left: Resource, right: Resource) -> None:
    refused = outcome(lambda: left.clone().sub(right)) is InsufficientResource
    assert refused == bool(left.clone().sub_without_assert(right)) == (not right.less_equal(left, ZERO))


@given(resources, resources)
def test_parts_of_a_difference_put_together(left: Resource, right: Resource) -> None:
    more, less = left.diff(right)
    for name in ["cpu", "memory", GPU, "a/a", "pods"]:
        assert left.get(name) + less.get(name) == right.get(name) + more.get(name)
        assert min(more.get(name), less.get(name)) == 0
        assert exceeded_part(left, right).get(name) == max(left.get(name) - right.get(name), 0)


@given(resources, resources, defaults)
def test_strict_comparison_implies_the_tolerant_one(left: Resource, right: Resource, default: Default) -> None:
    if left.less(right, default):
        assert left.less_equal(right, default)
    if left.less_partly(right, default):
        assert left.less_equal_partly(right, default)
    assert left.greater_partly(right, default)[0] != left.less_equal_names(right, default)[0]
    if left.less_equal(right, default):
        assert left.less_equal_names(right, default) == (True, [])


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_tolerance(left: float, right: float) -> None:
    assume(abs(abs(left - right) - MIN) > 1e-6)
    assert le(left, right) == (left <= right + MIN)
    assert le(left, right) or le(right, left)


@given(resources, resources)
def test_minimum_is_below_and_maximum_above_both(left: Resource, right: Resource) -> None:
    for side in (left, right):
        assert minimum(left, right).less_equal(side, ZERO)
        assert side.less_equal(maximum(left, right), ZERO)


@given(resources)
def test_lists_round_trip(resource: Resource) -> None:
    again = Resource.from_list(resource.to_list())
    assert again.equal(resource)
    assert resource.equal(again)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cpu", 1500, "1.5"), ("cpu", 12_345, "12.35"), ("cpu", 100_040, "100"), ("cpu", 9_999.4, "9.999"),
        ("pods", 3, "3"), (GPU, 8000, "8"), ("cpu", INFINITE, "unlimited"), ("cpu", -INFINITE, "unlimited"),
        ("memory", 512, "512"), ("memory", 2**10, "1Ki"), ("memory", 2**20, "1Mi"), ("memory", 16 * 2**30, "16Gi"),
        ("memory", 1434 * 2**30, "1434Gi"), ("memory", 2 * 2**40, "2Ti"), ("memory", 3 * 2**50, "3Pi"),
        ("ephemeral-storage", 1000 * 2**40, "1024Gi"), ("ephemeral-storage", 1000 * 2**30, "1Gi"),
    ],
)  # fmt: skip
def test_amounts_as_people_read_them(name: str, value: float, text: str) -> None:
    assert shown(name, value) == text
    assert amounts_text({name: value}) == f"{name} {text}"


def test_amounts_in_a_row_are_those_asked_for() -> None:
    found = {"cpu": 2000.0, "memory": 2.0**30}
    assert amounts_text(found) == "cpu 2, memory 1Gi"
    assert amounts_text(found, ["memory", "pods"]) == "memory 1Gi, pods 0"
    assert amounts_text({}) == "nothing"
    assert by_name(res(2, "1Gi", 1, pods=0)) == {"cpu": 2000, "memory": 2**30, GPU: 1000}


def test_which_parts_together_exceed_a_limit() -> None:
    parts = [{"cpu": 2000.0, GPU: 1000.0}, {"cpu": 2000.0, "memory": 5.0}]
    assert exceeding(parts, {"cpu": 4000.0, GPU: 500.0}, ["cpu", GPU, "pods"]) == [GPU]
    assert exceeding(parts, {"cpu": 4000.0 - MIN}, ["cpu"]) == ["cpu"]
    assert exceeding(parts, {"cpu": 4000.0 - MIN / 2}, ["cpu"]) == []
