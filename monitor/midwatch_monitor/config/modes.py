"""Choices in the configuration that other code refers to without reading the configuration."""

from enum import StrEnum


class Mode(StrEnum):
    """How far Midwatch acts by itself."""

    OFF = "off"
    """Only record: no rule is judged."""
    ADVISE = "advise"
    """Judge and decide, but deliver nothing until an operator approves."""
    ACT = "act"
    """Deliver decisions."""


class Sandbox(StrEnum):
    """The sandbox for workers' commands."""

    DEFAULT = "default"
    """Required if nobody watches the start (headless, or a node of a fleet), otherwise auto."""
    AUTO = "auto"
    """bubblewrap if it works, otherwise none; the start says which."""
    REQUIRED = "required"
    """Refuse to start without bubblewrap."""
    OFF = "off"
    """No sandbox."""


class Synchronous(StrEnum):
    """What SQLite waits for at a commit."""

    NORMAL = "normal"
    """Survives a killed process."""
    FULL = "full"
    """Also survives a power loss."""
