"""What must not be shown is hidden, and nothing else."""

from __future__ import annotations

import json

import pytest

from stromboli.errors import AccessError
from stromboli.framework.config.argument import parse_arguments
from stromboli.kube.access import from_kubeconfig
from stromboli.model.values.redaction import HIDDEN, shown, without_logins, without_secrets
from stromboli.plugin import Plugin, arg


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("elasticsearch.password", "hunter2", HIDDEN),
        ("elasticsearch.password", "", ""),
        ("elasticsearch.username", "reader", "reader"),
        ("my.apiKey", 12345, HIDDEN),
        ("tokens", ["a", "b"], [HIDDEN, HIDDEN]),
        ("nested", {"weight": 3, "Secret": {"user": "a"}}, {"weight": 3, "Secret": {"user": HIDDEN}}),
        ("use-token", True, True),
        ("address", "https://reader:hunter2@host:9200/x?token=abc&y=1", f"https://{HIDDEN}@host:9200/x?token={HIDDEN}&y=1"),
        ("address", "https://host/a@b", "https://host/a@b"),
        ("binpack.weight", 5, 5),
        ("args", ["--password=hunter2", "--db-token", "t0p", "--port", "80"],
         [f"--password={HIDDEN}", "--db-token", HIDDEN, "--port", "80"]),
        ("command", ["sh", "-c", "run --api-key 'a b' --name x -token=y"],
         ["sh", "-c", f"run --api-key {HIDDEN} --name x -token={HIDDEN}"]),
        ("passwords", ["--a", "b"], [HIDDEN, HIDDEN]),
    ],
)  # fmt: skip
def test_settings(key: str, value: object, expected: object) -> None:
    assert shown(key, value) == expected


def test_an_address_in_a_sentence_loses_its_login() -> None:
    assert without_logins("InvalidURL: http://u:p@ss@host:x is bad") == f"InvalidURL: http://{HIDDEN}@host:x is bad"


def env(name: str, value: str) -> str:
    found = {"apiVersion": "v1", "spec": {"env": [{"name": name, "value": value}]}}
    return json.dumps(found, separators=(",", ":"))


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("volcano.sh/numa", '{"0": ["cpu"]}', '{"0": ["cpu"]}'),
        ("a", "text", "text"),
        ("example.com/topology", ' {"spec": {"env":  "east"}}', ' {"spec": {"env":  "east"}}'),
        ("example.com/copy", env("MODE", "fast"), env("MODE", "fast")),
        ("example.com/copy", env("DB_PASSWORD", "hunter2"), env("DB_PASSWORD", HIDDEN)),
        ("example.com/token", "hunter2", HIDDEN),
        ("example.com/copy", '{"kind":"Secret","metadata":{"name":"s"},"data":{"a":"eA=="},"stringData":{"b":"y"}}',
         f'{{"kind":"Secret","metadata":{{"name":"s"}},"data":{{"a":"{HIDDEN}"}},"stringData":{{"b":"{HIDDEN}"}}}}'),
        ("example.com/copy", '{"kind":"ConfigMap","data":{"a":"x"}}', '{"kind":"ConfigMap","data":{"a":"x"}}'),
        ("example.com/copy", "apiVersion: v1\nkind: Secret\ndata:\n  a: eA==\n", HIDDEN),
        ("example.com/command", "run --password=hunter2 --x y", f"run --password={HIDDEN} --x y"),
        ("example.com/broken", "{env", "{env"),
        ("example.com/address", "https://me:hunter2@host", f"https://{HIDDEN}@host"),
        ("example.com/deep", "[" * 50_000 + "]" * 50_000, HIDDEN),
        ("example.com/long", "x" * (1 << 18) + "y", HIDDEN),
    ],
)  # fmt: skip
def test_annotations_lose_secrets_alone(key: str, text: str, expected: str) -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    assert without_secrets({key: text, **applied}) == {key: expected}


def test_a_secret_argument_of_a_wrong_type_is_not_told() -> None:
    class Own(Plugin):
        name = "own"
        password = arg("own.password", int, 0)

    _, (complaint,) = parse_arguments(Own.arguments, {"own.password": "hunter2"}, "own")
    assert "hunter2" not in complaint.text


def test_an_address_that_cannot_be_used_is_told_without_its_login(tmp_path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}],"
        " clusters: [{name: c, cluster: {server: 'ftp://me:hunter2@host'}}]}"
    )
    with pytest.raises(AccessError, match="is no address of an API server") as refused:
        from_kubeconfig([str(file)])
    assert "hunter2" not in str(refused.value)
