"""Check, copy and erase."""
