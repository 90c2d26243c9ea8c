"""The operator's console. It has no logic: it shows the journal and writes interventions."""
