"""Commands with which a person acts on an attempt."""
