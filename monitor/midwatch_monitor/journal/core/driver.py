"""The driver of SQLite, asked directly: SQLAlchemy takes several times as long as SQLite needs.

Only for the few statements of every commit, within a transaction that SQLAlchemy has begun. What
the driver raises is raised as SQLAlchemy would have.
"""

import sqlite3
from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


def execute(
    connection: Connection, statement: str, values: Sequence[object] = ()
) -> sqlite3.Cursor:
    """Have one statement done over a connection to SQLite."""
    own = connection.connection.dbapi_connection
    if not isinstance(own, sqlite3.Connection):
        raise TypeError("the connection does not lead to SQLite")
    try:
        return own.execute(statement, values)
    except sqlite3.Error as error:
        raise DBAPIError.instance(
            statement, None, error, sqlite3.Error, dialect=connection.dialect
        ) from error
