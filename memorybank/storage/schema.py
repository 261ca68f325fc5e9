"""The tables. Every key of a bank's rows begins with the bank, so that they lie together and distribute by it.

What is written where, as other programs may rely on it:

* `vector`: float32, little-endian, `dimensions` of them, of length 1.
* `text`: as it is; on PostgreSQL, which has no U+0000, that is U+001A 0, and U+001A is U+001A 1. `model` likewise.
* `text_hash`: SHA-256 of the text in UTF-8, in hexadecimal; of the text itself, not as PostgreSQL holds it.
* `actions`, `metadata`: JSON in ASCII. `created`, `last_used`: ISO 8601 in UTC with microseconds.
* `ordinal`: counts up in a bank and is never given again. It is the FAISS id, and it breaks ties.
* `banks.revision` grows with every write; `memories.revision` is the bank's revision when the text, the vector or the
  state last changed, `deletions.revision` when the row went. So an index that has seen revision r catches up by what
  is greater than r.
* `api_keys.secret_hash`: SHA-256 of the secret, in hexadecimal; the secret itself is nowhere. The table belongs to no
  bank and is small: with Citus it stays on the coordinator.
* `writer`: what wrote the memory from the log; null for one written by hand, and so are then `span` (the position of
  its first action in the log), `source` and `source_hashes` (the hashes of its span and of the texts of its actions,
  see `writing/staleness.py`) and `held_state` (what a `stale` memory was before). `reason`: why it is in its state.
* `terms`: the words of the text for the lexical arm of a search, see `memorybank/terms.py`; null in rows of an older
  version, and then they are made from the text.
* `incarnation`: made anew with the bank, so that an index of a deleted bank is not taken for one of its namesake.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

from memorybank.storage.column_types import free_text, plain_text, short_text

__all__ = ["HEAD", "VERSION_TABLE", "api_keys", "banks", "deletions", "memories", "metadata", "version"]

HEAD = "0004"
"""The newest migration in `migrations/versions`; numbers have four digits and follow one another."""
VERSION_TABLE = "memorybank_schema"

metadata = MetaData()

banks = Table(
    "banks",
    metadata,
    Column("bank", short_text(200), nullable=False),
    Column("incarnation", short_text(32), nullable=False),
    Column("model", free_text(), nullable=False),
    Column("dimensions", Integer, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("next_ordinal", BigInteger, nullable=False),
    Column("next_number", BigInteger, nullable=False),
    Column("capacity", BigInteger, nullable=True),
    Column("created", short_text(40), nullable=False),
    PrimaryKeyConstraint("bank", name="pk_banks"),
)

memories = Table(
    "memories",
    metadata,
    Column("bank", short_text(200), nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    Column("id", short_text(200), nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("state", short_text(16), nullable=False),
    Column("pinned", Boolean, nullable=False),
    Column("use_count", BigInteger, nullable=False),
    Column("last_used", short_text(40), nullable=True),
    Column("created", short_text(40), nullable=False),
    Column("model", free_text(), nullable=False),
    Column("text_hash", short_text(64), nullable=False),
    Column("text", free_text(), nullable=False),
    Column("actions", plain_text(), nullable=False),
    Column("metadata", plain_text(), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("writer", free_text(), nullable=True),
    Column("span", BigInteger, nullable=True),
    Column("source", short_text(64), nullable=True),
    Column("source_hashes", plain_text(), nullable=True),
    Column("held_state", short_text(16), nullable=True),
    Column("reason", plain_text(), nullable=True),
    Column("terms", LargeBinary, nullable=True),
    PrimaryKeyConstraint("bank", "ordinal", name="pk_memories"),
    UniqueConstraint("bank", "id", name="uq_memories_id"),
    ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_memories_bank", ondelete="CASCADE"),
    Index("ix_memories_text", "bank", "text_hash"),
    Index("ix_memories_revision", "bank", "revision"),
    Index("ix_memories_span", "bank", "span"),
    Index("ix_memories_use", "bank", "state", "pinned", "use_count", "ordinal"),
)

deletions = Table(
    "deletions",
    metadata,
    Column("bank", short_text(200), nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    PrimaryKeyConstraint("bank", "ordinal", name="pk_deletions"),
    ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_deletions_bank", ondelete="CASCADE"),
    Index("ix_deletions_revision", "bank", "revision"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", short_text(16), nullable=False),
    Column("label", short_text(200), nullable=False),
    Column("namespace", short_text(64), nullable=False),
    Column("access", short_text(8), nullable=False),
    Column("secret_hash", short_text(64), nullable=False),
    Column("created", short_text(40), nullable=False),
    Column("revoked", short_text(40), nullable=True),
    PrimaryKeyConstraint("id", name="pk_api_keys"),
)

version = Table(
    VERSION_TABLE,
    MetaData(),  # alembic's own, with its definition, so not among the tables that migrations make
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
