"""The chart of Helm: every file, made from the objects and settings that ``stromboli manifests`` prints, too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import yaml

from stromboli.live.installation import parts
from stromboli.live.installation.configurations import CONFIGURATIONS
from stromboli.live.installation.expressions import Call, Value, go_of
from stromboli.live.installation.objects import files
from stromboli.live.installation.readings import template
from stromboli.live.installation.settings import SETTINGS, Setting, nested, setting

NAME: Final = "volcano"
"""The chart's name: a release of Volcano's chart can be upgraded to it."""
_HEAD: Final = "{{- /* Made by `make docs` from stromboli.live.installation; a change goes there. */ -}}\n"
_TYPES: Final = {
    "text": ["string", "null"],
    "whole": ["integer", "string", "null"],
    "switch": ["boolean", "null"],
    "map": ["object", "null"],
    "list": ["array", "null"],
}
"""What the schema takes for each kind; numbers may be written as texts, as ``--set-string`` does."""


@cache
def chart() -> dict[str, str]:
    """The text of every file, by its path in the chart."""
    templates = {f"templates/{name}.yaml": _HEAD + template(nodes) for name, nodes in files().items()}
    return {
        "Chart.yaml": _about(),
        "values.yaml": values(),
        "values.schema.json": json.dumps(schema(), indent=2) + "\n",
        "templates/NOTES.txt": notes(),
        "README.md": _README,
        **templates,
        **CONFIGURATIONS,
    }


def file(path: str) -> str:
    """The text of one file."""
    return chart()[path]


def _about() -> str:
    found = {
        "apiVersion": "v2",
        "name": NAME,
        "description": "Stromboli, a batch scheduler for Kubernetes that takes Volcano's place",
        "type": "application",
        "version": version("stromboli"),
        "appVersion": version("stromboli"),
        "kubeVersion": ">=1.30.0-0",
        "keywords": ["batch", "scheduler", "gang-scheduling", "volcano"],
    }
    return yaml.safe_dump(found, sort_keys=False)


# ----------------------------------------------------------------------------------------------------- values


def values() -> str:
    """``values.yaml``: every setting with its default and its meaning."""
    lines = [
        "# Settings, and what they mean. Made by `make docs`; a change goes to stromboli.live.installation.settings."
    ]
    groups: dict[str, list[Setting]] = {}
    for one in SETTINGS:
        groups.setdefault(one.path.partition(".")[0], []).append(one)
    for group, found in groups.items():
        lines += ["", f"{group}:"]
        for one in found:
            lines += [f"  # {line}" for line in _meaning(one)]
            body = yaml.safe_dump({one.path.partition(".")[2]: one.default}, sort_keys=False, width=10**6)
            lines += [f"  {line}" for line in body.rstrip("\n").split("\n")]
    return "\n".join(lines) + "\n"


def _meaning(one: Setting) -> Iterator[str]:
    yield one.help
    if one.idle:
        yield f"Has no effect: {one.idle}."
    if one.refused:
        yield f"Refused: {one.refused}."


def schema() -> dict[str, Any]:
    """``values.schema.json``: the kinds of all settings; what is not known is told by NOTES and not refused."""
    kinds = {one.path: {"type": _TYPES[one.kind], "description": one.help} for one in SETTINGS}
    groups = {name: {"type": "object", "properties": found} for name, found in nested(kinds).items()}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": groups}


# ------------------------------------------------------------------------------------------------------ notes


def notes() -> str:
    """What Helm says after an installation: what runs, and what of the settings has no effect."""
    lines = [_NOTES_HEAD, *(_image(part) for part in parts.PARTS), *(_idle(one) for one in SETTINGS if one.idle)]
    return "".join([*lines, *(_unknown(group, names) for group, names in _known().items())])


def _when(condition: str, sentence: str) -> str:
    return f"{{{{- if {condition} }}}}\n{sentence}\n{{{{- end }}}}\n"


def _image(part: parts.Part) -> str:
    name = setting(f"basic.{part.key}_image_name")
    sentence = (
        f"basic.{part.key}_image_name: {{{{ {name.go()} }}}} is Volcano's; {{{{ {parts.image(part).go()} }}}} runs."
    )
    return _when(go_of(Call("begins", (name, parts.THEIRS))), sentence)


def _idle(one: Setting) -> str:
    """A sentence for a setting without effect that was changed."""
    default = json.dumps(json.dumps(one.default))
    return _when(f"ne (toJson {Value(f'Values.{one.path}').go()}) {default}", f"{one.path} has no effect: {one.idle}.")


def _known() -> Mapping[str, Mapping[str, Any]]:
    return nested({one.path: True for one in SETTINGS})


def _unknown(group: str, names: Mapping[str, Any]) -> str:
    """A sentence for each unknown setting of a group."""
    known = " ".join(json.dumps(name) for name in sorted(names))
    return (
        f"{{{{- range $name, $_ := .Values.{group} }}}}\n{{{{- if not (has $name (list {known})) }}}}\n"
        f"{group}.{{{{ $name }}}} has no effect: there is no such setting.\n{{{{- end }}}}\n{{{{- end }}}}\n"
    )


_NOTES_HEAD: Final = """\
Stromboli {{ .Chart.AppVersion }} runs in namespace {{ .Release.Namespace }} as release {{ .Release.Name }}.

  kubectl -n {{ .Release.Namespace }} get pods -l app.kubernetes.io/instance={{ .Release.Name }}
  stromboli top
"""


_README: Final = """\
# Chart of Stromboli

Takes the values files of Volcano's chart as they are; `values.yaml` names and explains every setting.

```sh
helm upgrade --install volcano charts/volcano --namespace volcano-system --create-namespace -f my-values.yaml
```

Under the release's name that Volcano has, it takes over Volcano's Deployments, Services and ConfigMaps: the old pods
end before ours begin. Where Volcano was installed by `kubectl apply`, add `--take-ownership`. `helm rollback volcano`
goes back. Jobs, PodGroups and Queues are not touched by either, and the definitions of kinds stay when the chart goes.
"""
