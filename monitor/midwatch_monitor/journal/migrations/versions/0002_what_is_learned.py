"""Projects, and an index of what was learned."""

import json
from collections.abc import Iterator
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Written out, not imported: a migration must not change when the tables do.
IDENTIFIER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MOMENT = sa.DateTime(timezone=True)
OVER = {"completed", "failed", "canceled", "rejected"}
REJECTED = {"unaccepted", "stuck", "restarted", "out-of-budget"}


def upgrade() -> None:
    """Create the tables, and fill them from the journal."""
    _projects()
    _lessons()
    _lesson_uses()
    _facts()
    _guidelines()
    _looks_back()
    _chores()
    _erasures()
    op.create_index("escalation_attempt_ix", "escalation", ["attempt"])
    if op.get_bind().dialect.name == "sqlite":
        _words_in_sqlite()
    else:
        _words_in_postgresql()
    _fill_projects()
    _fill_chores()


def downgrade() -> None:
    """Drop the tables; the log keeps everything."""
    if op.get_bind().dialect.name == "sqlite":
        op.drop_table("lesson_text_words")
        op.drop_table("fact_text_words")
    for name in (
        *("lesson_text", "fact_text", "erasure", "chore", "reflection", "summary", "guidelines"),
        *("fact_source", "fact_tag", "fact", "lesson_use", "lesson_source", "lesson_tag", "lesson"),
    ):
        op.drop_table(name)
    op.drop_index("escalation_attempt_ix", "escalation")
    for column in ("project", "trial_of"):
        op.drop_index(f"task_{column}_ix", "task")
        op.drop_column("task", column)
    op.drop_table("project")


def _projects() -> None:
    op.create_table(
        "project",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="project_pk"),
        sa.UniqueConstraint("name", name="project_name_uq"),
        sqlite_autoincrement=True,
    )
    # In SQL, so that SQLite does not copy the table.
    kind = "INTEGER" if op.get_bind().dialect.name == "sqlite" else "BIGINT"
    for column in ("project", "trial_of"):
        op.execute(
            f"ALTER TABLE task ADD COLUMN {column} {kind} "
            f"CONSTRAINT task_{column}_fk REFERENCES project (id)"
        )
        op.create_index(f"task_{column}_ix", "task", [column])


