"""Lessons, facts and guidelines: indexes over the log, and what is still to be learned."""
