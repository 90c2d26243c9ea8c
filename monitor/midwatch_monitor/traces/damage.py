"""A part of a trace that cannot be read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A line that is skipped, and why. Lines count from 1."""

    line: int
    problem: str
