"""What each threshold would have cost and found over recorded runs, and thresholds from that."""
