"""Commands that run tasks."""
