"""Expressions in CEL, the Common Expression Language, as objects of Kubernetes carry them."""

from stromboli.cel.program import CelError, Program, message, program, unsupported

__all__ = ["CelError", "Program", "message", "program", "unsupported"]
