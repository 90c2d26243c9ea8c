"""Recorded runs judged by the rules, timelines in YAML, and tuning of thresholds."""
