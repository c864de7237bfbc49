"""Which certificate is due when, and that files and flags of the webhook server are used as they are given."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from prometheus_client import CollectorRegistry

from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.errors import AccessError, ConfigError, ManifestError
from stromboli.live.process.flags import parse
from stromboli.live.webhooks.certificates import RENEWED, Held, Terms, due, first
from stromboli.live.webhooks.conf_file import LOOK_EVERY
from stromboli.live.webhooks.flags import WEBHOOK_FLAGS
from stromboli.live.webhooks.process import Figures, WebhookProcess, bearer_of, settings_of
from stromboli.live.webhooks.sources import Files, held_after
from stromboli.live.webhooks.tls import ShownCertificate
from stromboli.live.webhooks.webhook_server import Terms as ServingTerms
from stromboli.server.http.certificates import Bearer, bears, begins, count, ends, signers
from tests.support.virtual import run

NOW = 1_700_000_000.0
TERMS = Terms(Bearer("a.b.svc", ("a.b.svc", "a")))
YEAR = TERMS.valid


def test_nothing_is_due_until_the_end_comes_near() -> None:
    held = first(NOW, TERMS)
    assert bears(held.certificate, ("a", "a.b.svc"))
    assert not bears(held.certificate, ("c",))
    for now in (NOW, NOW + YEAR / 2, NOW + YEAR - RENEWED - 1):
        assert due(held, now, TERMS) is None


def test_a_new_one_comes_in_three_steps_with_a_pause_after_each() -> None:
    old = first(NOW, TERMS)
    now = NOW + YEAR - RENEWED + 1
    made = due(old, now, TERMS)
    assert made is not None
    assert (made.certificate, count(made.authorities)) == (old.certificate, 2)
    assert due(made, now + TERMS.pause - 1, TERMS) is None
    shown = due(made, now + TERMS.pause, TERMS)
    assert shown is not None
    assert made.next is not None
    assert (shown.certificate, shown.next, shown.authorities) == (made.next[0], None, made.authorities)
    assert due(shown, now + 2 * TERMS.pause - 1, TERMS) is None
    alone = due(shown, now + 2 * TERMS.pause, TERMS)
    assert alone is not None
    assert (alone.certificate, count(alone.authorities)) == (shown.certificate, 1)
    assert signers(alone.certificate, alone.authorities)
    assert due(alone, now + 3 * TERMS.pause, TERMS) is None


def test_short_lived_ones_are_replaced_in_their_last_third() -> None:
    terms = TERMS._replace(valid=90.0, pause=5.0)
    held = first(NOW, terms)
    assert ends(held.certificate).timestamp() - NOW == 90
    assert due(held, NOW + 59, terms) is None
    assert due(held, NOW + 61, terms) is not None


@pytest.mark.parametrize("spoil", ["certificate", "authorities", "key", "no key", "time", "names"])
def test_one_that_no_api_server_would_accept_is_replaced_at_once(spoil: str) -> None:
    held, now, terms = first(NOW, TERMS), NOW + 10, TERMS
    if spoil == "certificate":
        held = held._replace(certificate=b"none")
    elif spoil == "authorities":
        held = held._replace(authorities=first(NOW, TERMS).authorities)
    elif spoil == "key":
        held = held._replace(key=first(NOW, TERMS).key)
    elif spoil == "no key":
        held = held._replace(key=b"none")
    elif spoil == "time":
        now = NOW + YEAR + 1
    else:
        terms = TERMS._replace(bearer=Bearer("c", ("c",)))
    found = due(held, now, terms)
    assert found is not None
    assert found.certificate != held.certificate
    assert due(found, now, terms) is None


@pytest.mark.parametrize(
    "error",
    [UnsupportedAlgorithm("a curve"), x509.DuplicateExtension("twice", x509.ObjectIdentifier("1.2")), TypeError()],
)
def test_whatever_keeps_one_from_being_read_it_is_replaced(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    held = first(NOW, TERMS)
    load = x509.load_pem_x509_certificate

    def broken(text: bytes) -> x509.Certificate:
        if text == held.certificate:
            raise error
        return load(text)

    monkeypatch.setattr(x509, "load_pem_x509_certificate", broken)
    found = due(held, NOW + 10, TERMS)
    assert found is not None
    assert found.certificate != held.certificate


def test_a_next_one_that_cannot_be_shown_is_dropped_and_another_comes() -> None:
    old, now = first(NOW, TERMS), NOW + YEAR - RENEWED + 1
    made = due(old, now, TERMS)
    assert made is not None
    assert made.next is not None
    spoilt = made._replace(next=(made.next[0], old.key))
    dropped = due(spoilt, now + TERMS.pause, TERMS)
    assert dropped is not None
    assert (dropped.certificate, dropped.next) == (old.certificate, None)
    again = due(dropped, now + 2 * TERMS.pause, TERMS)
    assert again is not None
    assert again.next not in (None, spoilt.next)


def test_without_flags_terms_are_the_usual_ones() -> None:
    flags = parse([], WEBHOOK_FLAGS)
    assert (TERMS.valid, TERMS.pause) == (flags["certificate_lifetime"], flags["certificate_pause"])
    names = ("listen_address", "port", "drain_time", "graceful_shutdown_time")
    assert ServingTerms(*(flags[name] for name in names)) == ServingTerms()
    assert ServingTerms.look <= TERMS.pause / 4  # a step is seen by all before the next


@pytest.mark.parametrize("held", [(), ("tls.crt", "tls.key"), ("tls.crt", "ca.crt"), ("tls.key", "ca.crt")])
def test_a_secret_that_lacks_a_part_of_a_certificate_after_a_write_is_refused_by_name(held: tuple[str, ...]) -> None:
    data = dict.fromkeys(held, "aGVsZA==")
    with pytest.raises(ManifestError, match=r"Secret ns/c.*holds no tls\.crt"):
        held_after({"metadata": {"name": "c", "namespace": "ns"}, "data": data}, "ns/c")


def test_a_step_whose_time_cannot_be_read_was_long_ago() -> None:
    held = dict.fromkeys(("tls.crt", "tls.key", "ca.crt"), "aGVsZA==")
    for since, moment in (("1970-01-01T00:00:07Z", 7.0), ("yesterday", 0.0), ("", 0.0)):
        data = {**held, "since": b64encode(since.encode()).decode()}
        assert held_after({"metadata": {"name": "c", "namespace": "ns"}, "data": data}, "ns/c").since == moment


def test_a_wish_waits_for_the_pause() -> None:
    held = first(NOW, TERMS)._replace(asked=True)
    assert due(held, NOW + TERMS.pause - 1, TERMS) is None
    found = due(held, NOW + TERMS.pause, TERMS)
    assert found is not None
    assert (found.asked, found.next is not None) == (False, True)


@pytest.mark.parametrize(("valid", "shown"), [(90 * 86_400.0, True), (86_400.0, True), (YEAR, False)])
def test_metrics_say_when_the_certificate_begins_and_ends_or_0(valid: float, shown: bool) -> None:
    registry, server = CollectorRegistry(), Mock()
    server.certificate.shown = first(NOW, TERMS._replace(valid=valid)).certificate if shown else b"none"
    Figures(registry).watch(server)
    begin, end = (
        registry.get_sample_value(f"stromboli_webhook_certificate_{name}_seconds") for name in ("begin", "end")
    )
    assert (begin, end) == ((begins(server.certificate.shown).timestamp(), NOW + valid) if shown else (0, 0))
    assert begin is not None
    assert not shown or NOW - 3600 <= begin <= NOW  # a part of the lifetime means something


def test_secrets_do_not_show_their_keys() -> None:
    assert "PRIVATE" not in repr(first(NOW, TERMS))
    assert repr(Held(b"", b"PRIVATE", b"")) == "Held(...)"


def test_files_are_read_again_and_what_does_not_fit_together_is_not_shown(tmp_path: Path) -> None:
    one, other = first(NOW, TERMS), first(NOW, TERMS)
    paths = [str(tmp_path / name) for name in ("crt", "key", "ca")]
    files, shown = Files(*paths), ShownCertificate()
    for path, text in zip(paths, (one.certificate, one.key, one.authorities), strict=True):
        Path(path).write_bytes(text)
    found = asyncio.run(files.current())
    assert shown.show(found.certificate, found.key)
    assert not shown.show(found.certificate, found.key)
    Path(paths[0]).write_bytes(other.certificate)
    found = asyncio.run(files.current())
    with pytest.raises(AccessError, match="cannot be used"):
        shown.show(found.certificate, found.key)
    assert shown.shown == one.certificate
    Path(paths[2]).unlink()
    with pytest.raises(AccessError, match="ca"):
        asyncio.run(files.current())


# ---------------------------------------------------------------------- flags

SERVICE = ("--webhook-namespace=ns", "--webhook-service-name=hooks")


def values(*flags: str) -> dict[str, Any]:
    return parse(flags, WEBHOOK_FLAGS)


@pytest.mark.parametrize(
    ("flags", "names", "addresses"),
    [
        (SERVICE, ("hooks.ns.svc", "hooks.ns", "hooks"), ()),
        (("--webhook-url=https://127.0.0.1:8443",), (), ("127.0.0.1",)),
        (("--webhook-url=https://hooks.example:8443/x",), ("hooks.example",), ()),
    ],
)
def test_certificates_bear_the_names_that_api_servers_use(
    flags: tuple[str, ...], names: tuple[str, ...], addresses: tuple[str, ...]
) -> None:
    assert bearer_of(values(*flags))[1:] == (names, addresses)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((), "failed to start webhooks as both 'url' and 'namespace/name' of webhook are empty"),
        (("--port=0", *SERVICE), "the port should be in the range of 1 and 65535"),
        (("--enabled-admission=/jobs/mutat", *SERVICE),
         "enabled admission /jobs/mutat not found on the admission registered map"),
        (("--webhook-service-name=a",), "belong together"),
        (("--tls-cert-file=x", *SERVICE), "belong together"),
        (("--webhook-url=https://127.0.0.1",), "where the Secret of the certificate is kept"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_at_the_start(
    flags: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=told.replace("/", "/")):
        WebhookProcess(values("--master=http://127.0.0.1:1", *flags))


@pytest.mark.parametrize(
    ("flags", "pages", "followed"),
    [
        ((), 1, 0),
        (("--enable-metrics",), 2, 0),
        (("--enable-healthz=false",), 0, 0),
        (("--tls-cert-file=x", "--tls-private-key-file=y"), 1, 0),
        (("--admission-conf=conf.yaml",), 1, 1),
    ],
)
def test_flags_say_which_pages_are_served_and_whether_a_file_is_followed(
    flags: tuple[str, ...], pages: int, followed: int
) -> None:
    usual = ("--master=http://127.0.0.1:1", "--enable-metrics=false", "--enable-healthz=true")
    found = WebhookProcess(values(*SERVICE, *usual, *flags))
    background: list[Any] = list(found.background)
    assert (len(found.pages), len(background), list(found.parts)) == (pages, followed, [found.server])
    for each in background:
        each.close()
    assert found.registry.get_sample_value("stromboli_webhook_certificate_end_seconds") == 0


def test_the_admission_file_counts_from_the_first_review_and_as_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "admission.yaml"

    def names() -> list[str]:
        return [group.name for group in found.server._settings().resource_groups]

    async def story() -> None:
        [background] = found.background
        following = asyncio.ensure_future(background)
        path.write_text("resourceGroups: [{resourceGroup: gpu}]")
        await asyncio.sleep(LOOK_EVERY + 0.1)
        following.cancel()

    path.write_text("resourceGroups: [{resourceGroup: cpu}]")
    found = WebhookProcess(values(*SERVICE, "--master=http://127.0.0.1:1", f"--admission-conf={path}"))
    assert names() == ["cpu"]
    run(story())
    assert names() == ["gpu"]


def test_reviews_are_counted_by_path_and_outcome() -> None:
    registry = CollectorRegistry()
    figures, (path, *_) = Figures(registry), ALL_PATHS.values()
    for seconds in (0.25, 0.5):
        figures.count(path, "allowed", seconds)
    labels = {"path": path.path}
    assert registry.get_sample_value("stromboli_webhook_reviews_total", {**labels, "outcome": "allowed"}) == 2
    assert registry.get_sample_value("stromboli_webhook_review_duration_seconds_sum", labels) == 0.75


def test_flags_set_up_the_rules() -> None:
    found = settings_of(values(
        "--scheduler-name=a", "--scheduler-name=b", "--max-queue-depth=7", "--enable-queue-allocated-pods-check",
        "--enable-root-queue-protection=false", "--feature-gates=SchedulingGatesQueueAdmission=true",
    ))  # fmt: skip
    assert (found.scheduler_names, found.max_queue_depth) == (("a", "b"), 7)
    assert (found.check_allocated_pods, found.protect_root, found.gates_pods, found.scales_queues) == (
        True, False, True, False,
    )  # fmt: skip
    assert values()["enabled_admission"] == (
        "/jobs/mutate", "/jobs/validate", "/podgroups/mutate", "/pods/validate", "/pods/mutate", "/queues/mutate",
        "/queues/validate",
    )  # fmt: skip
    assert (values()["port"], values()["kube_api_qps"], values()["graceful_shutdown_time"]) == (8443, 50, 30)
