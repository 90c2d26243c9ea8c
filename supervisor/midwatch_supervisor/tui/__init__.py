"""The operator's console. Without logic: it shows the journal and writes interventions."""
