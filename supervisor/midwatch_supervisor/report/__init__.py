"""The report: its sections, and their output as text, HTML and JSON lines."""
