"""Several machines on one journal: nodes, monitors, the queue of turns, and work that moves."""
