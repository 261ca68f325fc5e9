"""The words of each memory's text, for the lexical arm of a search."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column. What was stored before has nothing in it, and its words are taken from the text when needed."""
    op.add_column("memories", sa.Column("terms", sa.LargeBinary, nullable=True))
