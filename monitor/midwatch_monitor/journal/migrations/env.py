"""What Alembic runs: the migrations, on the connection and in the transaction that it is given."""

from alembic import context
from sqlalchemy import Connection

from midwatch_monitor.journal.core.tables import metadata

connection: Connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    # SQLite changes a column only by copying the table.
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()
