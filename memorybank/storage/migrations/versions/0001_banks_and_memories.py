"""The first schema: banks, their memories, and what was deleted from them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "banks",
        sa.Column("bank", sa.String(200), nullable=False),
        sa.Column("incarnation", sa.String(32), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("dimensions", sa.Integer, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("next_ordinal", sa.BigInteger, nullable=False),
        sa.Column("next_number", sa.BigInteger, nullable=False),
        sa.Column("capacity", sa.BigInteger, nullable=True),
        sa.Column("created", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("bank", name="pk_banks"),
    )
    op.create_table(
        "memories",
        sa.Column("bank", sa.String(200), nullable=False),
        sa.Column("ordinal", sa.BigInteger, nullable=False),
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.Column("use_count", sa.BigInteger, nullable=False),
        sa.Column("last_used", sa.String(40), nullable=True),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("text_hash", sa.String(64), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("actions", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("bank", "ordinal", name="pk_memories"),
        sa.UniqueConstraint("bank", "id", name="uq_memories_id"),
        sa.ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_memories_bank", ondelete="CASCADE"),
    )
    op.create_index("ix_memories_text", "memories", ["bank", "text_hash"])
    op.create_index("ix_memories_revision", "memories", ["bank", "revision"])
    op.create_index("ix_memories_use", "memories", ["bank", "state", "pinned", "use_count", "ordinal"])
    op.create_table(
        "deletions",
        sa.Column("bank", sa.String(200), nullable=False),
        sa.Column("ordinal", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("bank", "ordinal", name="pk_deletions"),
        sa.ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_deletions_bank", ondelete="CASCADE"),
    )
    op.create_index("ix_deletions_revision", "deletions", ["bank", "revision"])
