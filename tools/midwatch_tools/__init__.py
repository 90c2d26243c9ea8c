"""What agents are given: the `Watch` capability with its `reflect` and plan tools."""

from midwatch_tools.watch import Watch

__all__ = ["Watch"]
