"""Finds secrets in texts by shape, by name and by value, and masks them."""
