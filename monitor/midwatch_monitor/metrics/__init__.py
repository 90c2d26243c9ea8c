"""Figures about finished and running tasks, folded from the journal. Pure."""
