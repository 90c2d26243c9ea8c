"""What is learned, as a person sees it: lessons, facts, guidelines, and what they are worth."""
