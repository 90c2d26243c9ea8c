"""Presents the journal to people and programs."""
