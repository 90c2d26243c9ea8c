"""Commands that look after the configuration and the database."""
