"""What is known about attempts and how they are judged; no agents, no user interface."""
