"""Actions of a person on attempts, tasks and learned entries."""
