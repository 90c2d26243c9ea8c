"""A part of a trace that cannot be read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A part that is skipped, and why."""

    line: int
    """From 1: of the file, or of the entries where the trace is one JSON document."""
    problem: str
