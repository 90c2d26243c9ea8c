"""Commands for a fleet."""
