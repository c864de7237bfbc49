"""Expressions in CEL, the Common Expression Language, as objects of Kubernetes carry them."""

from stromboli.cel.program import DEEPEST, LONGEST, MOST_READ, MOST_STEPS, CelError, Program, program, unsupported

__all__ = ["DEEPEST", "LONGEST", "MOST_READ", "MOST_STEPS", "CelError", "Program", "program", "unsupported"]
