"""What agents are given: the `Watch` capability with its `reflect` and plan tools."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midwatch_tools.watch import Watch

__all__ = ["Watch"]


def __getattr__(name: str) -> object:
    # With it comes pydantic-ai, which takes a second: who only reads a journal needs neither.
    if name == "Watch":
        from midwatch_tools.watch import Watch

        return Watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
