"""What workers remember: lessons, guidelines, facts. Deciding only; nothing is stored here."""
