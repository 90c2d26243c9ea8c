"""What agents get: the `Watch` capability with its `reflect` and plan tools."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midwatch_tools.watch import Watch

__all__ = ["Watch"]


def __getattr__(name: str) -> object:
    # `Watch` imports pydantic-ai, which takes a second; reading a journal does not need it.
    if name == "Watch":
        from midwatch_tools.watch import Watch

        return Watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
