"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Written out, not imported: a migration must not change when the tables do.
IDENTIFIER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create all tables."""
    _runs_and_tasks()
    _attempts()
    _entries()
    _histories()
    _escalations()


def downgrade() -> None:
    """Drop all tables."""
    for name in ("escalation", "result", "message", "entry", "lease", "attempt", "task", "run"):
        op.drop_table(name)


def _runs_and_tasks() -> None:
    op.create_table(
        "run",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="run_pk"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "task",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("run", IDENTIFIER, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="task_pk"),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="task_run_fk"),
        sa.UniqueConstraint("run", "name", name="task_run_name_uq"),
        sqlite_autoincrement=True,
    )


def _attempts() -> None:
    op.create_table(
        "attempt",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("task", IDENTIFIER, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="attempt_pk"),
        sa.ForeignKeyConstraint(["task"], ["task.id"], name="attempt_task_fk"),
        sa.UniqueConstraint("task", "number", name="attempt_task_number_uq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "lease",
        sa.Column("attempt", IDENTIFIER, nullable=False, autoincrement=False),
        sa.Column("incarnation", sa.Integer, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("attempt", name="lease_pk"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name="lease_attempt_fk"),
    )


def _entries() -> None:
    op.create_table(
        "entry",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("task", IDENTIFIER, nullable=False),
        sa.Column("attempt", IDENTIFIER, nullable=True),
        sa.Column("seq", sa.Integer, nullable=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="entry_pk"),
        sa.ForeignKeyConstraint(["task"], ["task.id"], name="entry_task_fk"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name="entry_attempt_fk"),
        sa.UniqueConstraint("attempt", "seq", name="entry_attempt_seq_uq"),
        sqlite_autoincrement=True,
    )
    for of in ("attempt", "task", "kind"):
        op.create_index(f"entry_{of}_id_ix", "entry", [of, "id"])


def _histories() -> None:
    op.create_table(
        "message",
        sa.Column("attempt", IDENTIFIER, nullable=False, autoincrement=False),
        sa.Column("idx", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("attempt", "idx", name="message_pk"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name="message_attempt_fk"),
    )
    op.create_table(
        "result",
        sa.Column("attempt", IDENTIFIER, nullable=False, autoincrement=False),
        sa.Column("call", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("attempt", "call", name="result_pk"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name="result_attempt_fk"),
    )


def _escalations() -> None:
    op.create_table(
        "escalation",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("attempt", IDENTIFIER, nullable=False),
        sa.Column("opened_at", MOMENT, nullable=False),
        sa.Column("closed_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="escalation_pk"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name="escalation_attempt_fk"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "escalation_open",
        "escalation",
        ["attempt"],
        unique=True,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
