"""What the console shows, folded from the journal. Nothing is drawn here."""
