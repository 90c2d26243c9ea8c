"""Secrets in texts of others: found by their shape, by their name and by their value, and masked."""
