"""Learning from ended attempts: implied verdicts, lessons, facts, guidelines."""
