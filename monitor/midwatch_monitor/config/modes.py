"""The choices of the configuration that other code knows without reading any of it."""

from enum import StrEnum


class Mode(StrEnum):
    """How far Midwatch goes by itself."""

    OFF = "off"
    """Record only: no rule is judged."""
    ADVISE = "advise"
    """Judge and decide, and deliver nothing until an operator approves."""
    ACT = "act"
    """Deliver what was decided."""


class Sandbox(StrEnum):
    """What commands of workers run in."""

    DEFAULT = "default"
    """Required where nobody watches the start (headless, a node of a fleet), else auto."""
    AUTO = "auto"
    """bubblewrap where it works, else none; the start says which."""
    REQUIRED = "required"
    """Refuse to start without bubblewrap."""
    OFF = "off"
    """None."""


class Synchronous(StrEnum):
    """What SQLite waits for at a commit."""

    NORMAL = "normal"
    """Survives a killed process."""
    FULL = "full"
    """Survives a power loss too."""
