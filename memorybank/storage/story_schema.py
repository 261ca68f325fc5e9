"""The tables of the story that memories are written from: its log, the work that is due, the Story Summary.

What is written where, as other programs may rely on it:

* `stories`: one row for a bank whose log or rhythm is known. `settled` actions from the beginning on are told by
  memories without a gap, so that nobody has to look at them again; `due_at` is when the next work may begin, null if
  there is none.
* `actions`: the log, `position` counting up from 0 without gaps. `hash` is the SHA-256 of the text; `chain` that of the
  chain before, the id and the hash: two logs with the same chain at a position are the same up to there.
* `tasks`: what was or is to be written from which source. `source` is a span's hash or, for a summary, the chain of the
  last action that it tells; so work on a text that came back is found again, and never done twice. `start` is the
  position of its first action, `sources` what a span holds: JSON, a list of ids and hashes.
* `summaries`: all versions of the Story Summary; it tells `through` actions from the beginning on, `chain` is that of
  the last of them. A version of the player's own has no chain and holds whatever happens to the log.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKeyConstraint, PrimaryKeyConstraint, Table, UniqueConstraint

from memorybank.storage.column_types import free_text, plain_text, short_text
from memorybank.storage.schema import metadata

__all__ = ["actions", "stories", "summaries", "tasks"]

stories = Table(
    "stories",
    metadata,
    Column("bank", short_text(200), nullable=False),
    Column("memory_every", BigInteger, nullable=False),
    Column("untouched", BigInteger, nullable=False),
    Column("summary_every", BigInteger, nullable=False),
    Column("length", BigInteger, nullable=False),
    Column("settled", BigInteger, nullable=False),
    Column("due_at", short_text(40), nullable=True),
    PrimaryKeyConstraint("bank", name="pk_stories"),
    ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_stories_bank", ondelete="CASCADE"),
)

actions = Table(
    "actions",
    metadata,
    Column("bank", short_text(200), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("id", short_text(200), nullable=False),
    Column("kind", short_text(16), nullable=False),
    Column("text", free_text(), nullable=False),
    Column("hash", short_text(64), nullable=False),
    Column("chain", short_text(64), nullable=False),
    PrimaryKeyConstraint("bank", "position", name="pk_actions"),
    UniqueConstraint("bank", "id", name="uq_actions_id"),
    ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_actions_bank", ondelete="CASCADE"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("bank", short_text(200), nullable=False),
    Column("what", short_text(8), nullable=False),
    Column("source", short_text(64), nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("sources", plain_text(), nullable=False),
    Column("status", short_text(8), nullable=False),
    Column("owner", short_text(64), nullable=True),
    Column("until", short_text(40), nullable=True),
    Column("attempts", BigInteger, nullable=False),
    Column("error", free_text(), nullable=False),
    PrimaryKeyConstraint("bank", "what", "source", name="pk_tasks"),
    ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_tasks_bank", ondelete="CASCADE"),
)

summaries = Table(
    "summaries",
    metadata,
    Column("bank", short_text(200), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("through", BigInteger, nullable=False),
    Column("chain", short_text(64), nullable=True),
    Column("text", free_text(), nullable=False),
    Column("author", short_text(200), nullable=False),
    Column("created", short_text(40), nullable=False),
    PrimaryKeyConstraint("bank", "version", name="pk_summaries"),
    ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_summaries_bank", ondelete="CASCADE"),
)
