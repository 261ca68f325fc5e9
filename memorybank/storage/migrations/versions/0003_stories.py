"""The story that memories are written from: its log, the work that is due, the Story Summary."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def _text(length: int | None = None) -> sa.types.TypeEngine[str]:
    """Return a type for texts that are compared by their bytes on both engines."""
    kind = sa.Text if length is None else sa.String
    return kind(length).with_variant(kind(length, collation="C"), "postgresql")


def _bank() -> sa.Column[str]:
    return sa.Column("bank", _text(200), nullable=False)


def _of_bank(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["bank"], ["banks.bank"], name=f"fk_{table}_bank", ondelete="CASCADE")


def upgrade() -> None:
    """Say of a memory what wrote it and from what; make four tables."""
    _add_to_memories()
    _make_stories()
    _make_actions()
    _make_tasks()
    _make_summaries()


def _add_to_memories() -> None:
    op.add_column("memories", sa.Column("writer", _text(), nullable=True))
    op.add_column("memories", sa.Column("span", sa.BigInteger, nullable=True))
    op.add_column("memories", sa.Column("source", _text(64), nullable=True))
    op.add_column("memories", sa.Column("source_hashes", _text(), nullable=True))
    op.add_column("memories", sa.Column("held_state", _text(16), nullable=True))
    op.add_column("memories", sa.Column("reason", _text(), nullable=True))
    op.create_index("ix_memories_span", "memories", ["bank", "span"])


def _make_stories() -> None:
    op.create_table(
        "stories",
        _bank(),
        sa.Column("memory_every", sa.BigInteger, nullable=False),
        sa.Column("untouched", sa.BigInteger, nullable=False),
        sa.Column("summary_every", sa.BigInteger, nullable=False),
        sa.Column("length", sa.BigInteger, nullable=False),
        sa.Column("settled", sa.BigInteger, nullable=False),
        sa.Column("due_at", _text(40), nullable=True),
        sa.PrimaryKeyConstraint("bank", name="pk_stories"),
        _of_bank("stories"),
    )


def _make_actions() -> None:
    op.create_table(
        "actions",
        _bank(),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("id", _text(200), nullable=False),
        sa.Column("kind", _text(16), nullable=False),
        sa.Column("text", _text(), nullable=False),
        sa.Column("hash", _text(64), nullable=False),
        sa.Column("chain", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("bank", "position", name="pk_actions"),
        sa.UniqueConstraint("bank", "id", name="uq_actions_id"),
        _of_bank("actions"),
    )


def _make_tasks() -> None:
    op.create_table(
        "tasks",
        _bank(),
        sa.Column("what", _text(8), nullable=False),
        sa.Column("source", _text(64), nullable=False),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("sources", _text(), nullable=False),
        sa.Column("status", _text(8), nullable=False),
        sa.Column("owner", _text(64), nullable=True),
        sa.Column("until", _text(40), nullable=True),
        sa.Column("attempts", sa.BigInteger, nullable=False),
        sa.Column("error", _text(), nullable=False),
        sa.PrimaryKeyConstraint("bank", "what", "source", name="pk_tasks"),
        _of_bank("tasks"),
    )


def _make_summaries() -> None:
    op.create_table(
        "summaries",
        _bank(),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("through", sa.BigInteger, nullable=False),
        sa.Column("chain", _text(64), nullable=True),
        sa.Column("text", _text(), nullable=False),
        sa.Column("author", _text(200), nullable=False),
        sa.Column("created", _text(40), nullable=False),
        sa.PrimaryKeyConstraint("bank", "version", name="pk_summaries"),
        _of_bank("summaries"),
    )
