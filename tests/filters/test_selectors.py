from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.filters import selectors
from stromboli.model.spec import LabelSelector, NodeSelectorTerm, Requirement
from tests.filters import builders
from tests.filters.builders import node, spec, table


@pytest.mark.parametrize(
    ("operator", "values", "value", "meets"),
    [
        ("In", ("a", "b"), "b", True),
        ("In", ("a",), "b", False),
        ("In", ("a",), None, False),
        ("In", (), "a", False),
        ("NotIn", ("a",), "b", True),
        ("NotIn", ("a",), "a", False),
        ("NotIn", ("a",), None, True),
        ("NotIn", (), "a", False),
        ("Exists", (), "a", True),
        ("Exists", (), None, False),
        ("Exists", ("a",), "a", False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "a", False),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Gt", ("5",), None, False),
        ("Gt", ("5",), "six", False),
        ("Gt", ("five",), "6", False),
        ("Gt", ("5", "6"), "7", False),
        ("Gt", ("5",), "9223372036854775808", False),
        ("Lt", ("-5",), "-6", True),
        ("Lt", ("+5",), "4", True),
        ("Lt", ("5",), " 4", False),
        ("Near", ("a",), "a", False),
    ],
)
def test_requirement_of_a_node_label(operator, values, value, meets):
    assert selectors.meets(Requirement("k", operator, values), value) is meets


@pytest.mark.parametrize(
    ("selector", "labels", "takes"),
    [
        (None, {"app": "a"}, False),
        (LabelSelector(), {}, True),
        (LabelSelector({"app": "a"}), {"app": "a", "x": "y"}, True),
        (LabelSelector({"app": "a"}), {}, False),
        (LabelSelector({}, (Requirement("app", "NotIn", ("b",)),)), {}, True),
        (LabelSelector({"app": "a"}, (Requirement("x", "Exists"),)), {"app": "a"}, False),
        (LabelSelector({}, (Requirement("app", "Gt", ("1",)),)), {"app": "2"}, False),
        (LabelSelector({}, (Requirement("app", "NotIn", ()),)), {"app": "2"}, False),
    ],
)
def test_label_selector(selector, labels, takes):
    assert selectors.takes(selectors.clauses(selector), labels) is takes


def test_label_keys_are_merged_with_the_pods_own_values():
    wanted = selectors.with_label_keys((), {"rev": "1", "tier": "x"}, ("rev", "absent"), ("tier",))
    assert selectors.takes(wanted, {"rev": "1", "tier": "y"})
    assert not selectors.takes(wanted, {"rev": "2", "tier": "y"})
    assert not selectors.takes(wanted, {"rev": "1", "tier": "x"})
    assert selectors.with_label_keys(None, {"rev": "1"}, ("rev",)) is None


@pytest.mark.parametrize(
    ("term", "takes"),
    [
        pytest.param(NodeSelectorTerm(), False, id="empty"),
        pytest.param(NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),)), True, id="label"),
        pytest.param(NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n1",)),)), True, id="name"),
        pytest.param(NodeSelectorTerm((), (Requirement("metadata.name", "NotIn", ("n1",)),)), False, id="not-name"),
        pytest.param(NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n1", "n2")),)), False, id="two-names"),
        pytest.param(
            NodeSelectorTerm((Requirement("disk", "In", ("ssd",)), Requirement("disk", "Odd"))), False, id="invalid"
        ),
    ],
)
def test_term(term, takes):
    assert selectors.term_takes(term, node(labels={"disk": "ssd"})) is takes


@pytest.mark.parametrize(
    ("names", "conflict"),
    [([["a"], ["b"]], True), ([["a", "b"], ["b"]], False), ([["a"]], False), ([], False)],
    ids=["S3-26-none-left", "one-left", "one", "no-names"],
)
def test_names_that_exclude_each_other(names, conflict):
    fields = [{"key": "metadata.name", "operator": "In", "values": each} for each in names]
    terms = [{"matchFields": fields}] if fields else [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert selectors.names_conflict(spec(affinity={"nodeAffinity": required})) is conflict


@given(builders.node_lists(), st.lists(builders.terms, max_size=3), builders.labels, st.data())
def test_scalar_and_vector_agree(nodes, terms, selector, data):
    wire = [
        {
            "matchExpressions": [
                {"key": r.key, "operator": r.operator, "values": r.values} for r in t.match_expressions
            ],
            "matchFields": [{"key": r.key, "operator": r.operator, "values": r.values} for r in t.match_fields],
        }
        for t in terms
    ]
    weights = data.draw(st.lists(st.integers(-3, 100), min_size=len(wire), max_size=len(wire)))
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wire},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "preference": term} for weight, term in zip(weights, wire, strict=True)
        ],
    }
    pod = spec(nodeSelector=selector if data.draw(st.booleans()) else {}, affinity={"nodeAffinity": affinity})
    rows = np.array(data.draw(st.lists(st.integers(0, len(nodes) - 1), min_size=1)), dtype=np.intp)
    for view, chosen in ((table(nodes).view(), nodes), (table(nodes).view(rows), [nodes[r] for r in rows])):
        assert selectors.rows_suiting(pod, view).tolist() == [selectors.node_suits(pod, each) for each in chosen]
        assert selectors.preference_rows(pod, view).tolist() == [selectors.preference(pod, each) for each in chosen]
