"""Documents of a file: where they begin, lists within lists, and objects as they are written."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from stromboli.cluster.events import Added
from stromboli.cluster.files import documents
from stromboli.cluster.files.documents import Document, Found, Ignored, Skipped, parse, split, whole_objects
from stromboli.errors import ManifestError

QUEUE = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}}"
LINE = QUEUE.replace("{", '{"').replace("}", '"}').replace(": ", '": "').replace(", ", '", "')
LINE = LINE.replace('"{', "{").replace('}"', "}")


def nested(depth: int, item: str = QUEUE) -> str:
    for _ in range(depth):
        item = f"{{apiVersion: v1, kind: List, items: [{item}]}}"
    return item


def found(text: str) -> list[Found]:
    places = count()
    return [one for document in split(text.encode()) for one in parse(document, places)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a: 1\n---\nb: 2\n", [1, 2]),
        ("---\n# nothing\n---\n\n\nb: 2\n", [3]),
        (f"{LINE}\n\n{LINE}\n", [1, 3]),
        (f"{LINE}\n", [1]),
        (f'{{"a": 1,\n"b": 2}}\n---\n{LINE}\n{LINE}\n', [1, 4, 5]),
        ('{"a": 1\n}\n', [1]),
        ("{a: 1}\n{b: 2}\n", [1]),
    ],
)
def test_where_documents_begin(text: str, pieces: list[int]) -> None:
    assert [document.line for document in split(text.encode())] == pieces


@pytest.mark.parametrize(("depth", "is_read"), [(0, True), (1, True), (4, True), (5, False)])
def test_lists_of_lists_are_read_to_a_depth(depth: int, is_read: bool) -> None:
    [one] = found(nested(depth))
    assert isinstance(one, Added if is_read else ManifestError)
    if isinstance(one, ManifestError):
        assert str(one).endswith("lists of objects are nested more than 4 deep")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{kind: Queue, metadata: {name: q}}", "is missing, or is no text; a Queue is scheduling.volcano.sh/v1beta1"),
        ("{apiVersion: v9, kind: Queue, metadata: {name: q}}", "'v9' is not known; a Queue is"),
        ("{apiVersion: v1, metadata: {name: q}}", "is missing, or is no text"),
        ("{apiVersion: v1, kind: List}", "must be a list"),
    ],
)
def test_what_a_document_must_say(text: str, problem: str) -> None:
    [one] = found(text)
    assert problem in str(one)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("batch/v9", "Job"),
        ("scheduling.k8s.io/v9", "PodGroup"),
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
        ("v1", "NpuReport"),
        ("scheduling.k8s.io/v1alpha1", "UpstreamPodGroup"),
        ("v1", "Secret"),
    ],
)
def test_kinds_of_others_and_those_that_manifests_know_by_another_name_are_left_out(version: str, kind: str) -> None:
    (skipped,) = found(f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: n}}}}")
    assert isinstance(skipped, Skipped)
    assert skipped.kind == f"{version} {kind}"


@pytest.mark.parametrize(
    ("version", "kind", "kept"),
    [
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {"metadata", "spec", "apiVersion", "kind"}),
        ("example.com/v1", "Run", {"metadata"}),
        ("v1", "Secret", None),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", None),
    ],
)
def test_of_what_may_own_pods_the_object_is_kept(version: str, kind: str, kept: set[str] | None) -> None:
    """Of a kind whose gangs are known the whole object, of another one what it is called and who owns it."""
    (skipped,) = found(f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: n}}, spec: {{}}}}")
    assert isinstance(skipped, Skipped)
    assert (None if skipped.owner is None else set(skipped.owner)) == kept


def test_what_may_own_pods_and_has_no_metadata_is_left_out() -> None:
    assert found("{apiVersion: example.com/v1, kind: Run, metadata: n}") == [Skipped("example.com/v1 Run")]


def test_what_may_own_pods_and_has_no_plain_value_is_left_out() -> None:
    text = '{"apiVersion": "example.com/v1", "kind": "Run", "metadata": {"name": "n"}, "x": 1e999}'
    assert found(text) == [Skipped("example.com/v1 Run")]


def test_a_document_may_be_as_large_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LARGEST", len(QUEUE))
    assert [type(found(text)[0]) for text in (QUEUE, QUEUE + "\n")] == [Added, ManifestError]


def test_json_is_read_as_json() -> None:
    """YAML knows no pairs of surrogates."""
    version = "scheduling.volcano.sh/v1beta1"
    metadata = '{"name": "q", "labels": {"a": "\\ud83c\\udf0b"}}'
    one = f'{{"apiVersion": "{version}", "kind": "Queue", "metadata": {metadata}}}'
    for text in (one, f"[{one}]", f"\n {one}"):
        (queue,) = found(text)
        assert isinstance(queue, Added)
        assert queue.object.metadata.labels == {"a": "\U0001f30b"}


def test_what_cannot_be_read_at_all_is_named_by_its_kind() -> None:
    (error,) = parse(Document(b'{"kind": "Queue", "metadata": {"name": "\xff"}}'), count())
    assert isinstance(error, ManifestError)
    assert (error.object, error.path) == ("Queue", "apiVersion")


def names(text: str) -> list[str]:
    return [one.object.metadata.name for one in found(text) if isinstance(one, Added)]


def test_an_object_that_asks_for_a_generated_name_gets_one_the_same_each_time() -> None:
    body = "{apiVersion: v1, kind: Pod, metadata: {generateName: train-}, spec: {containers: []}}"
    text = f"{body}\n---\n{body}\n---\n{{apiVersion: v1, kind: List, items: [{body}, {body}]}}"
    generated = names(text)
    assert len(set(generated)) == 4
    assert generated == names(text)
    assert all(re.fullmatch("train-[b-z2-9]{5}", name) for name in generated)
    long = body.replace("train-", "a" * 70)
    assert [len(name) for name in names(long)] == [63]


@pytest.mark.parametrize("metadata", ["{}", "{generateName: ''}", "{generateName: 7}", "7"])
def test_an_object_without_a_name_that_asks_for_none_is_refused(metadata: str) -> None:
    [one] = found(f"{{apiVersion: v1, kind: Pod, metadata: {metadata}, spec: {{containers: []}}}}")
    assert isinstance(one, ManifestError)


def test_fields_that_a_kind_has_not_are_told_of_an_object_under_its_generated_name() -> None:
    queue = QUEUE.replace("{name: q}", "{generateName: q-}, spec: {wieght: 2}")
    read, ignored = found(queue)
    assert isinstance(read, Added)
    assert isinstance(ignored, Ignored)
    assert str(ignored.error).startswith(f"Queue {read.object.metadata.name}, spec.wieght")


def test_a_list_says_what_its_items_leave_out() -> None:
    text = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: QueueList, items: [{metadata: {name: q}}, KIND]}"
    first, second = found(text.replace("KIND", "{apiVersion: v1, kind: Namespace, metadata: {name: n}}"))
    assert isinstance(first, Added)
    assert isinstance(second, Added)
    assert (first.kind, second.kind) == ("Queue", "Namespace")


def wholes(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    (tmp_path / "f").write_text(text)
    return list(whole_objects(tmp_path / "f"))


def test_objects_are_given_as_they_are_written_those_of_lists_one_by_one(tmp_path: Path) -> None:
    made = wholes(tmp_path, f"{nested(2)}\n---\n# nothing\n---\n{{apiVersion: x/v1, kind: Odd, items: [1]}}\n")
    assert [one["kind"] for one in made] == ["Queue", "Odd"]
    assert made[1]["items"] == [1], "a kind of its own, whatever it calls its parts"
    assert wholes(tmp_path, "{apiVersion: v1, kind: List}")[0]["kind"] == "List"


@pytest.mark.parametrize(
    "text", ["{kind: Queue}", "{apiVersion: v1}", "- 1", "{apiVersion: v1, kind: List, items: [1]}"]
)
def test_what_is_no_object_is_named_by_file_and_document(text: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="a document without apiVersion and kind") as told:
        wholes(tmp_path, f"{QUEUE}\n---\n{text}\n")
    assert (told.value.file, told.value.document) == (str(tmp_path / "f"), 2)


def test_text_that_is_no_text_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff\xfe\xfd: 1\n")
    with pytest.raises(ManifestError) as told:
        list(whole_objects(tmp_path / "f"))
    assert told.value.document == 1
    [problem] = parse(Document(b"\xff\xfe\xfd: 1\n", 1), count())
    assert isinstance(problem, ManifestError)
