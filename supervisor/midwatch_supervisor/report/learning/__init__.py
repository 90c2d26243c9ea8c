"""What came of what is learned, as sections and lines of a report of its own."""
