"""Files and directories to events."""

from __future__ import annotations

import io
import json
import sys
import time
from itertools import count

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.cluster.decoding.validate import check
from stromboli.cluster.events import Added, Modified
from stromboli.cluster.files import documents
from stromboli.cluster.files.reader import Origin, Read, load, read
from stromboli.cluster.files.yaml_values import load as load_yaml
from stromboli.cluster.kinds import KINDS
from stromboli.cluster.objects import from_value
from stromboli.errors import ManifestError
from stromboli.model.resources.axes import Axes
from tests.cluster.corpus.fields import SOUND, sound


def dumped(value):
    return yaml.dump(value, Dumper=yaml.CSafeDumper)


def doc(kind="Pod", name="p", **more):
    return dumped(sound(kind, name) | more)


def names(found):
    return [str(each) if isinstance(each, ManifestError) else each.event.object.metadata.name for each in found]


def taken(*paths, **options):
    """All that is read, typed loosely."""
    return list(read(paths, **options))


def written(tmp_path, text, name="objects.yaml"):
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


# -- Forms -----------------------------------------------------------------------------------------------------------


FORMS = {
    "documents": doc(name="a") + "---\n" + doc(name="b"),
    "leading and empty documents": "---\n# nothing\n---\n" + doc(name="a") + "---\n---\n" + doc(name="b") + "---\n",
    "byte order mark": "\ufeff" + doc(name="a") + "---\n" + doc(name="b"),
    "Windows line ends": (doc(name="a") + "---\n" + doc(name="b")).replace("\n", "\r\n"),
    "YAML list": dumped({"apiVersion": "v1", "kind": "List", "items": [sound("Pod", "a"), sound("Pod", "b")]}),
    "bare YAML list": dumped([sound("Pod", "a"), sound("Pod", "b")]),
    "JSON list": json.dumps({"apiVersion": "v1", "kind": "List", "items": [sound("Pod", "a"), sound("Pod", "b")]}),
    "bare JSON list": json.dumps([sound("Pod", "a"), sound("Pod", "b")], indent=1),
    "JSON lines": json.dumps(sound("Pod", "a")) + "\n\n" + json.dumps(sound("Pod", "b")) + "\n",
    "JSON documents": json.dumps(sound("Pod", "a"), indent=2) + "\n---\n" + json.dumps(sound("Pod", "b")),
    "a typed list": json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [
        {"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": None}]}),
    "lists inside lists": json.dumps([[sound("Pod", "a")], [sound("Pod", "b")]]),
    "flow YAML": "[{apiVersion: v1, kind: Pod, metadata: {name: a}}, {apiVersion: v1, kind: Pod, metadata: {name: b}}]",
    "anchors": "- &a {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- {<<: *a, metadata: {name: b}}\n",
    "a directive": "%YAML 1.1\n---\n" + doc(name="a") + "...\n---\n" + doc(name="b"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms(form, tmp_path):
    found = taken(written(tmp_path, FORMS[form]))
    assert names(found) == ["a", "b"]
    assert all(isinstance(each.event, Added) and each.event.kind == "Pod" for each in found)


def test_all_kinds_in_all_forms_give_the_same_objects(tmp_path):
    objects = [sound(kind) for kind in SOUND]
    texts = ["---\n".join(map(yaml.safe_dump, objects)), json.dumps(objects), "\n".join(map(json.dumps, objects))]
    first, *others = [[each.event for each in taken(written(tmp_path, text))] for text in texts]
    assert [event.kind for event in first] == list(SOUND)
    assert [type(event.object) for event in first] == [KINDS[kind].type for kind in SOUND]
    assert others == [first, first]


@pytest.mark.parametrize("version", KINDS["UpstreamPodGroup"].api_versions)
def test_a_pod_group_of_kubernetes_own_is_a_kind_of_its_own(version, tmp_path):
    text = f"apiVersion: {version}\nkind: PodGroup\nmetadata: {{name: g}}\n"
    spec = "spec: {schedulingPolicy: {gang: {minCount: 3}}}\n"
    (found,) = taken(written(tmp_path, text + spec))
    assert (found.event.kind, found.event.object.spec.scheduling_policy.gang.min_count) == ("UpstreamPodGroup", 3)


def test_nulls_count_as_absent(tmp_path):
    text = """
apiVersion: v1
kind: Pod
metadata: {name: p, creationTimestamp: null, labels: null, annotations: {a: null, b: c}, ownerReferences: [null]}
spec:
  affinity: null
  containers: [{name: c, resources: null, ports: null}]
  nodeName: ~
status:
"""
    as_json = json.dumps(yaml.load(text, yaml.CSafeLoader))
    for each in (text, as_json):
        (found,) = taken(written(tmp_path, each))
        pod = found.event.object
        assert (pod.metadata.labels, pod.metadata.annotations, pod.metadata.owner_references) == ({}, {"b": "c"}, ())
        assert (pod.spec.node_name, pod.spec.affinity, pod.status.phase) == ("", None, "")
        assert pod.spec.containers[0].name == "c"


def test_versions_that_are_read(tmp_path):
    text = "---\n".join(
        doc("Queue", version, apiVersion=f"scheduling.volcano.sh/{version}") for version in ("v1beta1", "v1alpha1")
    )
    assert names(read([written(tmp_path, text)])) == ["v1beta1", "v1alpha1"]


def test_kinds_that_are_not_read_are_counted(tmp_path):
    others = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": 5},
        {"apiVersion": "apps/v1", "kind": "ControllerRevision"},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"}},
        {"kind": "Thing"},
    ]
    objects = read([written(tmp_path, json.dumps([*others, sound("Pod", "p")]))])
    assert names(objects) == ["p"]
    assert objects.skipped == {"v1 Secret": 2, "apps/v1 ControllerRevision": 1, "batch/v1 CronJob": 1, "Thing": 1}
    assert objects.count == 1


