"""One run: its tasks, their attempts, and what becomes of them."""
