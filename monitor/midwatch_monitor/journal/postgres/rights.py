"""Checks what a PostgreSQL role may do with a journal, before any work begins.

Otherwise a missing permission would surface again and again during the work. Only common
permissions are checked: deletion is rarely needed, and a missing right is reported then.
"""

import re
from dataclasses import dataclass

from sqlalchemy import Connection, text

from midwatch_monitor.errors import JournalAccessError, JournalReadOnlyError
from midwatch_monitor.journal.core.tables import NUMBERED, compatibility, metadata

ENCODING = "UTF8"
"""Encoding of a journal's database: workers and models write in all languages."""
_TABLES = sorted({"alembic_version", *(table.name for table in metadata.sorted_tables)})
_SEQUENCES = [f"{table.name}_id_seq" for table in NUMBERED]
_FIXED = ["alembic_version", compatibility.name]
"""Tables that only an upgrade, run by their owner, inserts into."""
# Writers lock the row of `compatibility`, for which PostgreSQL requires the right to update it.
_RIGHTS = text(
    """
    SELECT quote_ident(current_user) AS role,
        current_schema() AS schema,
        coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS makes,
        current_setting('server_encoding') AS encoding,
        current_setting('search_path') AS path,
        current_setting('transaction_read_only') = 'on' AS fixed,
        pg_is_in_recovery() AS standby,
        quote_ident(min(relnamespace::regnamespace::text)) AS home,
        coalesce(bool_and(relkind = 'S' OR has_table_privilege(oid, 'SELECT')), true) AS reads,
        coalesce(bool_and(CASE
            WHEN relkind = 'S' THEN has_sequence_privilege(oid, 'USAGE')
            WHEN relname = 'alembic_version' THEN true
            ELSE has_table_privilege(oid, 'UPDATE')
                AND (relname = ANY(:fixed) OR has_table_privilege(oid, 'INSERT'))
        END), true) AS writes
    FROM pg_class
    WHERE pg_table_is_visible(oid)
        AND (relkind = 'r' AND relname = ANY(:tables)
            OR relkind = 'S' AND relname = ANY(:sequences))
    """
)
_DENIED = re.compile(r'permission denied for (table|sequence|schema|database) "?([^"\s]+)')
_GRANTS = {
    "table": "SELECT, INSERT, UPDATE, DELETE ON",
    "sequence": "USAGE, SELECT ON SEQUENCE",
    "schema": "USAGE, CREATE ON SCHEMA",
    "database": "CONNECT, CREATE ON DATABASE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What the role of a connection may do."""

    role: str
    schema: str | None
    """The schema it would create tables in; `None` if it may use none in its search path."""
    makes: bool
    """Whether it may create tables there."""
    encoding: str
    path: str
    """The search path."""
    fixed: bool
    """Whether its transactions are read-only, whatever it was granted."""
    standby: bool
    """Whether the server is a standby."""
    home: str | None
    """The schema of the journal's tables; `None` if it sees none."""
    reads: bool
    writes: bool


def rights_of(connection: Connection) -> Rights:
    """Return what the role of a PostgreSQL connection may do."""
    names = {"tables": _TABLES, "sequences": _SEQUENCES, "fixed": _FIXED}
    return Rights(**connection.execute(_RIGHTS, names).mappings().one())


def require_reading(connection: Connection, name: str) -> None:
    """Raise JournalAccessError if the role may not read the existing tables."""
    rights = rights_of(connection)
    if rights.schema is None and rights.home is None:
        raise JournalAccessError(
            f"{name}: the role {rights.role} may not use any schema of its search path "
            f"({rights.path}): its owner can `GRANT USAGE ON SCHEMA public TO {rights.role}`"
        )
    if not rights.reads:
        raise JournalAccessError(
            f"{name}: the role {rights.role} may not read it: its owner can `GRANT SELECT ON ALL "
            f"TABLES IN SCHEMA {rights.home} TO {rights.role}`"
        )


def require_writing(connection: Connection, name: str) -> None:
    """Raise JournalReadOnlyError if the role may not write to the existing tables."""
    rights = rights_of(connection)
    if rights.standby:
        raise JournalReadOnlyError(
            f"{name} is a standby, which cannot be written to: name the primary; if a URL has "
            "several hosts, `target_session_attrs=read-write` finds it"
        )
    if rights.fixed:
        raise JournalReadOnlyError(
            f"{name}: the role {rights.role} may only read: `ALTER ROLE {rights.role} SET "
            "default_transaction_read_only = off` lets it write"
        )
    if not rights.writes:
        on, to = f"IN SCHEMA {rights.home}", f"TO {rights.role}"
        raise JournalReadOnlyError(
            f"{name}: the role {rights.role} may only read: its owner can `GRANT SELECT, INSERT, "
            f"UPDATE, DELETE ON ALL TABLES {on} {to}` and `GRANT USAGE, SELECT ON ALL SEQUENCES "
            f"{on} {to}`"
        )


def require_making(connection: Connection, name: str) -> None:
    """Raise JournalAccessError if no journal can be created in an empty database."""
    rights = rights_of(connection)
    if rights.encoding != ENCODING:
        raise JournalAccessError(
            f"{name} has the encoding {rights.encoding}, and a journal needs {ENCODING}: "
            f"`createdb --encoding={ENCODING} --template=template0` creates such a database"
        )
    if not rights.makes:
        schema = rights.schema or "public"
        raise JournalReadOnlyError(
            f"{name} is empty, and the role {rights.role} may not create tables in it: its "
            f"owner can `GRANT USAGE, CREATE ON SCHEMA {schema} TO {rights.role}`"
        )


def advice_on(denied: str) -> str:
    """Return how to grant a permission that PostgreSQL denied. Pure."""
    found = _DENIED.search(denied)
    if found is None:
        return "do it as the role that owns the tables"
    return f"its owner can `GRANT {_GRANTS[found[1]]} {found[2]} TO …`"
