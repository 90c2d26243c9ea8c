"""One run: its tasks, their attempts, and how they end."""
