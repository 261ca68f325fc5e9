"""The first schema: banks, their memories, and what was deleted from them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _text(length: int | None = None) -> sa.types.TypeEngine[str]:
    """Return a type for texts that are compared by their bytes on both engines."""
    kind = sa.Text if length is None else sa.String
    return kind(length).with_variant(kind(length, collation="C"), "postgresql")


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "banks",
        sa.Column("bank", _text(200), nullable=False),
        sa.Column("incarnation", _text(32), nullable=False),
        sa.Column("model", _text(), nullable=False),
        sa.Column("dimensions", sa.Integer, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("next_ordinal", sa.BigInteger, nullable=False),
        sa.Column("next_number", sa.BigInteger, nullable=False),
        sa.Column("capacity", sa.BigInteger, nullable=True),
        sa.Column("created", _text(40), nullable=False),
        sa.PrimaryKeyConstraint("bank", name="pk_banks"),
    )
    op.create_table(
        "memories",
        sa.Column("bank", _text(200), nullable=False),
        sa.Column("ordinal", sa.BigInteger, nullable=False),
        sa.Column("id", _text(200), nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("state", _text(16), nullable=False),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.Column("use_count", sa.BigInteger, nullable=False),
        sa.Column("last_used", _text(40), nullable=True),
        sa.Column("created", _text(40), nullable=False),
        sa.Column("model", _text(), nullable=False),
        sa.Column("text_hash", _text(64), nullable=False),
        sa.Column("text", _text(), nullable=False),
        sa.Column("actions", _text(), nullable=False),
        sa.Column("metadata", _text(), nullable=False),
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
        sa.Column("bank", _text(200), nullable=False),
        sa.Column("ordinal", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("bank", "ordinal", name="pk_deletions"),
        sa.ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_deletions_bank", ondelete="CASCADE"),
    )
    op.create_index("ix_deletions_revision", "deletions", ["bank", "revision"])
