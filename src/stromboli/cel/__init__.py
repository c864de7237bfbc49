"""Expressions in CEL, the Common Expression Language, as objects of Kubernetes carry them."""

from stromboli.cel.program import CelError, Program, message, mistake, program, unsupported

__all__ = ["CelError", "Program", "message", "mistake", "program", "unsupported"]
