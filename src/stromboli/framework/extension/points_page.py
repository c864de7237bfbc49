"""The documentation page of the extension points, made from their table."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.framework.extension.points import POINTS, Form, Point

OTHER_REGISTRATIONS = (
    ("RegisterBinder", "session.register_binder(name, pre_binder)", "does work between the decision and the binding"),
    (
        "BindContextHandler.SetupBindContextExtension",
        "setup_bind_context_extension(cycle_state, bind_context)",
        "method of the plugin: hands what its filter found to the binding",
    ),
)
"""What a plugin can register besides the points: reference's name, Python form, purpose."""


def generate_page() -> str:
    """The documentation page of all extension points, in Markdown."""
    return (
        "\n".join([*_INTRODUCTION, "", *_table(_HEAD, map(_cells, POINTS.values())), "", *_details(), *_others()])
        + "\n"
    )


_HEAD = (
    "First described as", "Python", "Reference: register", "Reference: ask", "Switches", "Merge", "Default", "Asked by",
)  # fmt: skip

_INTRODUCTION = """\
# Extension points

Generated from the table in `stromboli.framework.extension.points`. A plugin answers with a method under the decorator
of the point's name, or registers a function in `on_session_open` with `session.add_<point>(self.name, function)`;
actions ask `session.ask.<point>(...)`. The first column is the name in the session interface as it was first
described, where it stands there. A switch marked *off* is off unless the configuration sets it.
""".splitlines()


def _cells(row: Point) -> tuple[str, ...]:
    switches = " or ".join(row.switches) + ("" if row.on else " (*off*)") if row.switches else "always on"
    return (
        row.seed, f"`{row.name}`", row.registration, ", ".join(row.query), switches, type(row.merge).__name__,
        row.default, row.asked_by,
    )  # fmt: skip


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [" | ".join(("", *cells, "")).strip() for cells in (head, ("---",) * len(head), *rows)]


def _details() -> list[str]:
    lines = ["## Questions", ""]
    for row in POINTS.values():
        lines += [f"### {row.name}({', '.join(row.arguments)})", "", row.doc, "", f"Returns: {row.answers}.", ""]
        if forms := [f"`.{form}({', '.join(row.parameters(form))})`" for form in _FORMS if row.parameters(form)]:
            lines += [f"Other forms: {', '.join(forms)}.", ""]
    return lines


_FORMS: tuple[Form, ...] = ("vector", "raw", "many", "key")


def _others() -> list[str]:
    return ["## Other registrations", "", *_table(("Reference", "Python", "Purpose"), OTHER_REGISTRATIONS)]