# -- Files -----------------------------------------------------------------------------------------------------------


def test_directories_are_read_by_name_and_only_what_looks_like_a_manifest(tmp_path):
    for name in ("b.yaml", "a.yml", "sub/c.json", "sub/deep/d.yaml", "README.md", "x.yaml.bak"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(sound("Pod", name.replace("/", "-"))))
    assert names(read([tmp_path])) == ["a.yml", "b.yaml", "sub-c.json", "sub-deep-d.yaml"]
    assert names(read([tmp_path / "README.md"])) == ["README.md"]


def test_two_files_with_one_object_of_a_generated_name_are_two_objects(tmp_path):
    text = dumped(sound("Pod", "p") | {"metadata": {"generateName": "p-"}})
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(text)
    found = names(read([tmp_path]))
    assert len(set(found)) == 2
    assert all(name.startswith("p-") for name in found)
    assert found == names(read([tmp_path]))


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(doc(name="a").encode())))
    (found,) = taken("-")
    assert found.origin == Origin("-", 1)
    assert str(found.origin) == "-, document 1"


def test_files_that_are_not_there_or_hold_nothing(tmp_path):
    (tmp_path / "none").mkdir()
    empty, comments = written(tmp_path, "", "empty.yaml"), written(tmp_path, "# a\n---\n\n", "comments.yaml")
    found = list(read([tmp_path / "missing.yaml", empty, comments, tmp_path / "none", written(tmp_path, doc())]))
    assert names(found) == [
        f"{tmp_path}/missing.yaml: cannot be read: No such file or directory",
        f"{empty}: holds no object",
        f"{comments}: holds no object",
        f"{tmp_path}/none: cannot be read: there is no .yaml, .yml, .json file in it",
        "p",
    ]


def test_messages_name_file_document_object_and_field(tmp_path):
    file = written(tmp_path, doc(name="a") + "---\n" + doc("Node", "n", status={"allocatable": {"cpu": []}}))
    _, problem = read([file])
    assert str(problem) == (
        f"{file}, document 2, Node n, status.allocatable.cpu: expected a whole number or a number or a text, got a list"
    )


def test_lines_are_those_of_the_file(tmp_path):
    file = written(tmp_path, "---\n" * 3 + "a: b: c\n")
    (problem,) = read([file])
    assert str(problem) == f"{file}, document 1: is not YAML: mapping values are not allowed in this context (line 4)"


def test_the_first_problem_is_raised_when_strict(tmp_path):
    file = written(tmp_path, doc(name="a") + "---\n5\n---\n" + doc(name="b"))
    objects = iter(read([file], strict=True))
    assert names([next(objects)]) == ["a"]
    with pytest.raises(ManifestError, match="must be a mapping"):
        next(objects)


def test_of_two_objects_of_one_name_the_later_counts(tmp_path):
    text = (
        doc("Queue", "q", spec={"weight": 1})
        + "---\n"
        + doc("Pod", "q")
        + "---\n"
        + doc("Queue", "q", spec={"weight": 2})
    )
    file = written(tmp_path, text)
    found = taken(file)
    assert names(found)[:2] == ["q", "q"]
    assert str(found[2]) == (
        f"{file}, document 3, Queue q, metadata.name: stood already in {file}, document 1; the later one is used"
    )
    assert found[3].event.object.spec.weight == 2
    assert isinstance(found[3].event, Modified)


def test_equal_names_in_other_namespaces_are_others(tmp_path):
    objects = [sound("Pod", "p"), sound("Pod", "p")]
    objects[1]["metadata"]["namespace"] = "b"
    assert names(read([written(tmp_path, json.dumps(objects))])) == ["p", "p"]


