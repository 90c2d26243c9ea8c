"""What was learned, for people: lessons, facts, guidelines, and statistics about them."""
