"""What came of the tasks, as a page: its sections, and their drawing as text, HTML and lines."""
