"""The append-only log: tables, one writer, pages of entries."""
