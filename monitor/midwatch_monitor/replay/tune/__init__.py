"""Chooses thresholds by what each would have cost and found in recorded runs."""
