"""Commands for the configuration, the database and this machine."""
