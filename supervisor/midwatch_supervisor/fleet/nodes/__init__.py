"""Nodes, and the turns that they take."""
