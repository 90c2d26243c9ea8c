"""Several machines on one journal: nodes, monitors, what is handed out, work that moves."""
