"""What workers remember: lessons, guidelines, facts. Only decides; nothing is stored here."""
