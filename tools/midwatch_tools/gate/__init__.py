"""What must be said before a call may run."""
