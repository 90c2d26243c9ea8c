"""The version of a journal's tables: looked up at every start, brought up to date when old.

Alembic takes half a second to import, so it is imported only where there is something to do.
"""

from typing import TYPE_CHECKING

from sqlalchemy import Connection, String, column, inspect, select, table

from midwatch_monitor.errors import JournalCorruptError, JournalError, JournalTooNewError
from midwatch_monitor.journal.engine import Store, explaining, transaction
from midwatch_monitor.journal.tables import REVISION, metadata

if TYPE_CHECKING:
    from alembic.config import Config


def prepare(store: Store) -> None:
    """Make the tables of `store` those of this version, or say why that cannot be."""
    with explaining(store.name):
        found = _found(store)
        if found == REVISION:
            return
        if store.writing is None:
            raise _unreadable(store.name, found)
        with transaction(store.writing) as connection:
            _upgrade(connection, store.name)


def _found(store: Store) -> str | None:
    """The revision as a reader sees it, who need not wait for a writer."""
    engine = store.reading or store.writing
    if engine is None:
        return None
    with engine.connect() as connection:
        return _revision(connection)


def _revision(connection: Connection) -> str | None:
    """The revision of the tables; `None` where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    query = select(column("version_num", String)).select_from(table("alembic_version"))
    return connection.execute(query).scalar()


def _unreadable(name: str, revision: str | None) -> JournalError:
    if revision is None:
        return JournalCorruptError(f"{name} is not a journal")
    if _known(revision):
        return JournalError(
            f"{name} was written by an older Midwatch: `midwatch run` brings it up to date"
        )
    return _too_new(name, revision)


def _upgrade(connection: Connection, name: str) -> None:
    # Asked again inside the transaction: another process may have been first.
    revision = _revision(connection)
    if revision == REVISION:
        return
    if revision is None:
        _refuse_strangers(connection, name)
    elif not _known(revision):
        raise _too_new(name, revision)
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _refuse_strangers(connection: Connection, name: str) -> None:
    taken = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
    if taken:
        raise JournalCorruptError(
            f"{name} is the database of another program (it has a table `{taken[0]}`)"
        )


def _known(revision: str) -> bool:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(alembic_config())
    return revision in {script.revision for script in scripts.walk_revisions()}


def _too_new(name: str, revision: str) -> JournalTooNewError:
    return JournalTooNewError(
        f"{name} was written by a newer Midwatch (its tables are at {revision}, this one knows "
        f"{REVISION}): update Midwatch, or name another journal"
    )


def alembic_config() -> "Config":
    """Where Alembic finds the migrations: inside the package, without a file of its own."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "midwatch_monitor.journal:migrations")
    config.set_main_option("path_separator", "os")
    return config
