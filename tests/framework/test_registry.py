"""Where plugins and actions come from."""

from __future__ import annotations

import pickle
import sys
from importlib.metadata import EntryPoint

import pytest

from stromboli.builtin import builtin_registry
from stromboli.errors import ConfigError, PluginError
from stromboli.framework.config import registry as registry_module
from stromboli.framework.config.config import PluginOption
from stromboli.framework.config.registry import Registry
from stromboli.plugin import Plugin, arg
from stromboli.plugins.gang import Gang
from tests.acceptance.bench import Bench, conf, loaded

ZONE = """
from __future__ import annotations
from dataclasses import dataclass
from stromboli.plugin import Plugin, arg, predicate

@dataclass
class Helper:
    value: int

class Zone(Plugin):
    name = "zone"
    weight = arg("zone.weight", int, 1)

    @predicate
    def same(self, task, node):
        return None
"""
NEW = """
from stromboli.plugin import Plugin

class Made(Plugin):
    name = "made"

def New(arguments):
    plugin = Made()
    plugin.given = dict(arguments)
    return plugin
"""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    yield write
    for name in [name for name in sys.modules if name.startswith("_stromboli_plugin_")]:
        del sys.modules[name]


def built(registry, name, arguments):
    return vars(registry.build(name, arguments))


def empty():
    return Registry({}, {})


def test_built_ins_are_imported_when_asked_for(write, monkeypatch, tmp_path):
    write("lazy_built_in.py", ZONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry({"zone": "lazy_built_in:Zone"}, {"allocate": "lazy_built_in:Helper"})
    assert (registry.plugin_names, registry.action_names) == (("zone",), ("allocate",))
    assert "lazy_built_in" not in sys.modules
    assert built(registry, "zone", {"zone.weight": 3})["weight"] == 3
    assert registry.action("allocate").__name__ == "Helper"
    del sys.modules["lazy_built_in"]


def test_a_file_with_a_class(write):
    registry = empty()
    assert registry.add_file(write("anything.py", ZONE)) == ("zone",)
    assert built(registry, "zone", {"zone.weight": 2})["weight"] == 2
    assert registry.plugin_class("zone").name == "zone"


def test_a_file_with_a_function(write):
    registry = empty()
    assert registry.add_file(write("made.py", NEW)) == ("made",)
    assert built(registry, "made", {"a": 1})["given"] == {"a": 1}
    assert registry.plugin_class("made") is None


def test_a_directory_in_the_order_of_names(write, tmp_path):
    write("z.py", ZONE)
    write("made.py", NEW)
    write("notes.txt", "no plugin")
    registry = empty()
    assert registry.add_directory(tmp_path) == ("made", "zone")


def test_two_files_of_one_name_live_side_by_side(write, tmp_path):
    (tmp_path / "other").mkdir()
    registry = empty()
    registry.add_file(write("p.py", ZONE))
    registry.add_file(write("other/p.py", ZONE.replace('"zone"', '"region"')))
    assert [registry.build(name, {}).name for name in ("zone", "region")] == ["zone", "region"]


def test_entry_points_are_known_before_they_are_loaded(monkeypatch, write, tmp_path):
    write("installed_plugin.py", ZONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [EntryPoint("zone", "installed_plugin:Zone", "stromboli.plugins")]
    monkeypatch.setattr(registry_module, "entry_points", lambda group: points if group == "stromboli.plugins" else [])
    registry = empty()
    assert registry.add_entry_points() == ("zone",)
    assert "installed_plugin" not in sys.modules
    assert registry.build("zone", {}).name == "zone"
    del sys.modules["installed_plugin"]


def test_files_named_in_a_configuration(write, tmp_path):
    write("z.py", ZONE)
    registry = empty()
    registry.add_paths((PluginOption("gang"), PluginOption("zone", path="z.py")), tmp_path)
    assert registry.plugin_names == ("zone",)
    with pytest.raises(PluginError, match=r"plugin zune: z.py has no plugin of that name"):
        registry.add_paths((PluginOption("zune", path="z.py"),), tmp_path)


def test_a_later_registration_replaces_the_earlier():
    class Mine(Plugin):
        name = "gang"
        size = arg("gang.size", int, 1)

    registry = Registry({"gang": "nowhere:Gang"}, {})
    registry.add(Mine)
    assert built(registry, "gang", {})["size"] == 1


def test_a_file_that_fails_leaves_no_module_behind(write):
    before = set(sys.modules)
    with pytest.raises(PluginError):
        empty().add_file(write("bad.py", "raise ValueError"))
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", r"cannot import .*bad\.py: SyntaxError"),
        ("import nowhere_at_all", r"cannot import .*bad\.py: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("x = 1", r"bad\.py has neither a named Plugin subclass nor a function New"),
        (
            ZONE.replace("(self, task, node)", "(self, task)"),
            r"cannot import .*bad\.py: PluginError: plugin zone, point predicate: hook same: takes \(task\)",
        ),
    ],
)
def test_a_bad_file_is_named(write, text, message):
    with pytest.raises(PluginError, match=message):
        empty().add_file(write("bad.py", text))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (NEW.replace('"made"', '"maid"'), "New gave maid; a plugin must bear the name it is configured under"),
        ("def New(arguments): return 5", "New gave int"),
        ("def New(arguments): raise KeyError('x')", "cannot be made: KeyError: 'x'"),
    ],
)
def test_what_new_gives_is_checked(write, source, message):
    registry = empty()
    registry.add_file(write("made.py", source))
    with pytest.raises(PluginError, match=message):
        registry.build("made", {})


