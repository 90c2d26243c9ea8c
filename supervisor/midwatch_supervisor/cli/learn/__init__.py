"""Commands for what was learned."""
