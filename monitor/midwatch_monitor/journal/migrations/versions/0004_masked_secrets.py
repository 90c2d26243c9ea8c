"""The key of the marks that stand in the place of secrets."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Draw the key. Who does not know the column goes on as before, and masks nothing."""
    op.add_column(
        "compatibility", sa.Column("mask_key", sa.Text, nullable=False, server_default="")
    )
    compatibility = sa.table("compatibility", sa.column("mask_key", sa.Text))
    op.execute(compatibility.update().values(mask_key=secrets.token_hex(32)))


def downgrade() -> None:
    """Forget the key: what is masked stays so."""
    op.drop_column("compatibility", "mask_key")
