"""Midwatch's server for the Model Context Protocol: its tools, and who may call them."""
