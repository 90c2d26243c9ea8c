"""What is different on PostgreSQL."""
