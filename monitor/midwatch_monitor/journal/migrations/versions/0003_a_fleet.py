"""Several machines: who supervises a run, leases of monitors, nodes, and saved work."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

OLDEST = "0003"
"""The oldest revision whose Midwatch can work with the tables after this one."""

# Written out, not imported: a migration must not change when the tables do.
IDENTIFIER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables. Existing runs were supervised by their own processes."""
    op.add_column(
        "run", sa.Column("keeper", sa.String(10), nullable=False, server_default="process")
    )
    _submissions()
    _leases()
    _nodes()
    op.create_table(
        "bundle",
        sa.Column("attempt", IDENTIFIER, nullable=False, autoincrement=False),
        sa.Column("commit", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("attempt", name="bundle_pk"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name="bundle_attempt_fk"),
    )
    op.create_table(
        "receipt",
        sa.Column("writer", sa.Text, nullable=False),
        sa.Column("number", IDENTIFIER, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("writer", name="receipt_pk"),
    )
    made = op.create_table(
        "compatibility",
        sa.Column("oldest", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("oldest", name="compatibility_pk"),
    )
    op.bulk_insert(made, [{"oldest": OLDEST}])


def downgrade() -> None:
    """Drop the tables; the log keeps everything but saved work."""
    for name in ("compatibility", "receipt", "bundle", "node", "post", "guard", "submission"):
        op.drop_table(name)
    op.drop_column("run", "keeper")


def _submissions() -> None:
    op.create_table(
        "submission",
        sa.Column("fleet", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("run", IDENTIFIER, nullable=False),
        sa.PrimaryKeyConstraint("fleet", "key", name="submission_pk"),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="submission_run_fk"),
    )
    op.create_index("submission_run_ix", "submission", ["run"])


def _leases() -> None:
    op.create_table(
        "guard",
        sa.Column("attempt", IDENTIFIER, nullable=False, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("incarnation", sa.Integer, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("attempt", name="guard_pk"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name="guard_attempt_fk"),
    )
    op.create_table(
        "post",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("incarnation", sa.Integer, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="post_pk"),
    )


def _nodes() -> None:
    op.create_table(
        "node",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("boot", sa.Text, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.Column("busy", sa.Integer, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("revision", sa.Text, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("beat_at", MOMENT, nullable=False),
        sa.Column("doubted_at", MOMENT, nullable=True),
        sa.Column("fleet", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", "boot", name="node_pk"),
    )
