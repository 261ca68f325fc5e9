"""API keys of the hosted service."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _text(length: int) -> sa.types.TypeEngine[str]:
    """Return a type for texts that are compared by their bytes on both engines."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table of keys."""
    op.create_table(
        "api_keys",
        sa.Column("id", _text(16), nullable=False),
        sa.Column("label", _text(200), nullable=False),
        sa.Column("namespace", _text(64), nullable=False),
        sa.Column("access", _text(8), nullable=False),
        sa.Column("secret_hash", _text(64), nullable=False),
        sa.Column("created", _text(40), nullable=False),
        sa.Column("revoked", _text(40), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
    )
