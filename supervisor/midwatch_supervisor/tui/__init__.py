"""The operator's console. It holds no logic: it shows the journal and writes interventions."""
