"""The console's screens and panes."""
