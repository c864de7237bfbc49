from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.filters import taints
from stromboli.model.spec import Taint, Toleration
from tests.filters import builders
from tests.filters.builders import table

GPU = Taint("gpu", "a100", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration("gpu", "Equal", "a100", "NoSchedule"), True),
        (Toleration("gpu", "", "a100", ""), True),
        (Toleration("gpu", "Equal", "h100", ""), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("cpu", "Exists"), False),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Toleration("gpu", "Gt", "a100"), False),
    ],
)
def test_toleration(toleration, covers):
    assert taints.tolerates(toleration, GPU) is covers


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_taints_that_keep_a_pod_out(effect):
    assert not taints.admits((), (Taint("x", "", effect),))
    assert taints.admits((Toleration("x", "Exists"),), (Taint("x", "", effect),))


def test_a_preference_keeps_no_pod_out_but_counts():
    mild = Taint("x", "", "PreferNoSchedule")
    assert taints.admits((), (mild,))
    assert taints.reluctance((), (mild, GPU, mild)) == 2
    assert taints.reluctance((Toleration("x", "Exists", "", "NoSchedule"),), (mild,)) == 1
    assert taints.reluctance((Toleration("x", "Exists"),), (mild,)) == 0


def test_a_cordon_is_a_taint_that_can_be_tolerated():
    assert not taints.ignores_cordons((Toleration("other", "Exists"),))
    assert taints.ignores_cordons((Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"),))
    assert taints.ignores_cordons((Toleration("", "Exists"),))


@given(builders.node_lists(), st.lists(builders.tolerations, max_size=3))
def test_scalar_and_vector_agree(nodes, tolerations):
    column, view = taints.taint_column(nodes), table(nodes).view()
    admitted = [taints.admits(tolerations, each.taints) for each in nodes]
    reluctant = [taints.reluctance(tolerations, each.taints) for each in nodes]
    assert taints.admitting_rows(tolerations, column, view).tolist() == admitted
    assert taints.reluctance_rows(tolerations, column, view).tolist() == reluctant
