"""The state of attempts, tasks, runs and interventions, folded from their entries. Pure."""
