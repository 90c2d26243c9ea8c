"""The differences on PostgreSQL."""
