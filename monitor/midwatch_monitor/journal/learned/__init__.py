"""Lessons, facts and guidelines: indexes over the log, and what remains to be learned."""
