"""Everything known about attempts, and every judgement on them; no agents, no screen."""
