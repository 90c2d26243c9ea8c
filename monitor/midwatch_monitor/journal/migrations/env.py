"""Run by Alembic: applies the migrations in the given connection's transaction."""

from alembic import context
from sqlalchemy import Connection

from midwatch_monitor.journal.core.tables import metadata

connection: Connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    # SQLite can change a column only by copying the table.
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()
