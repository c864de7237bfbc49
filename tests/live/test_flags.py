"""Which flags do nothing, which the reference does not have, and what each kind of flag makes of its text."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.errors import ConfigError
from stromboli.live.controllers.options import Options
from stromboli.live.process.control_flags import CONTROL_FLAGS
from stromboli.live.process.control_process import ControlProcess
from stromboli.live.process.flags import FLAGS, KLOG, help_text, parse
from stromboli.live.process.process import source_of
from stromboli.live.webhooks.flags import WEBHOOK_FLAGS

OWN = {
    "log-format", "audit-period", "compat", "lenient-config", "context", "controllers", "job-plugins-dir", "record",
    "record-max-size", "record-max-age", "shadow", "shadow-patience",
}  # fmt: skip
OWN_OF_WEBHOOKS = {
    "drain-time", "certificate-secret", "certificate-lifetime", "certificate-pause", "metrics-address",
}  # fmt: skip
IDLE = {
    "node-worker-threads", "gate-removal-worker-num", "logtostderr",
}  # fmt: skip
IDLE_OF_CONTROLLERS = {
    "feature-gates", "worker-threads", "worker-threads-for-podgroup", "worker-threads-for-queue",
    "worker-threads-for-gc", "worker-threads-for-cronjob", "logtostderr",
}  # fmt: skip


def test_flags_that_do_nothing_and_flags_of_our_own_are_marked() -> None:
    assert {flag.name for flag in FLAGS if flag.own} == OWN
    assert {flag.name for flag in FLAGS if flag.idle} == IDLE
    assert {flag.name for flag in CONTROL_FLAGS if flag.idle} == IDLE_OF_CONTROLLERS
    assert {flag.name for flag in WEBHOOK_FLAGS if flag.own} - OWN == OWN_OF_WEBHOOKS


LOGGING = [
    ("--alsologtostderr", "logs go to standard error."),
    ("--stderrthreshold=2", "logs go to standard error, of whatever severity."),
    ("--log-dir=/tmp", "logs go to standard error."),
    ("--log-file=/tmp/log", "logs go to standard error."),
    ("--log-file-max-size=1800", "logs go to standard error."),
    ("--log-backtrace-at=file:1", "lines have no stack traces."),
    ("--vmodule=file=9", "-v holds for all files."),
    ("--one-output", "each line is written once."),
    ("--skip-headers", "lines keep their headers."),
    ("--skip-log-headers", "logs go to standard error."),
    ("--add-dir-header", "headers name no folders."),
]


@pytest.mark.parametrize(("argument", "why"), LOGGING)
@pytest.mark.parametrize("flags", [FLAGS, CONTROL_FLAGS], ids=["scheduler", "controllers"])
def test_flags_of_the_logging_library_are_taken_and_do_nothing(argument: str, why: str, flags: Any) -> None:
    name = argument.partition("=")[0]
    assert parse([argument], flags)["idle"] == [f"{name} does nothing: {why}"]
    assert f"{name}=" not in help_text(flags=flags)


def test_no_flag_of_the_logging_library_is_left_out() -> None:
    assert [f"--{flag.name}" for flag in KLOG] == [argument.partition("=")[0] for argument, _ in LOGGING]


WRITTEN = [
    pytest.param(["--controllers"], "controllers", ("*",), id="some: alone"),
    pytest.param(["--controllers=true"], "controllers", ("*",), id="some: yes"),
    pytest.param(["--controllers=F"], "controllers", (), id="some: no"),
    pytest.param(["--controllers=job-controller,-gc-controller"], "controllers", ("job-controller", "-gc-controller"),
                 id="some: named"),
    pytest.param(["--enable-pprof=1"], "enable_pprof", True, id="bool: 1"),
    pytest.param(["--enable-pprof=T"], "enable_pprof", True, id="bool: T"),
    pytest.param(["--cache-dumper=0"], "cache_dumper", False, id="bool: 0"),
    pytest.param(["--node-selector=a:b,,c:d"], "node_selector", ("a:b", "c:d"), id="texts: an empty part"),
    pytest.param(["--scheduler-name="], "scheduler_name", (), id="texts: none"),
    pytest.param(["--v=1", "--v=2"], "v", 2, id="the last counts"),
    pytest.param(["--kube-api-burst", "7"], "kube_api_burst", 7, id="apart"),
    pytest.param(["--default-queue="], "default_queue", "", id="an empty text"),
    pytest.param(["--default-queue"], "default_queue", "", id="a text that ends the line"),
    pytest.param(["--default_queue=a=b"], "default_queue", "a=b", id="underscores, and what is behind the first ="),
    pytest.param(["2>&1", "--v=1", "1>&2"], "v", 1, id="redirections"),
    pytest.param([], "given", frozenset(), id="nothing written"),
    pytest.param(["--v=0", "--v=1", "--compat=volcano"], "given", {"v", "compat"}, id="what was written"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "name", "value"), WRITTEN)
def test_what_a_flag_says(arguments: list[str], name: str, value: object) -> None:
    assert parse(arguments)[name] == value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--v=high"], "--v=high"),
        (["--kube-api-qps=fast"], "--kube-api-qps=fast"),
        (["--v"], "--v needs a value"),
        (["v=1"], "unknown flag v"),
        (["--add_dir_headers"], "unknown flag --add_dir_headers"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(arguments: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(arguments)


@pytest.mark.parametrize(
    ("flags", "compat", "lenient", "sampled"),
    [
        ([], False, False, None),
        (["--compat=volcano"], True, False, None),
        (["--lenient-config"], False, True, None),
        (["--minimum-feasible-nodes=7", "--percentage-nodes-to-find=30"], False, False, (7, 5, 30)),
        (["--minimum-percentage-nodes-to-find=9"], False, False, (100, 9, 0)),
    ],
)
def test_flags_say_how_configurations_are_read(
    flags: list[str], compat: bool, lenient: bool, sampled: tuple[int, int, int] | None
) -> None:
    found = source_of(parse(flags))
    assert (found.compat, found.lenient) == (compat, lenient)
    how = found.load().sampling
    assert (how and (how.minimum, how.least_percent, how.percent)) == sampled


def test_without_a_file_there_is_no_configuration_where_flags_forbid_the_built_in_one() -> None:
    with pytest.raises(ConfigError):
        source_of(parse(["--disable-default-scheduler-config"])).load()


def test_flags_say_how_controllers_work() -> None:
    given = ["--scheduler-name=a,b", "--max-requeue-num=3", "--inherit-owner-annotations=false"]
    given += ["--sharding-configmap=m", "--sharding-configmap-namespace=n", "--group-by-owner-kinds="]
    here = ["--master=http://127.0.0.1:1", "--leader-elect=false"]

    async def story() -> tuple[Options, Options]:
        usual, other = (ControlProcess(parse([*here, *flags], CONTROL_FLAGS)).controllers for flags in ([], given))
        return usual.options, other.options

    usual, found = asyncio.run(story())
    assert (usual.max_requeue, usual.inherit_owner_annotations, usual.scheduler_names) == (15, True, ("volcano",))
    assert (found.max_requeue, found.inherit_owner_annotations, found.group_by) == (3, False, frozenset())
    assert found.scheduler_names == ("a", "b")
    assert (found.sharding_config_map, found.sharding_namespace) == ("m", "n")
