from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.fairness.tree import QueueTree, parse_path, parse_weights

CPU, GPU = 0, 1
TOTAL = [10, 10]


def grow(*jobs, total=TOTAL):
    """A tree of (path, weights, held, request) jobs, brought up to date."""
    tree = QueueTree(total)
    for number, (path, weights, held, request) in enumerate(jobs):
        tree.place(f"ns/j{number}", parse_path(path), parse_weights(weights), held, request)
    tree.update([sum(held[column] for _, _, held, _ in jobs) for column in range(len(total))])
    return tree


def node(tree, path):
    found = tree.root
    for name in path.split("/")[1:]:
        found = found.children[name]
    return found


def test_a_branch_counts_for_its_children_scaled_to_the_poorest():
    """The worked example: (10, 0) and (0, 5) below n2 count as (5, 5)."""
    tree = grow(("root/n2/a", "1/1/1", [10, 0], [20, 0]), ("root/n2/b", "1/1/1", [0, 5], [0, 20]), total=[10.5, 10])
    assert node(tree, "root/n2/a").share == pytest.approx(10 / 10.5)
    assert node(tree, "root/n2").allocated == pytest.approx([5 / 10 * 10.5, 5])
    assert node(tree, "root/n2").share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("held", "request_", "everything", "saturated"),
    [
        ([5, 0], [5, 0], [5, 0], True),
        ([4, 0], [5, 0], [4, 0], False),
        ([0, 0], [5, 0], [10, 10], False),
        ([4, 0], [5, 0], [10, 0], True),
        ([4, 0], [5, 3], [4, 10], False),
        ([4, 1], [5, 3], [4, 10], True),
        ([4, 0], [0, 3], [10, 0], False),
    ],
    ids=[
        "has-all", "wants-more", "holds-nothing", "no-cpu-left", "gpu-gone-but-holds-none", "gpu-gone-and-holds-some",
        "no-cpu-left-but-wants-none",
    ],
)  # fmt: skip
def test_saturation_of_a_job(held, request_, everything, saturated):
    tree = QueueTree(TOTAL)
    tree.place("ns/j", ["root", "q"], [1, 1], held, request_)
    tree.update(everything)
    assert node(tree, "root/q").saturated == saturated


def test_a_saturated_child_is_not_scaled_and_scales_no_other():
    tree = grow(("root/q", "1/1", [1, 0], [1, 0]), ("root/q", "1/1", [0, 4], [0, 9]))
    assert node(tree, "root/q").allocated == pytest.approx([1, 4])
    assert not node(tree, "root/q").saturated


@pytest.mark.parametrize(
    ("jobs", "left", "right", "answer"),
    [
        pytest.param(
            [("root/a", "1/1", [2, 0], [9, 0]), ("root/b", "1/1", [4, 0], [9, 0])], "a", "b", -1, id="smaller-share"
        ),
        pytest.param(
            [("root/a", "1/1", [2, 0], [9, 0]), ("root/b", "1/4", [4, 0], [9, 0])], "a", "b", 1, id="for-its-weight"
        ),
        pytest.param(
            [("root/a", "1/1", [3, 0], [3, 0]), ("root/b", "1/1", [5, 0], [9, 0])], "a", "b", 1, id="saturated-last"
        ),
        pytest.param([("root/a", "1/1", [2, 0], [9, 0]), ("root/b", "1/1", [2, 0], [9, 0])], "a", "b", 0, id="equal"),
        pytest.param([("root/a", "1/1", [2, 0], [9, 0])], "a", "missing", 1, id="no-job-there-is-share-0"),
        pytest.param([("root/a", "1/1", [0, 0], [9, 0])], "a", "missing", 0, id="nothing-held"),
        pytest.param([("root/a/x", "1/1/1", [2, 0], [9, 0])], "a", "a/x", 0, id="the-shorter-path-ends-it"),
        pytest.param(
            [("root/a/x", "1/1/1", [2, 0], [9, 0]), ("root/a/y", "1/1/2", [2, 0], [9, 0])],
            "a/x",
            "a/y",
            1,
            id="next-level",
        ),
    ],
)
def test_order_of_branches(jobs, left, right, answer):
    tree = grow(*jobs)
    assert tree.compare(["root", *left.split("/")], ["root", *right.split("/")]) == answer
    assert tree.compare(["root", *right.split("/")], ["root", *left.split("/")]) == -answer


def test_queues_without_a_path_hang_their_jobs_under_the_root():
    tree = grow(("", "", [2, 0], [9, 0]), ("root/a", "1/1", [0, 1], [0, 9]))
    assert list(tree.root.children) == ["ns/j0", "a"]
    assert tree.compare(parse_path(""), ["root", "a"]) == 0


def test_the_first_job_of_a_branch_gives_its_weight():
    tree = grow(("root/a/x", "1/3/1", [1, 0], [9, 0]), ("root/a/y", "1/8/1", [1, 0], [9, 0]))
    assert node(tree, "root/a").weight == 3


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("1/2/8", [1, 2, 8]),
        ("1/0.5", [1, 1]),
        ("1/x/3", [1, 1, 3]),
        ("", [1]),
        ("1/2.5", [1, 2.5]),
        ("1/inf/-3", [1, 1, 1]),
    ],
)
def test_weights(text, weights):
    assert parse_weights(text) == weights


def test_missing_weights_are_1():
    assert node(grow(("root/a/b", "1/2", [1, 0], [9, 0])), "root/a/b").weight == 1


held = st.lists(st.integers(0, 4), min_size=2, max_size=2)
places = st.sampled_from(["", "root/a", "root/a/x", "root/a/y", "root/b", "root/b/x/z"])
jobs = st.lists(st.tuples(places, st.just("1/2/3/1"), held, held), min_size=1, max_size=6)


def figures(tree, node_=None):
    node_ = node_ or tree.root
    below = {name: figures(tree, child) for name, child in (node_.children or {}).items()}
    return node_.share, node_.saturated, tuple(node_.allocated), below


@given(jobs, jobs)
def test_changes_one_by_one_give_the_tree_that_is_built_at_once(first, then):
    size = min(len(first), len(then))
    after = [
        (path, weights, held, request)
        for (path, weights, _, _), (_, _, held, request) in zip(first, then, strict=False)
    ]
    final = [*after, *first[size:]]
    tree = grow(*first)
    for number, (path, weights, held, request) in enumerate(after):
        tree.place(f"ns/j{number}", parse_path(path), parse_weights(weights), held, request)
        tree.update(
            [sum(job[2][column] for job in [*after[: number + 1], *first[number + 1 :]]) for column in (CPU, GPU)]
        )
    assert figures(tree) == figures(grow(*final))


@given(jobs)
def test_shares_stay_between_0_and_the_whole(drawn):
    tree = grow(*drawn, total=[40, 40])

    def check(found):
        assert 0 <= found.share <= 1 + 1e-9
        for child in (found.children or {}).values():
            check(child)

    check(tree.root)
