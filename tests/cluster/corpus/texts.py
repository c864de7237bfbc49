"""Whole documents that cannot be read: (name, bytes, what the message says)."""

from __future__ import annotations

POD = b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"


def _bomb():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    return "\n".join(lines).encode()


def _merge_bomb():
    lines = ["a0: &a0 {k0: 1}"]
    lines += [f"a{i}: &a{i} {{l: *a{i - 1}, r: *a{i - 1}, m: *a{i - 1}}}" for i in range(1, 30)]
    return "\n".join(lines).encode()


TEXTS = [
    ("a word", b"hello", "must be a mapping"),
    ("a number", b"42", "must be a mapping"),
    ("a truth", b"true", "must be a mapping"),
    ("a list of words", b"- a\n- b\n", "must be a mapping"),
    ("JSON null in a list", b"[null]", "must be a mapping"),
    ("tab as indentation", b"apiVersion: v1\nkind: Pod\nmetadata:\n\tname: p\n", "line 4"),
    ("open bracket", POD + b"spec: {containers: [", "not YAML"),
    ("open quote", POD + b'x: "abc\n', "not YAML"),
    ("two colons", POD + b"x: a: b\n", "line 4"),
    ("bad indentation", b"apiVersion: v1\n  kind: Pod\n", "not YAML"),
    ("unknown escape", POD + b'x: "\\q"\n', "not YAML"),
    ("key twice", POD + b"kind: Node\n", "stands twice"),
    ("list as key", POD + b"? [a]\n: b\n", "key must be a text"),
    ("mapping as key", POD + b"? {a: b}\n: c\n", "key must be a text"),
    ("alias of nothing", POD + b"x: *nobody\n", "nobody"),
    ("alias inside its anchor", POD + b"x: &x [*x]\n", "'x'"),
    ("alias to a list as key", POD + b"x: &x [a]\n*x : b\n", "key must be a text"),
    ("bomb of aliases", POD + _bomb(), "aliases"),
    ("bomb of mappings", POD + _merge_bomb(), "aliases"),
    ("merge of a word", POD + b"x:\n  <<: word\n", "<<"),
    ("Python object", POD + b"x: !!python/object/apply:os.system [ls]\n", "tag"),
    ("binary", POD + b"x: !!binary aGk=\n", "tag"),
    ("own tag", POD + b"x: !mine y\n", "tag"),
    ("wrong tag", POD + b"x: !!int word\n", "tag"),
    ("deep YAML list", POD + b"x: " + b"[" * 10_000 + b"]" * 10_000, "deep"),
    ("deep YAML mapping", POD + b"x: " + b"{a: " * 10_000 + b"}" * 10_000, "deep"),
    ("deep JSON", b'{"apiVersion": "v1", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deep"),
    ("deep JSON never closed", b'{"apiVersion": "v1", "x": ' + b"[" * 100_000, "deep"),
    ("invalid UTF-8", POD + b"x: \xff\xfe\n", "UTF-8"),
    ("invalid UTF-8 in JSON", b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p\xff"}}', "UTF-8"),
    ("UTF-16", "apiVersion: v1".encode("utf-16"), "UTF-8"),
    ("NUL", POD + b"x: a\x00b\n", "not YAML"),
    ("control character", POD + b"x: a\x07b\n", "not YAML"),
    ("JSON without end", b'{"apiVersion": "v1", "kind": "Pod"', "not JSON"),
    ("JSON with a comma too many", b'{"apiVersion": "v1",, "kind": "Pod"}', "not JSON"),
    ("JSON with a lone surrogate", b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\\ud800"}}', "not JSON"),
    ("no kind", b"metadata: {name: p}\n", "kind"),
    ("a list of lists of lists", b"[[[[[[{}]]]]]]", "nested"),
    ("List in Lists", b'{"kind":"List","apiVersion":"v1","items":[' * 6 + b"]}" * 6, "nested"),
    ("items that are no list", b"kind: List\napiVersion: v1\nitems: {a: b}\n", "items"),
    ("items that are null entries", b"kind: PodList\napiVersion: v1\nitems: [null, 5]\n", "must be a mapping"),
    ("ten million characters", b"x" * 10_000_000, "must be a mapping"),
]
