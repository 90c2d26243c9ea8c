"""Decisions about attempts, by the policy or a model, and answers to worker requests."""
