"""The configuration file: the examples of the documents, switches, mistakes strict and lenient."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import ConfigError
from stromboli.framework.config.config import DEFAULT_CONFIG, Config, PluginOption, load_config
from stromboli.framework.extension.points import POINTS, SWITCHES

PLUGINS = (
    "gang", "priority", "conformance", "overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack", "sla",
)  # fmt: skip
ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim")
HEAD = 'actions: "enqueue, allocate, backfill"\n'


def load(text, **options):
    return load_config(text, source="conf.yaml", known_plugins=PLUGINS, known_actions=ACTIONS, **options)


def one(text, **options):
    ((option,),) = load(HEAD + text, **options).tiers
    return option


def names(config):
    return [[option.name for option in tier] for tier in config.tiers]


Y1 = """
tiers:
- plugins: [{name: gang}, {name: priority}]
- plugins: [{name: drf}, {name: proportion}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
Y2 = """
tiers:
- plugins: [{name: gang, enabledJobOrder: true, enabledJobReady: true,
    enabledJobPipelined: true, enabledPreemptable: true}]
"""
Y3 = """
tiers:
- plugins:
  - name: nodeorder
    arguments: {leastrequested.weight: 1, mostrequested.weight: 0, nodeaffinity.weight: 2, podaffinity.weight: 2,
      balancedresource.weight: 1, tainttoleration.weight: 3, imagelocality.weight: 1, podtopologyspread.weight: 2}
"""
Y4 = """
tiers:
- plugins:
  - name: predicates
    arguments: {predicate.NodeAffinityEnable: true, predicate.NodePortsEnable: true,
      predicate.TaintTolerationEnable: true, predicate.PodAffinityEnable: true,
      predicate.PodTopologySpreadEnable: true, predicate.CacheEnable: true}
"""
Y5 = """
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - name: drf
  - name: predicates
    arguments:
      predicate.NodeAffinityEnable: true
      predicate.NodeVolumeLimitsEnable: true
      predicate.VolumeZoneEnable: true
      predicate.GPUSharingEnable: true
      predicate.GPUNumberEnable: true
      predicate.ProportionalEnable: true
      predicate.resources: nvidia.com/gpu
      predicate.resources.nvidia.com/gpu.cpu: 4
      predicate.resources.nvidia.com/gpu.memory: 8
  - name: proportion
  - name: nodeorder
"""
Y6 = """
tiers:
- plugins: [{name: sla, arguments: {sla-waiting-time: "2h30m"}}]
"""
Y7 = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: gang}]
configurations:
- name: preempt
  arguments: {enableTopologyAwarePreemption: true, topologyAwarePreemptWorkerNum: 16, minCandidateNodesPercentage: 10,
    minCandidateNodesAbsolute: 1, maxCandidateNodesAbsolute: 100}
