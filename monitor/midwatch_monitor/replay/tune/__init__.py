"""What each threshold would have cost and found in recorded runs, and thresholds chosen by that."""
