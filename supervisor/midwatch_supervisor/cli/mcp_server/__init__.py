"""Midwatch for other programs, by the Model Context Protocol: its tools, and who may call them."""
