"""Nodes, leases, submitted runs, saved work."""
