"""The key for marks of masked secrets."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the key. Versions that do not know the column continue without masking."""
    op.add_column(
        "compatibility", sa.Column("mask_key", sa.Text, nullable=False, server_default="")
    )
    compatibility = sa.table("compatibility", sa.column("mask_key", sa.Text))
    op.execute(compatibility.update().values(mask_key=secrets.token_hex(32)))


def downgrade() -> None:
    """Drop the key: masked texts stay masked."""
    op.drop_column("compatibility", "mask_key")
