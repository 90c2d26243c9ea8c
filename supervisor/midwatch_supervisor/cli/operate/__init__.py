"""Commands by which a person acts on an attempt."""
