"""What is decided about an attempt, by a policy, a model or an answer to the worker."""
