"""Midwatch and the published loop detectors, side by side on the same runs."""
