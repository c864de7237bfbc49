"""Broken input: each mistake is reported by object and field, and sound objects next to it are delivered."""

from __future__ import annotations

import json

import pytest
import yaml

from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.cluster.decoding.validate import check
from stromboli.cluster.files import documents, reader
from stromboli.cluster.files.scenario import decode_scenario
from stromboli.cluster.references import References
from stromboli.errors import ConfigError, ScenarioError
from stromboli.framework.config.config import load_config
from stromboli.model.resources.axes import Axes
from tests.cluster.corpus.configurations import CONFIGURATIONS
from tests.cluster.corpus.fields import FIELDS, MISSING, SOUND, broken, sound
from tests.cluster.corpus.scenarios import SCENARIOS
from tests.cluster.corpus.texts import TEXTS
from tests.cluster.corpus.together import TOGETHER

BESIDE = [sound(kind, "beside") for kind in SOUND if kind != "PodDisruptionBudget"]
LONGEST_MESSAGE = 1000


def delivered(path):
    """(``Kind ns/name`` of all sound objects, all problems) of a file."""
    store, names, references = TemplateStore(Axes()), [], References()

    def apply(event):
        check(event.object, store)
        references.see(event)
        names.append(f"{event.kind} {event.object.metadata.name}")

    problems = list(reader.load(reader.read([path]), apply))
    return names, [*problems, *references.problems()]


def as_yaml(objects):
    return "---\n".join(yaml.dump(each, Dumper=yaml.CSafeDumper, allow_unicode=True) for each in objects).encode()


def as_list(objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()


def as_lines(objects):
    return "\n".join(json.dumps(each) for each in objects).encode()


def case_name(case):
    kind, field, value, _ = case
    return f"{kind} {field} = {'missing' if value is MISSING else repr(value)[:30]}"


def test_the_corpus_is_large_enough():
    assert len(FIELDS) + len(TEXTS) + len(TOGETHER) + len(SCENARIOS) + len(CONFIGURATIONS) >= 100
    assert len({case_name(case) for case in FIELDS}) == len(FIELDS)


def test_what_is_called_sound_is_sound(tmp_path):
    (tmp_path / "all.yaml").write_bytes(as_yaml([sound(kind, kind.lower()) for kind in SOUND]))
    names, problems = delivered(tmp_path)
    assert not problems
    assert names == [f"{kind} {kind.lower()}" for kind in SOUND]


@pytest.mark.parametrize("write", [as_yaml, as_list, as_lines])
@pytest.mark.parametrize("case", FIELDS, ids=case_name)
def test_a_wrong_field(case, write, tmp_path):
    kind, field, value, named = case
    if (isinstance(value, float) and value != value) or value == float("inf"):
        write = as_yaml  # JSON has no such numbers
    file = tmp_path / "objects.yaml"
    file.write_bytes(write([BESIDE[0], broken(kind, field, value), *BESIDE[1:]]))
    names, problems = delivered(file)
    assert names == [f"{each['kind']} beside" for each in BESIDE]
    (problem,) = problems
    assert problem.path.endswith(named)
    assert problem.file == str(file)
    assert problem.document == (1 if write is as_list else 2)
    assert (kind if field != "kind" else "") in problem.object
    if not field.startswith("metadata"):
        assert "broken" in problem.object
    assert len(str(problem)) < LONGEST_MESSAGE


@pytest.mark.parametrize(("name", "text", "said"), TEXTS, ids=[name for name, _, _ in TEXTS])
def test_a_document_that_cannot_be_read(name, text, said, tmp_path):
    file = tmp_path / "objects.yaml"
    before, after = as_yaml(BESIDE[:3]), as_yaml(BESIDE[3:])
    file.write_bytes(before + b"---\n" + text + b"\n---\n" + after)
    first_line = before.count(b"\n") + 1
    said = said.replace("line 4", f"line {first_line + 4}")
    names, problems = delivered(file)
    assert names == [f"{each['kind']} beside" for each in BESIDE]
    assert problems
    for problem in problems:
        assert said in str(problem)
        assert (problem.file, problem.document) == (str(file), 4)
        assert len(str(problem)) < LONGEST_MESSAGE


@pytest.mark.parametrize(("name", "objects", "subject", "field", "said"), TOGETHER, ids=[case[0] for case in TOGETHER])
def test_objects_that_do_not_go_together(name, objects, subject, field, said, tmp_path):
    (tmp_path / "objects.json").write_bytes(as_list([*objects, *BESIDE]))
    names, problems = delivered(tmp_path)
    assert len(names) == len(objects) + len(BESIDE)
    (problem,) = problems
    assert (problem.object, problem.path.endswith(field)) == (subject, True)
    assert said in problem.problem


@pytest.mark.parametrize(("name", "text", "part"), SCENARIOS, ids=[name for name, _, _ in SCENARIOS])
def test_a_scenario_that_is_refused(name, text, part):
    with pytest.raises(ScenarioError) as caught:
        decode_scenario(text, "cases.jsonl")
    assert caught.value.path.startswith(part)
    assert str(caught.value).startswith(f"cases.jsonl: {part}")
    assert len(str(caught.value)) < LONGEST_MESSAGE


@pytest.mark.parametrize("case", [case for case in FIELDS if case[1] not in ("apiVersion", "kind")], ids=case_name)
def test_a_wrong_field_in_a_scenario(case):
    kind, field, value, named = case
    if isinstance(value, float) and (value != value or value == float("inf")):
        value = {}  # JSON has no such numbers
    text = json.dumps({"pods": [], _list_of(kind): [sound(kind), broken(kind, field, value), sound(kind, "after")]})
    store, names = TemplateStore(Axes()), []

    def apply(event):
        check(event.object, store)
        names.append(event.object.metadata.name)

    (problem,) = reader.load(decode_scenario(text).objects(), apply)
    assert names[:2] == ["sound", "after"]
    assert problem.path.endswith(named)
    assert kind in problem.object


def _list_of(kind):
    return {**{each: each[0].lower() + each[1:] + "s" for each in SOUND}, "PriorityClass": "priorityClasses"}[kind]


@pytest.mark.parametrize(("name", "text", "line"), CONFIGURATIONS, ids=[name for name, _, _ in CONFIGURATIONS])
def test_a_configuration_that_is_refused(name, text, line):
    with pytest.raises(ConfigError) as caught:
        load_config(text, source="volcano.conf", known_plugins=("gang",), known_actions=("enqueue", "allocate"))
    assert caught.value.line == line
    assert str(caught.value).startswith("volcano.conf")


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LARGEST", 1000)
    (tmp_path / "objects.yaml").write_bytes(as_yaml([BESIDE[0], sound("Pod", "p") | {"x": "y" * 1000}, BESIDE[1]]))
    names, problems = delivered(tmp_path)
    assert len(names) == 2
    assert ["larger than 1000 bytes" in str(problem) for problem in problems] == [True]


def test_ten_million_characters_in_an_annotation_are_fine(tmp_path):
    pod = broken("Pod", "metadata.annotations", {"note": "x" * 10_000_000}, "long")
    (tmp_path / "objects.yaml").write_bytes(as_yaml([pod]))
    assert delivered(tmp_path) == (["Pod long"], [])
