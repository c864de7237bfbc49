"""The ConfigMap with the scheduler's configuration in the embedded cluster, as an installation has it.

The scheduler follows it through a file next to the cluster's data, as it follows the file of a mounted ConfigMap.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stromboli.cluster.body import Body, Key, meta, part
from stromboli.errors import ApiFailure, StromboliError
from stromboli.kube.recorder import Recorder, Regarding
from stromboli.live.installation.configurations import CONFIG_KEY
from stromboli.live.installation.manifests import CONFIG_MAP
from stromboli.live.scheduler.configuration import Source
from stromboli.model.names import EVENT_WARNING, NAMESPACE
from stromboli.server.addresses import Address
from stromboli.server.api import Api
from stromboli.server.controllers.controllers import preinstalled
from stromboli.server.storage.store import Change
from stromboli.server.verbs.applying import applied
from stromboli.server.verbs.writing import Options

WRITTEN: Final = "stromboli.dev/written-configuration"
"""Annotation: the SHA-256 of the text that we wrote, which tells it from a user's."""
_REFUSED: Final = "ConfigurationRefused"
_MANAGER: Final = "kubectl"
"""As ``stromboli manifests | kubectl apply --server-side -f -`` names itself: it takes over without a conflict."""
_NAMESPACE: Final[Body] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
_COLLECTION: Final = ("", "configmaps")
_KEY: Final = (NAMESPACE, CONFIG_MAP)
_NAME: Final = "/".join(_KEY)
_LOG: Final = logging.getLogger(__name__)


def show_configuration(api: Api, source: Source, folder: Path) -> Source:
    """Show the configuration in the cluster; answers where the scheduler finds it.

    A ConfigMap that a user has changed stays.  If ``source`` names no file, the scheduler follows the ConfigMap, which
    is copied into ``folder``.  Raises ConfigError and OSError for a file that cannot be read.
    """
    wanted = source.text()
    try:
        preinstalled([_NAMESPACE], api.catalogue, api.writer)
        found = api.body(*_COLLECTION, *_KEY)
        if found is None or _is_ours(found):
            _write(api, wanted)
    except ApiFailure as failure:  # a quota may forbid it, or the namespace is being deleted
        _LOG.warning("ConfigMap %s cannot be written: %s", _NAME, failure)
    text = _text_of(api.body(*_COLLECTION, *_KEY) or {})
    if source.path:
        if text not in (None, wanted):
            _LOG.warning("ConfigMap %s was changed and stays, but the configuration is that of %s", _NAME, source.path)
        return source
    return _followed(api, source, folder / CONFIG_KEY, text)


def refusal_event(api: Api, recorder: Recorder, text: str) -> None:
    """An event on the ConfigMap whose configuration is refused."""
    found = meta(api.body(*_COLLECTION, *_KEY) or {})
    about = Regarding("v1", "ConfigMap", *_KEY, found.get("uid", ""))
    recorder.record(about, EVENT_WARNING, _REFUSED, f"{text}; the previous configuration stays in force")


def _is_ours(found: Body) -> bool:
    text = _text_of(found)
    return text is not None and (meta(found).get("annotations") or {}).get(WRITTEN) == _sum_of(text)


def _text_of(body: Body) -> str | None:
    text = part(body, "data", CONFIG_KEY)
    return text if isinstance(text, str) else None


def _sum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write(api: Api, text: str) -> None:
    metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE, "annotations": {WRITTEN: _sum_of(text)}}
    wish: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {CONFIG_KEY: text}}
    resource = api.catalogue.stored()[_COLLECTION]
    address = Address("", "v1", _COLLECTION[1], *_KEY)
    applied(api, resource, address, wish, Options(manager=_MANAGER, force=True))


def _followed(api: Api, source: Source, file: Path, text: str | None) -> Source:
    """The source that reads ``file``, a copy of the ConfigMap from now on.

    A configuration that cannot be used must not keep the cluster from starting, as it is mended in the cluster.
    """
    copy, following = _Copy(file), source.at(str(file), f"ConfigMap {_NAME}")
    copy.take(text)
    try:
        following.load()
    except (StromboliError, OSError) as error:
        why = following.words(error)
        _LOG.error("the built-in configuration counts until ConfigMap %s is mended: %s", _NAME, why)
        copy.take(source.text())
    api.store.listeners.append(copy.note)
    return following


@dataclass
class _Copy:
    """The file that follows the ConfigMap."""

    file: Path

    def note(self, collection: Key, change: Change) -> None:
        """Hear of a change."""
        if collection == _COLLECTION and change.entry.key == _KEY and change.type != "DELETED":
            self.take(_text_of(change.entry.body))

    def take(self, text: str | None) -> None:
        """Put ``text`` into the file at once as a whole; without one the configuration stays as it is."""
        if text is None:
            _LOG.warning("ConfigMap %s has no %s: the configuration stays as it is", _NAME, CONFIG_KEY)
            return
        fresh = self.file.with_suffix(".new")
        try:
            fresh.write_text(text)
            fresh.replace(self.file)
        except OSError as error:
            _LOG.error("the configuration of ConfigMap %s cannot be followed: %s", _NAME, error)
