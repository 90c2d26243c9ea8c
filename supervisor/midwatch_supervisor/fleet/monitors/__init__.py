"""Monitors of a fleet: leases, leader roles, runs to follow."""
