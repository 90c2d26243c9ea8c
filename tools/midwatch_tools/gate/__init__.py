"""The gate: what a worker must report before a call may run."""
