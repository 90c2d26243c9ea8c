"""Replays recorded runs through the rules, checks timelines in YAML, and tunes thresholds."""
