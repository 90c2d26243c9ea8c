"""Sessions of agents that somebody else started, watched through session files, hooks and spans."""
