"""What a record holds of a state: every kind of change, and all that a checkpoint must bring back."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from stromboli.cluster.rim import Change, Cut, Emptied, ShardingSet
from stromboli.journal import entries as entries_module
from stromboli.journal.checkpoint import Checkpoint, restored
from stromboli.journal.entries import Batch, decode
from stromboli.journal.segments import segments
from stromboli.study.replay import Replay
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.support.written_record import WrittenRecord


def test_every_kind_of_change_is_read_again() -> None:
    known = str(entries_module._ROWS.type)
    kinds = [kind.__name__ for kind in Change.__subclasses__()]
    assert [name for name in kinds if not re.search(rf"\b{name}\b", known)] == ["Applied"], "that is read as a row"
    found = [Emptied(), ShardingSet("hard", "volcano"), Cut(1.0, 0, 0)]
    assert decode(Batch(found).content()) == found


def test_a_sharded_scheduler_is_replayed(tmp_path: Path) -> None:
    """It uses the nodes of its own shard alone; each segment says which these are."""
    shard = {
        "apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard", "metadata": {"name": "volcano"},
        "spec": {"owner": "volcano", "nodesDesired": ["n2"]}, "status": {"nodesInUse": ["n2"]},
    }  # fmt: skip
    record = WrittenRecord(tmp_path)
    record.rim.do(ShardingSet("hard", "volcano"))
    record.apply(queue("default"), node("n1"), node("n2"), shard)
    for at in range(2):
        record.begin(60 * at)
        record.apply(pod_group(f"g{at}"), pod(f"p{at}", group=f"g{at}"))
        assert [bind.node for bind in record.cycle(60 * at).binds] == ["n2"]
    record.close()
    replay = Replay()
    assert all(replay.read(segment) for segment in segments(tmp_path))
    assert replay.equal == 2
    state = restored(Checkpoint(record.rim.state).encode())
    assert state.snapshot().shard == record.rim.state.snapshot().shard


def test_templates_are_known_by_what_checkpoints_of_older_versions_hold(tmp_path: Path) -> None:
    """A plain pod's is known by its spec alone: else a pod of an old record would get a second template."""
    record = WrittenRecord(tmp_path)
    record.apply(queue("default"), pod_group("g"), pod("p", group="g"))
    (key,) = record.rim.state.templates._known
    assert [one["name"] for one in msgspec.msgpack.decode(key)["containers"]] == ["main"]
