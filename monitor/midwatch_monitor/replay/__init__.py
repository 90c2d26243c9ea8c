"""Recorded runs judged by the rules, timelines in YAML, and what thresholds would have found."""
