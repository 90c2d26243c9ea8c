"""What agents are given: the `Watch` capability with its `reflect` and plan tools."""
