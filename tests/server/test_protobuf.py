"""Kubernetes' protobuf form, as newer kubectls send it."""

from __future__ import annotations

import pytest

from stromboli.errors import ApiFailure
from stromboli.server.http.protobuf import MAGIC, from_protobuf
from tests.server.browser import Browser


def varint(number: int) -> bytes:
    """A number in groups of seven bits, the lowest first."""
    number &= (1 << 64) - 1
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def message(*fields: tuple[int, bytes | str | int]) -> bytes:
    """Numbered fields one after the other."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(raw)) + raw
    return found


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + message((1, message((1, api_version), (2, kind))), (2, raw), (3, ""), (4, ""))


METADATA = message((1, "a"), (2, ""), (3, ""), (5, ""), (7, 0), (8, message()), (11, message((1, "k"), (2, "v"))))
QUANTITY = message((1, message((1, "cpu"), (2, message((1, "500m"))))))
CONTAINER = message((1, "main"), (2, "busybox"), (3, "sleep"), (3, "5"), (5, ""), (8, QUANTITY))
VOLUME = message((1, "scratch"), (2, message((2, message((1, ""))))))
POD = message((1, METADATA), (2, message((1, VOLUME), (2, CONTAINER), (3, "Never"), (4, 0), (10, ""), (25, -5))))


def test_an_object_is_read_with_its_types():
    assert from_protobuf(envelope("v1", "Pod", POD)) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"k": "v"}},
        "spec": {
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "containers": [
                {
                    "name": "main",
                    "image": "busybox",
                    "command": ["sleep", "5"],
                    "resources": {"limits": {"cpu": "500m"}},
                }
            ],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "priority": -5,
        },
    }


def test_times_numbers_and_bytes():
    lease = message((1, METADATA), (2, message((1, "me"), (2, 15), (4, message((1, 1_700_000_000), (2, 5_000))))))
    spec = from_protobuf(envelope("coordination.k8s.io/v1", "Lease", lease))["spec"]
    assert spec == {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2023-11-14T22:13:20.000005Z"}
    secret = message((1, METADATA), (2, message((1, "p"), (2, b"\x00\xff"))))
    assert from_protobuf(envelope("v1", "Secret", secret))["data"] == {"p": "AP8="}
    for raw, value in ((message((1, 0), (2, 3)), 3), (message((1, 1), (2, 0), (3, "50%")), "50%")):
        budget = message((1, METADATA), (2, message((1, raw))))
        assert from_protobuf(envelope("policy/v1", "PodDisruptionBudget", budget))["spec"] == {"minAvailable": value}


BROKEN = [
    b"{}",
    MAGIC,
    MAGIC + b"\xff",
    envelope("v1", "Pod", POD[:-3]),
    envelope("v1", "Unheard", b""),
    MAGIC + message((1, b"\x0a\xff")),
]


@pytest.mark.parametrize("content", BROKEN)
def test_bytes_that_are_no_object_are_a_bad_request(content):
    with pytest.raises(ApiFailure) as refused:
        from_protobuf(content)
    assert refused.value.code == 400


def test_the_server_takes_it():
    browser = Browser()
    with browser.runner:
        made = browser(
            "POST", "/api/v1/namespaces/default/pods", envelope("v1", "Pod", POD), "application/vnd.kubernetes.protobuf"
        )
        assert (made.code, made.body["spec"]["containers"][0]["imagePullPolicy"]) == (201, "Always")


WIRES = {
    "a number where a text is wanted": message((1, message((1, 5)))),
    "a number where a message is wanted": message((2, 7)),
    "bytes where a number is wanted": message((2, message((4, "soon")))),
    "a number as the key of a map": message((1, message((11, message((1, 3), (2, "v")))))),
    "a time that no calendar has": message((1, message((8, message((1, 1 << 62)))))),
    "a time whose parts are texts": message((1, message((8, message((1, "x")))))),
}


@pytest.mark.parametrize("raw", WIRES.values(), ids=list(WIRES))
def test_fields_on_another_wire_than_theirs_cannot_be_read(raw):
    with pytest.raises(ApiFailure) as refused:
        from_protobuf(envelope("v1", "Pod", raw))
    assert refused.value.code == 400
