"""Calling people who do not look: what is news, when it is told, how it is said, by which way."""
