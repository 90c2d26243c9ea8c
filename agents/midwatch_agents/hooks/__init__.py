"""Hooks of agents that a person starts: their events, and the answers to them.

`client` is the command that hooks call; it imports only the standard library. The rest is for the
listener (`events`) and for installation (`adapters`, `settings_file`).
"""
