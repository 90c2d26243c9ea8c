"""Agents that a person starts: what they call at their hooks, what they say there, how to answer.

`client` is the called command and imports the standard library alone. Everything else is for the
one who listens (`events`) and for installing (`adapters`, `settings_file`).
"""
