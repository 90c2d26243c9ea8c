"""The tools that `Watch` gives to a worker."""
