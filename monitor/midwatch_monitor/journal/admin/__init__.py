"""Checks, copies and erases journals."""