def test_progress(tmp_path):
    told = []
    one = written(tmp_path, "\n".join(json.dumps(sound("Pod", f"p{i}")) for i in range(2500)), "one.json")
    two = written(tmp_path, doc(), "two.yaml")
    objects = read([one, two], progress=lambda file, count: told.append((file, count)))
    assert sum(1 for _ in objects) == 2501
    assert told == [(str(one), 0), (str(one), 1000), (str(one), 2000), (str(two), 2500)]


def test_what_apply_refuses_gets_its_place():
    def apply(event):
        raise ManifestError("no", path="spec")

    event = Added("Pod", from_value("Pod", sound("Pod", "p")))
    problems = list(load([Read(Origin("f.yaml", 3), event), event, ManifestError("before")], apply))
    assert list(map(str, problems)) == [
        "f.yaml, document 3, Pod default/p, spec: no",
        "Pod default/p, spec: no",
        "before",
    ]


# -- YAML ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("1e3", 1000.0),
        ("0o17", 15),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!null ''", None),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("{1: a, true: b, null: c, ~: d}", {"1": "a", "true": "b", "null": "c", "~": "d"}),
        ("[&x {a: 1}, *x]", [{"a": 1}, {"a": 1}]),
        ("{k: &x name, *x : 1}", {"k": "name", "name": 1}),
        (
            "[&a {x: 1, y: 1}, &b {x: 2, z: 2}, {<<: [*a, *b], y: 3}]",
            [{"x": 1, "y": 1}, {"x": 2, "z": 2}, {"x": 1, "y": 3, "z": 2}],
        ),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("9" * 500, "9" * 500),
    ],
)
def test_yaml_values(text, value):
    assert load_yaml(text) == value


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc1. ~<", max_size=5).filter(lambda key: key != "<<"), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_what_json_writes_yaml_reads(value):
    text = json.dumps(value)
    assert load_yaml(text) == json.loads(text)


# -- Whatever comes --------------------------------------------------------------------------------------------------


NAMES = st.sampled_from([
    "apiVersion", "kind", "metadata", "spec", "status", "name", "namespace", "labels", "annotations", "containers",
    "resources", "requests", "limits", "cpu", "memory", "minMember", "queue", "parent", "tasks", "replicas", "template",
    "members", "selector", "regexMatch", "pattern", "tier", "items", "value", "weight", "allocatable",
    "creationTimestamp",
    "volcano.sh/oversubscription-cpu", "minAvailable", "partitionPolicy", "partitionSize", "containerStatuses",
])  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
    | st.sampled_from(["1Gi", "-1", "500m", "1e400", "(", "2024-01-01T00:00:00Z", "50%", "List", "v1", *KINDS])
)  # fmt: skip
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6))


def problem_of(kind, whole):
    try:
        check(from_value(kind, whole), TemplateStore(Axes()))
    except ManifestError as error:
        return error
    return None


def test_many_merges_cost_no_more_than_what_they_merge():
    keys = ",".join(f"k{number}: 1" for number in range(20_000))
    began = time.process_time()
    load_yaml(f"a: &a {{x: 1}}\nb: {{{keys}, <<: [{','.join(['*a'] * 20_000)}]}}\n")
    assert time.process_time() - began < 5


def test_what_is_merged_first_counts_most_and_what_is_written_more():
    found = load_yaml("m: &m {a: 1, b: 1, c: 1}\nn: &n {b: 2, c: 2, d: 2}\nr: {c: 0, <<: [*m, *n]}\n")
    assert isinstance(found, dict)
    assert found["r"] == {"a": 1, "b": 1, "c": 0, "d": 2}


@pytest.mark.law("broken manifests give errors, never a crash")
@given(st.sampled_from(list(SOUND)), st.dictionaries(NAMES, TREES, max_size=5))
def test_an_object_is_used_or_refused(kind, tree):
    whole = {**sound(kind), **tree}
    problem = problem_of(kind, whole)
    assert problem is None or (problem.problem and kind in problem.object)


@pytest.mark.law("broken files give errors, never a crash")
@given(
    st.binary(max_size=200)
    | st.text("{}[]:-,&*<>!|'\"#%@ \n\tab01\0é", max_size=60).map(str.encode)
    | TREES.map(repr).map(str.encode)
)
def test_any_bytes_are_used_or_refused(data):
    for document in documents.split(data):
        for found in documents.parse(document, count()):
            assert isinstance(found, (Added, documents.Skipped, ManifestError))


def test_the_number_of_ignored_fields_that_are_noted_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("stromboli.cluster.files.reader.MOST_IGNORED", 2)
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    found = read([written(tmp_path, json.dumps({**queue, "spec": {"one": 1, "two": 2, "three": 3}}))])
    assert len(list(found)) == 1
    assert [error.path for error in found.ignored] == ["spec.one", "spec.two"]
