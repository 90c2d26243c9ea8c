"""The Learned tab: lessons, facts, guidelines, and statistics about them."""
