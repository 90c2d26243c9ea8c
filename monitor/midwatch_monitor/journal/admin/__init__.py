"""Checks, copies and erases."""
