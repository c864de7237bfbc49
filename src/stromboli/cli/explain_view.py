"""A job's way through the cycle as people read it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from stromboli.cli.terminal import indented
from stromboli.sim.explanation.explain import Explanation
from stromboli.sim.explanation.step import Step

ANSWERS = {True: ("yes", "green"), False: ("NO", "bold red"), None: ("-", "dim")}
INDENT = 20
"""Columns before the details of a step."""


def show_explanation(console: Console, found: Explanation) -> None:
    """Print the steps, and what would help."""
    style = "bold green" if found.step is None and not found.cause else "bold red"
    console.print(Text.assemble("job ", (found.job, "bold"), ": ", (found.verdict, style)))
    facts = f"queue {found.queue or '-'}, priority {found.priority}, phase {found.phase}, "
    console.print(Text(f"{facts}{found.bound} of {found.pods} pods bound, minAvailable {found.needed}", style="dim"))
    for step in found.steps:
        _show_step(console, step)
    if found.cause:
        _show_help(console, found)


def _show_step(console: Console, step: Step) -> None:
    word, style = ANSWERS[step.ok]
    head = Text.assemble(f" {step.n} {step.name:<10} ", (f"{word:<5}", style))
    first, *rest = Text(step.text).wrap(console, max(console.width - INDENT, 20)) or [Text("")]
    first.rstrip()
    console.print(Text.assemble(head, " ", first))
    for line in (*map(str, rest), *step.lines):
        deeper = len(line) - len(line.lstrip())
        indented(console, line.strip(), INDENT + deeper)


def _show_help(console: Console, found: Explanation) -> None:
    if found.would_help:
        console.print(Text(" would help, each alone (confirmed by a cycle on the changed cluster):"))
    elif found.tried:
        console.print(Text(f" would help: nothing of what was tried ({', '.join(found.tried)})", style="dim"))
    for change in found.would_help:
        indented(console, f"- {change}", 3)
    if found.untried:
        console.print(Text(f" not tried for want of time: {found.untried} more sorts of change", style="dim"))
