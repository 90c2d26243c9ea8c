"""Sessions of agents that somebody else started, watched by their session files and hooks."""