class Own(Plugin):
    """Would overwrite what the scheduler remembers of queues."""

    name = "stromboli/queues"


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda r: r.factory("gagn"), PluginError, r"Failed to get plugin gagn\. Did you mean 'gang'\?"),
        (lambda r: r.build("broken", {}), PluginError, "cannot import nowhere_at_all:Gang: ModuleNotFoundError"),
        (lambda r: r.build("wrong", {}), PluginError, "json.decoder:NaN is neither a Plugin subclass nor a module"),
        (lambda r: r.action("alocate"), ConfigError, "failed to find Action alocate; did you mean 'allocate'"),
        (lambda r: r.add_file("nowhere.py"), PluginError, r"nowhere\.py is not a Python file"),
        (lambda r: r.add_directory("nowhere"), PluginError, "nowhere is not a directory of plugins"),
        (lambda r: r.add(Plugin), PluginError, "has no name"),
        (lambda r: (r.add(Own), r.build(Own.name, {})), PluginError, "names that begin with 'stromboli/' are"),
    ],
)
def test_what_is_not_there(attempt, error, message):
    table = {"gang": "a:B", "broken": "nowhere_at_all:Gang", "wrong": "json.decoder:NaN"}
    with pytest.raises(error, match=message):
        attempt(Registry(table, {"allocate": "a:B"}))


def test_other_spellings_of_actions():
    assert Registry({}, {"gangpreempt": "fractions:Fraction"}).action("gangPreempt").__name__ == "Fraction"


def test_a_module_in_the_table_may_have_new(monkeypatch, write, tmp_path):
    write("module_with_new.py", NEW)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert built(Registry({"made": "module_with_new"}, {}), "made", {"b": 2})["given"] == {"b": 2}
    del sys.modules["module_with_new"]


@pytest.mark.parametrize(("compat", "left"), [(False, ["gang"]), (True, ["gang", "gagn"])])
def test_a_lenient_reading_leaves_out_unknown_plugins_where_no_session_may_tell_of_them(compat, left):
    text = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: gagn}]}]'
    config = builtin_registry().configured_by(text, "f.yaml", lenient=True, compat=compat)
    assert [option.name for option in config.plugins()] == left


def test_a_configuration_is_read_strictly_and_decides_in_our_way_unless_it_is_asked_otherwise():
    text = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]'
    registry = builtin_registry()
    assert registry.configured_by(text, "f.yaml") == registry.configured_by(text, "f.yaml", lenient=False, compat=False)
    assert registry.configured_by(text, "f.yaml") != registry.configured_by(text, "f.yaml", compat=True)
    with pytest.raises(ConfigError, match="gagn"):
        registry.configured_by(text.replace("gang", "gagn"), "f.yaml")


def test_which_of_our_plugins_answer_otherwise_as_time_goes_by():
    registry = builtin_registry()
    known = {name: registry.build(name, {}) for name in registry.plugin_names}
    assert {name for name, plugin in known.items() if plugin.depends_on_time} == {
        "cdp", "deviceshare", "extender", "rescheduling", "sla", "tdm", "usage",
    }  # fmt: skip


@pytest.mark.parametrize("compat", [False, True])
def test_a_session_tells_of_plugins_that_it_lacks(compat):
    bench = Bench([], conf("gang"))
    bench.config = loaded(conf("gang gagn"), bench.registry, compat=compat, lenient=True)
    assert [text for text in bench.cycle().inconsistencies if "gagn" in text] != []


def test_a_registry_that_is_handed_over_has_the_same_plugins_in_the_same_order(write):
    registry = builtin_registry()
    registry.add_file(write("zone.py", ZONE))
    registry.add_file(write("new.py", NEW))
    replaced = registry.factory("zone")
    handed = pickle.dumps(registry)
    for name in [name for name in sys.modules if name.startswith("_stromboli_plugin_")]:
        del sys.modules[name]  # as in a process that has not imported them
    again = pickle.loads(handed)
    assert again.plugin_names == registry.plugin_names
    assert again.factory("zone") is not replaced
    assert again.build("zone", {"zone.weight": 3}).weight == 3
    assert again.factory("new")({"a": 1}).given == {"a": 1}


def test_a_plugin_that_replaced_one_of_a_file_is_handed_over(write):
    registry = builtin_registry()
    registry.add_file(write("gang.py", ZONE.replace('"zone"', '"gang"')))
    registry.add(Gang)
    assert pickle.loads(pickle.dumps(registry)).factory("gang") is Gang
