"""A node and the turns that it takes."""
