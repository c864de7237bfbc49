"""Write the embedded server's table of protobuf field numbers from the Go sources of Kubernetes' API types.

    python -m tools.kubernetes_wire k8s.io/api k8s.io/apimachinery k8s.io/apiextensions-apiserver

Arguments are the folders of those Go modules.  An entry maps the number of a field to its JSON name; ``*`` behind it
marks an optional field, whose zero counts, and ``+`` before a type's name one whose fields stand in the object itself.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

OUTPUT = Path("src/stromboli/server/kubernetes_wire.json")
TYPES = Path("src/stromboli/crds/kubernetes_types.json")
_TYPE = re.compile(r"^type (\w+) struct {")
_FIELD = re.compile(r'^\t(?:(\w+)\s+)?(\S+)\s+`json:"([^"]*)"(?: \w+:"[^"]*")* protobuf:"[a-z0-9]+,(\d+),')
_PREFIXES = {
    "api": "io.k8s.api",
    "apimachinery": "io.k8s.apimachinery",
    "apiextensions-apiserver": "io.k8s.apiextensions-apiserver",
}


def main(modules: list[Path]) -> None:
    """Read the modules and write the table, a type a line."""
    found: dict[str, dict[str, str]] = {}
    for module in modules:
        prefix = _PREFIXES[module.name.partition("@")[0]]
        for source in sorted(module.glob("**/types*.go")):
            package = ".".join([prefix, *source.parent.relative_to(module).parts])
            for name, fields in _structs(source.read_text()):
                found[f"{package}.{name}"] = {number: text.format(package=package) for number, text in fields}
    kept = _reachable(set(json.loads(TYPES.read_text())), found)
    lines = ",\n".join(f"{json.dumps(n)}:{json.dumps(found[n], separators=(',', ':'))}" for n in sorted(kept))
    OUTPUT.write_text(f"{{\n{lines}\n}}\n")
    print(f"{OUTPUT}: {len(kept)} types")


def _structs(source: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    name = ""
    fields: list[tuple[str, str]] = []
    for line in source.splitlines():
        if begins := _TYPE.match(line):
            name, fields = begins[1], []
        elif line == "}" and name:
            yield name, fields
            name = ""
        elif name and (field := _FIELD.match(line)):
            fields.append((field[4], _entry(field[2], field[3])))


def _entry(kind: str, tag: str) -> str:
    name = tag.partition(",")[0]
    if not name:
        return "+" + (kind if "." in kind else "{package}." + kind)
    return name + ("*" if kind.startswith("*") else "")


def _reachable(names: set[str], found: dict[str, dict[str, str]]) -> set[str]:
    wanted, kept = list(names & set(found)), set()
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept.add(name)
            wanted += [text[1:] for text in found[name].values() if text[0] == "+" and text[1:] in found]
    return kept


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