"""


def test_y1_three_tiers_in_their_order():
    """S0-40."""
    config = load(HEAD + Y1)
    assert names(config) == [["gang", "priority"], ["drf", "proportion"], ["predicates", "nodeorder"]]
    assert [option.name for option in config.plugins()] == [name for tier in names(config) for name in tier]
    assert config.actions == ("enqueue", "allocate", "backfill")


@pytest.mark.parametrize("value", [True, False])
def test_y2_the_other_spelling_of_switches_acts(value):
    """S0-41."""
    option = one(Y2.replace("enabledPreemptable: true", f"enabledPreemptable: {str(value).lower()}"))
    assert option.enabled(POINTS["preemptable"]) is value
    assert option.enabled(POINTS["job_order"])
    written = option.written["enablePreemptable"]
    assert (written.spelling, written.line, written.value) == ("enabledPreemptable", 5, value)


def test_y2_the_reference_ignores_the_other_spelling():
    text = Y2.replace("enabledPreemptable: true", "enabledPreemptable: false")
    config = load(HEAD + text, compat=True)
    assert config.tiers[0][0].enabled(POINTS["preemptable"])
    assert "unknown key enabledPreemptable in a plugin entry" in [c.text for c in config.complaints]


def test_y3_whole_numbers_stay_whole():
    assert list(one(Y3).arguments.values()) == [1, 0, 2, 2, 1, 3, 1, 2]


def test_y4_truths():
    assert list(one(Y4).arguments.values()) == [True] * 6


def test_y5_arguments_with_names_inside():
    config = load(Y5)
    predicates = config.tiers[1][1]
    assert [len(tier) for tier in config.tiers] == [3, 4]
    assert config.actions == ("reclaim", "allocate", "backfill", "preempt")
    assert predicates.arguments["predicate.resources.nvidia.com/gpu.memory"] == 8
    assert predicates.argument_lines["predicate.resources"] == 15


def test_y6_a_duration_is_a_text():
    assert one(Y6).arguments == {"sla-waiting-time": "2h30m"}


def test_y7_arguments_of_an_action():
    config = load(Y7)
    assert list(config.arguments_of("preempt").values()) == [True, 16, 10, 1, 100]
    assert config.arguments_of("allocate") == {}


def test_the_first_entry_of_an_action_counts():
    text = "configurations: [{name: allocate, arguments: {a: 1}}, {name: allocate, arguments: {a: 2}}]"
    assert load(HEAD + text).arguments_of("allocate") == {"a": 1}


def test_the_built_in_default():
    config = load(DEFAULT_CONFIG)
    assert config.actions == ("enqueue", "allocate", "backfill")
    assert names(config) == [
        ["priority", "gang", "conformance"], ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]  # fmt: skip


# ---- switches


def test_what_is_not_written_is_on():
    """S0-43."""
    option = one("tiers: [{plugins: [{name: gang, enableJobOrder: false}]}]")
    assert not option.enabled(POINTS["job_order"])
    assert option.enabled(POINTS["job_ready"])
    assert {switch for switch, on in option.switches.items() if not on} == {"enableJobOrder", "enabledClusterOrder"}
    assert not option.enable_hierarchy


@pytest.mark.parametrize(
    "switches", ["enableJobOrder: false, enabledJobOrder: true", "enabledJobOrder: true, enableJobOrder: false"]
)
def test_the_spelling_of_the_reference_wins(switches):
    """S0-42."""
    config = load(f"{HEAD}tiers: [{{plugins: [{{name: gang, {switches}}}]}}]")
    assert not config.tiers[0][0].enabled(POINTS["job_order"])
    assert [(c.kind, c.key) for c in config.complaints] == [("tolerated", "enabledJobOrder")]


@pytest.mark.parametrize("switch", [*SWITCHES, "enableHierarchy"])
@pytest.mark.parametrize("value", ["true", "false", "yes", "OFF"])
def test_every_switch_in_both_spellings(switch, value):
    prefix = "enabled" if switch.startswith("enabled") else "enable"
    other = {"enabled": "enable", "enable": "enabled"}[prefix] + switch.removeprefix(prefix)
    for spelling in (switch, other):
        option = one(f"tiers: [{{plugins: [{{name: drf, {spelling}: {value}}}]}}]")
        effective = option.enable_hierarchy if switch == "enableHierarchy" else option.switches[switch]
        assert effective is (value in ("true", "yes"))


def test_an_empty_switch_is_not_written():
    assert one("tiers: [{plugins: [{name: gang, enableJobOrder: }]}]").enabled(POINTS["job_order"])


def test_entries_built_by_hand():
    assert not PluginOption("gang").enabled(POINTS["job_order"])
    assert PluginOption("gang").enabled(POINTS["job_valid"])
    filled = PluginOption.filled("drf", {"a": 1}, enableJobOrder=False, enableHierarchy=True)
    assert (filled.switches["enableJobOrder"], filled.switches["enablePreemptable"]) == (False, True)
    assert (filled.enable_hierarchy, filled.arguments) == (True, {"a": 1})


# ---- actions


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("allocate", ("allocate",)),
        (" enqueue ,allocate,  backfill", ("enqueue", "allocate", "backfill")),
        ("gangPreempt, gangReclaim", ("gangpreempt", "gangreclaim")),
        ("gangpreempt, gangreclaim", ("gangpreempt", "gangreclaim")),
    ],
)
def test_actions(written, expected):
    assert load(f'actions: "{written}"').actions == expected


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("text", "problem", "line", "close"),
    [
        ('tiers: []\nactions: "allocat"', "failed to find Action allocat", 2, "allocate"),
        ('actions: "allocate,"', "failed to find Action (an empty name", 1, ""),
        ("", "failed to find Action (an empty name", 1, ""),
        ("tiers: []", "failed to find Action (an empty name", 1, ""),
        ("actions: [allocate]", "actions, a comma-separated text, must be a text, not a list", 1, ""),
        ("allocate", "the configuration must be a mapping, not 'allocate'", 1, ""),
        ("- a", "the configuration must be a mapping, not a list", 1, ""),
        (HEAD + "tiers: {}", "tiers must be a list, not a mapping", 2, ""),
        (HEAD + "tiers:\n- gang", "a tier must be a mapping, not 'gang'", 3, ""),
        (HEAD + "tiers:\n- plugins: gang", "plugins must be a list, not 'gang'", 3, ""),
        (HEAD + "tiers:\n- plugins:\n  - gang", "a plugin entry must be a mapping, not 'gang'", 4, ""),
        (HEAD + "tiers:\n- plugins:\n  - {name: [gang]}", "name must be a text, not a list", 4, ""),
        (HEAD + "tiers:\n- plugins:\n  - name: gang\n    enableJobOrder: 'true'", "must be true or false", 5, ""),
        (HEAD + "tiers:\n- plugins:\n  - name: gang\n    arguments: [1]", "arguments must be a mapping", 5, ""),
        (HEAD + "metrics: {type: [a]}", "metrics type must be a text, not a list", 2, ""),
        (HEAD + "tiers: [", "not YAML", 2, ""),
    ],
)
def test_what_the_reference_rejects_is_always_refused(text, problem, line, close, lenient):
    with pytest.raises(ConfigError) as caught:
        load(text, lenient=lenient)
    assert problem in caught.value.problem
    assert (caught.value.file, caught.value.line, caught.value.nearest) == ("conf.yaml", line, close)


TWO_SHARES = "tiers:\n- plugins:\n  - name: proportion\n  - {name: drf, enableHierarchy: true}\n"


def test_proportion_and_hierarchical_drf_in_one_tier_conflict():
    with pytest.raises(ConfigError, match=r"conf.yaml:5: proportion and drf with hierarchy enabled conflicts"):
        load(HEAD + TWO_SHARES, lenient=True)
    assert len(load(HEAD + TWO_SHARES, allow_hdrf_with_proportion=True).tiers[0]) == 2
    apart = TWO_SHARES.replace("  - {name: drf", "- plugins:\n  - {name: drf")
    assert names(load(HEAD + apart)) == [["proportion"], ["drf"]]


# ---- mistakes that the reference lives with


@pytest.mark.parametrize(
    ("text", "problem", "line", "close"),
    [
        pytest.param("tiers:\n- plugins:\n  - name: gagn", "unknown plugin gagn", 4, "gang", id="S0-16 plugin"),
        pytest.param("tiers: [{plugins: [{enableJobOrder: true}]}]", "a plugin entry without", 2, "", id="nameless"),
        pytest.param("tierz: []", "unknown key tierz in the configuration", 2, "tiers", id="top-level key"),
        pytest.param(
            "tiers:\n- plugins:\n  - name: gang\n    enablePreemptible: false",
            "unknown key enablePreemptible in a plugin entry", 5, "enablePreemptable", id="switch",
        ),
        pytest.param("tiers: [{plugin: []}]", "unknown key plugin in a tier", 2, "plugins", id="key of a tier"),
        pytest.param(
            "configurations:\n- name: alocate",
            "configuration of an unknown action alocate", 3, "allocate", id="action",
        ),
        pytest.param("configurations: [{nam: allocate}]", "unknown key nam", 2, "name", id="key of a configuration"),
        pytest.param("metrics:\n  adress: x", "unknown key adress in metrics", 3, "address", id="key of metrics"),
        pytest.param("tie-break: random", "tie-break knows first, seeded, not random", 2, "", id="tie-break"),
        pytest.param("compat: vulcano", "compat knows volcano, not vulcano", 2, "volcano", id="compat"),
        pytest.param("metrics: {}\nmetrics: {}", "key metrics stands twice, first in line 2", 3, "", id="twice"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_or_with_leniency_complained_about(text, problem, line, close):
    with pytest.raises(ConfigError) as caught:
        load(HEAD + text)
    assert caught.value.problem.startswith(problem)
    assert (caught.value.file, caught.value.line, caught.value.nearest) == ("conf.yaml", line, close)
    complaints = load(HEAD + text, lenient=True).complaints
    assert (complaints[0].text.startswith(problem), complaints[0].line, complaints[0].nearest) == (True, line, close)
    assert load(HEAD + text, compat=True).compat


def test_an_unknown_plugin_stays_in_a_lenient_list():
    """S0-16: it is skipped when the session opens, the others work."""
    config = load(HEAD + "tiers: [{plugins: [{name: nosuch}, {name: gang}]}]", lenient=True)
    assert names(config) == [["nosuch", "gang"]]


def test_a_plugin_from_a_file_needs_not_be_known():
    option = one("tiers: [{plugins: [{name: mine, path: plugins/mine.py}]}]")
    assert (option.name, option.path) == ("mine", "plugins/mine.py")


def test_own_keys():
    config = load(HEAD + "compat: volcano\ntie-break: seeded\nnosuch: 1")
    assert (config.compat, config.tie_break, config.ways.asks("agree-restart")) == (True, "seeded", True)
    assert [complaint.key for complaint in config.complaints] == ["nosuch"]
    plain = load(HEAD)
    assert (plain.compat, plain.tie_break, plain.ways.asks("agree-restart")) == (False, "first", False)


def test_metrics_are_texts():
    config = load(HEAD + "metrics: {type: prometheus, interval: 30s, tls.insecureSkipVerify: true}")
    assert config.metrics == {"type": "prometheus", "interval": "30s", "tls.insecureSkipVerify": "true"}


@given(
    st.lists(
        st.sampled_from([*(HEAD + Y5).splitlines(True), "- {}\n", "  - name: x\n", "tiers: 1\n", "- a\n"]), max_size=12
    ),
    st.booleans(),
)
def test_any_heap_of_lines_is_read_or_refused(lines, lenient):
    outcome: Config | ConfigError
    try:
        outcome = load("".join(lines), lenient=lenient)
    except ConfigError as error:
        outcome = error
    assert outcome.source == "conf.yaml" if isinstance(outcome, Config) else outcome.file == "conf.yaml"
