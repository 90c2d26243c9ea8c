"""The console's state, folded from the journal. Nothing is drawn here."""
