"""What a record holds of annotations, also once their keys have been seen."""

from __future__ import annotations

import pytest

from stromboli.cluster.kinds import (
    BatchJob,
    DaemonSet,
    Deployment,
    Pod,
    PodTemplateSpec,
    ReplicaSet,
    StatefulSet,
    WorkloadSpec,
)
from stromboli.journal import scrubbing
from stromboli.journal.scrubbing import Scrub
from stromboli.model.objects.base import NamespacedMetadata
from stromboli.model.spec import LabelSelector

KEPT = {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "t", "gpu.example.com/cards": "2"}
SECRET = {"kubectl.io/last": "token", "notvolcano.sh/x": "1", "plain": "2"}


def annotated(annotations: dict[str, str]) -> Pod:
    return Pod(metadata=NamespacedMetadata(name="p", annotations=annotations))


def test_keys_are_kept_or_taken_off_however_often_they_come() -> None:
    scrub = Scrub(["example.com"])
    for _ in range(3):
        assert scrub.clean(annotated(KEPT)).metadata.annotations == KEPT
        assert scrub.clean(annotated(KEPT | SECRET)).metadata.annotations == KEPT
        assert scrub.clean(annotated(SECRET)).metadata.annotations == {}
        assert scrub.clean(annotated({})).metadata.annotations == {}
    assert scrub.dropped == set(SECRET)


def test_an_object_without_anything_to_take_off_stays_as_it_is() -> None:
    scrub, pod = Scrub(["example.com"]), annotated(KEPT)
    assert scrub.clean(pod) is pod
    assert scrub.clean(pod) is pod


@pytest.mark.parametrize("kind", [ReplicaSet, StatefulSet, Deployment, DaemonSet, BatchJob])
def test_templates_of_workloads_are_taken_off_and_selectors_stay(kind: type[ReplicaSet]) -> None:
    selector = LabelSelector(match_labels={"app": "web"})
    found = kind(
        metadata=NamespacedMetadata(name="w"), spec=WorkloadSpec(selector=selector, template=PodTemplateSpec())
    )
    clean = Scrub().clean(found)
    assert type(clean) is kind
    assert clean.spec == WorkloadSpec(selector=selector)


def test_what_is_remembered_of_keys_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrubbing, "MOST_KNOWN", 3)
    scrub = Scrub()
    for number in range(5):
        kept = {f"volcano.sh/{number}": "x"}
        assert scrub.clean(annotated(kept | SECRET)).metadata.annotations == kept
        assert scrub.clean(annotated(kept)).metadata.annotations == kept
    assert len(scrub._known) == 3
