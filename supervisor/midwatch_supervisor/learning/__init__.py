"""What is done about learning: verdicts looked for, lessons written, guidelines proposed."""
