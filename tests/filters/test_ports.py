from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.filters.pods_on_nodes import Event, PodsOnNodes
from stromboli.filters.ports import PortsInUse, conflicts
from tests.filters.builders import node, spec, table, task

ports = st.tuples(
    st.sampled_from(("0.0.0.0", "10.0.0.1", "10.0.0.2")), st.sampled_from(("TCP", "UDP")), st.integers(1, 3)
)


def all_free(wanted, taken):
    return not any(conflicts(port, other) for port in wanted for other in taken)


@pytest.mark.parametrize(
    ("left", "right", "clash"),
    [
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False),
    ],
)
def test_conflict(left, right, clash):
    assert conflicts(left, right) is clash


def holding(wanted):
    wire = [{"hostIP": address, "protocol": protocol, "hostPort": port} for address, protocol, port in wanted]
    return task(spec(containers=[{"name": "c", "ports": wire}]))


@given(
    st.lists(st.tuples(st.lists(ports, min_size=1, max_size=2), st.integers(0, 2)), max_size=5),
    st.lists(st.tuples(st.lists(ports, min_size=1, max_size=2), st.integers(0, 2), st.booleans()), max_size=5),
    st.lists(ports, min_size=1, max_size=2),
)
def test_ports_follow_the_log(there, placed, wanted):
    view = table([node(f"n{i}") for i in range(3)]).view()
    log: list[Event] = []
    index = PortsInUse(PodsOnNodes(lambda: [(holding(held), row) for held, row in there], log), 3)
    taken = [[port for held, at in there for port in held if at == row] for row in range(3)]
    for held, row, undone in placed:
        assert index.free_rows(wanted, view).tolist() == [all_free(wanted, each) for each in taken]
        pod = holding(held)
        log.append((pod, row, 1))
        if undone:
            log.append((pod, row, -1))
        else:
            taken[row] += held
    free = [all_free(wanted, each) for each in taken]
    assert [index.free_row(wanted, row) for row in range(3)] == free
    assert index.free_rows(wanted, view).tolist() == free
