"""The tables. Every key of a bank's rows begins with the bank, so that they lie together and distribute by it.

What is written where, as other programs may rely on it:

* `vector`: float32, little-endian, `dimensions` of them, of length 1.
* `text_hash`: SHA-256 of the text in UTF-8, in hexadecimal.
* `actions`, `metadata`: JSON in ASCII. `created`, `last_used`: ISO 8601 in UTC with microseconds.
* `ordinal`: counts up in a bank and is never given again. It is the FAISS id, and it breaks ties.
* `banks.revision` grows with every write; `memories.revision` is the bank's revision when the text, the vector or the
  state last changed, `deletions.revision` when the row went. So an index that has seen revision r catches up by what
  is greater than r.
* `api_keys.secret_hash`: SHA-256 of the secret, in hexadecimal; the secret itself is nowhere. The table belongs to no
  bank and is small: with Citus, a reference table.
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
    Text,
    UniqueConstraint,
)

__all__ = ["HEAD", "VERSION_TABLE", "api_keys", "banks", "deletions", "memories", "metadata", "version"]

HEAD = "0002"
"""The newest migration in `migrations/versions`; numbers have four digits and follow one another."""
VERSION_TABLE = "memorybank_schema"

metadata = MetaData()

banks = Table(
    "banks",
    metadata,
    Column("bank", String(200), nullable=False),
    Column("incarnation", String(32), nullable=False),
    Column("model", Text, nullable=False),
    Column("dimensions", Integer, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("next_ordinal", BigInteger, nullable=False),
    Column("next_number", BigInteger, nullable=False),
    Column("capacity", BigInteger, nullable=True),
    Column("created", String(40), nullable=False),
    PrimaryKeyConstraint("bank", name="pk_banks"),
)

memories = Table(
    "memories",
    metadata,
    Column("bank", String(200), nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    Column("id", String(200), nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("pinned", Boolean, nullable=False),
    Column("use_count", BigInteger, nullable=False),
    Column("last_used", String(40), nullable=True),
    Column("created", String(40), nullable=False),
    Column("model", Text, nullable=False),
    Column("text_hash", String(64), nullable=False),
    Column("text", Text, nullable=False),
    Column("actions", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("bank", "ordinal", name="pk_memories"),
    UniqueConstraint("bank", "id", name="uq_memories_id"),
    ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_memories_bank", ondelete="CASCADE"),
    Index("ix_memories_text", "bank", "text_hash"),
    Index("ix_memories_revision", "bank", "revision"),
    Index("ix_memories_use", "bank", "state", "pinned", "use_count", "ordinal"),
)

deletions = Table(
    "deletions",
    metadata,
    Column("bank", String(200), nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    PrimaryKeyConstraint("bank", "ordinal", name="pk_deletions"),
    ForeignKeyConstraint(["bank"], ["banks.bank"], name="fk_deletions_bank", ondelete="CASCADE"),
    Index("ix_deletions_revision", "bank", "revision"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), nullable=False),
    Column("label", String(200), nullable=False),
    Column("namespace", String(64), nullable=False),
    Column("access", String(8), nullable=False),
    Column("secret_hash", String(64), nullable=False),
    Column("created", String(40), nullable=False),
    Column("revoked", String(40), nullable=True),
    PrimaryKeyConstraint("id", name="pk_api_keys"),
)

version = Table(
    VERSION_TABLE,
    MetaData(),  # alembic's own, with its definition, so not among the tables that migrations make
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
