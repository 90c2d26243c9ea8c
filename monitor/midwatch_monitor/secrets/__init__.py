"""Secrets in texts of others: found by shape, by name and by value, and masked."""