def _lessons() -> None:
    op.create_table(
        "lesson",
        *_made_from("lesson", "entry"),
        sa.Column("task", sa.Text, nullable=False),
        *_belonging("lesson", "project", "attempt"),
        sa.Column("verdict", IDENTIFIER, nullable=True),
        sa.Column("obsolete", sa.Boolean, nullable=False),
        sa.Column("rating", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(["verdict"], ["entry.id"], name="lesson_verdict_fk"),
    )
    for columns in (
        ["project", "task", "obsolete", "entry"],
        ["project", "entry"],
        ["attempt"],
        ["verdict"],
    ):
        op.create_index(f"lesson_{'_'.join(columns)}_ix", "lesson", columns)
    _tags("lesson")
    _sources("lesson")


def _lesson_uses() -> None:
    op.create_table(
        "lesson_use",
        *_joining("lesson_use", ("lesson", "lesson.entry"), ("attempt", "attempt.id")),
        sa.Column("method", sa.String(10), nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("accepted", sa.Boolean, nullable=True),
        sa.Column("origin", sa.String(10), nullable=True),
        sa.PrimaryKeyConstraint("lesson", "attempt", name="lesson_use_pk"),
        sa.CheckConstraint(
            "method IN ('task', 'tags', 'kind', 'files', 'text', 'manual')",
            name="lesson_use_method",
        ),
    )
    op.create_index("lesson_use_attempt_ix", "lesson_use", ["attempt"])


def _facts() -> None:
    op.create_table(
        "fact",
        *_made_from("fact", "entry"),
        *_belonging("fact", "project", "attempt"),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("live", sa.Boolean, nullable=False),
        sa.Column("ended", sa.String(10), nullable=True),
        sa.Column("instead", IDENTIFIER, nullable=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["instead"], ["fact.entry"], name="fact_instead_fk"),
    )
    for columns in (["project", "entry"], ["attempt"], ["instead"]):
        op.create_index(f"fact_{'_'.join(columns)}_ix", "fact", columns)
    _tags("fact")
    _sources("fact")


def _guidelines() -> None:
    op.create_table(
        "guidelines",
        *_made_from("guidelines", "entry"),
        *_belonging("guidelines", "project"),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("before", IDENTIFIER, nullable=True),
        sa.Column("decided_at", MOMENT, nullable=True),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["before"], ["guidelines.entry"], name="guidelines_before_fk"),
        sa.UniqueConstraint("project", "version", name="guidelines_project_version_uq"),
    )
    op.create_index("guidelines_before_ix", "guidelines", ["before"])
    op.create_index(
        "guidelines_live",
        "guidelines",
        ["project"],
        unique=True,
        sqlite_where=sa.text("state = 'live'"),
        postgresql_where=sa.text("state = 'live'"),
    )


def _looks_back() -> None:
    op.create_table(
        "summary",
        *_made_from("summary", "entry"),
        *_belonging("summary", "project", "attempt"),
        sa.UniqueConstraint("attempt", name="summary_attempt_uq"),
    )
    op.create_table(
        "reflection",
        *_made_from("reflection", "entry"),
        *_belonging("reflection", "project"),
        sa.Column("watermark", IDENTIFIER, nullable=False),
    )
    for name in ("summary", "reflection"):
        op.create_index(f"{name}_project_entry_ix", name, ["project", "entry"])


def _chores() -> None:
    op.create_table(
        "chore",
        sa.Column("about", IDENTIFIER, nullable=False, autoincrement=False),
        sa.Column("chore", sa.String(10), nullable=False),
        *_belonging("chore", "project", "attempt"),
        sa.Column("open", sa.Boolean, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("about", "chore", name="chore_pk"),
        sa.ForeignKeyConstraint(["about"], ["entry.id"], name="chore_about_fk"),
    )
    for column in ("project", "attempt"):
        op.create_index(f"chore_{column}_ix", "chore", [column])
    op.create_index(
        "chore_open",
        "chore",
        ["about"],
        sqlite_where=sa.text("open"),
        postgresql_where=sa.text("open"),
    )


def _erasures() -> None:
    op.create_table(
        "erasure",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("tasks", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="erasure_pk"),
        sqlite_autoincrement=True,
    )


def _made_from(table: str, key: str) -> list[Any]:
    return [
        sa.Column(key, IDENTIFIER, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint(key, name=f"{table}_pk"),
        sa.ForeignKeyConstraint([key], ["entry.id"], name=f"{table}_{key}_fk"),
    ]


def _belonging(table: str, *owners: str) -> list[Any]:
    return [
        part
        for owner in owners
        for part in (
            sa.Column(owner, IDENTIFIER, nullable=False),
            sa.ForeignKeyConstraint([owner], [f"{owner}.id"], name=f"{table}_{owner}_fk"),
        )
    ]


def _joining(table: str, *keys: tuple[str, str]) -> list[Any]:
    return [
        part
        for name, target in keys
        for part in (
            sa.Column(name, IDENTIFIER, nullable=False, autoincrement=False),
            sa.ForeignKeyConstraint([name], [target], name=f"{table}_{name}_fk"),
        )
    ]


def _tags(what: str) -> None:
    table = f"{what}_tag"
    op.create_table(
        table,
        *_joining(table, ("project", "project.id"), (what, f"{what}.entry")),
        sa.Column("tag", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "tag", what, name=f"{table}_pk"),
    )
    op.create_index(f"{table}_{what}_ix", table, [what])


def _sources(what: str) -> None:
    table = f"{what}_source"
    op.create_table(
        table,
        *_joining(table, (what, f"{what}.entry"), ("attempt", "attempt.id")),
        sa.PrimaryKeyConstraint(what, "attempt", name=f"{table}_pk"),
    )
    op.create_index(f"{table}_attempt_ix", table, ["attempt"])


def _words_in_sqlite() -> None:
    # The words are already split and folded; `ascii` treats all other letters as parts of words.
    for name in ("lesson_text", "fact_text"):
        op.execute(
            f"CREATE VIRTUAL TABLE {name} USING fts5"
            """(text, more, tags, tokenize = "ascii tokenchars '_'")"""
        )
        op.execute(f"INSERT INTO {name} ({name}, rank) VALUES ('rank', 'bm25(4, 2, 1)')")
        op.execute(f"CREATE VIRTUAL TABLE {name}_words USING fts5vocab({name}, row)")


def _words_in_postgresql() -> None:
    for name in ("lesson_text", "fact_text"):
        op.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)")
        op.execute(f"CREATE INDEX {name}_words_ix ON {name} USING gin (words)")


def _fill_projects() -> None:
    """Give every task that worked in a folder the project of that name."""
    connection = op.get_bind()
    found = {
        row.id: name
        for row in connection.execute(sa.text("SELECT id, spec FROM task"))
        if (name := _project(row.spec))
    }
    for name in dict.fromkeys(found.values()):
        connection.execute(sa.text("INSERT INTO project (name) VALUES (:name)"), {"name": name})
    change = sa.text(
        "UPDATE task SET project = (SELECT id FROM project WHERE name = :name) WHERE id = :task"
    )
    for task, name in found.items():
        connection.execute(change, {"name": name, "task": task})


def _project(spec: str) -> str:
    said = _said(spec).get("workspace")
    return said if isinstance(said, str) else ""


def _said(body: str) -> dict[str, Any]:
    try:
        said: Any = json.loads(body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}  # JSON keys are texts


def _fill_chores() -> None:
    """Add open chores: nothing was learned from the journal yet."""
    rows = [
        {"about": row.id, "chore": chore, "project": row.project, "attempt": row.attempt}
        for row in op.get_bind().execute(
            sa.text(
                "SELECT entry.id, entry.kind, entry.body, entry.attempt, task.project"
                " FROM entry JOIN task ON task.id = entry.task"
                " WHERE entry.kind IN ('attempt_state', 'feedback')"
                " AND entry.attempt IS NOT NULL AND task.project IS NOT NULL"
            )
        )
        for chore in _chores_of(row.kind, _said(row.body))
    ]
    if rows:
        statement = (
            "INSERT INTO chore (about, chore, project, attempt, open, tries)"
            " VALUES (:about, :chore, :project, :attempt, :open, 0)"
        )
        op.get_bind().execute(sa.text(statement), [{**row, "open": True} for row in rows])


def _chores_of(kind: str, said: dict[str, Any]) -> Iterator[str]:
    if kind == "feedback":
        if not said.get("accepted") and said.get("origin", "explicit") != "automatic":
            yield "lesson"
        return
    if said.get("lifecycle") in OVER:
        yield "summary"
        if said.get("ending") in REJECTED:
            yield "lesson"
