"""The database of memory banks: what is in it is the truth, everything else is rebuilt from it (SPEC.md section 9).

Reading order: `schema.py` and `story_schema.py` with `column_types.py` (tables and the byte format of vectors),
`rows.py` and `story_rows.py` (rows to values and back), `reading.py`, `writing.py` and `story.py` (all statements about
banks), `keys.py` (those about API keys), `dialects.py` (what an engine has to offer) with `sqlite.py` and
`postgresql.py`, `upgrading.py` (versions), `store.py` (transactions). `citus.py` is for PostgreSQL on many machines.

SQLAlchemy takes a third of a second to import, so nothing imports this package before a bank is opened.
"""

from __future__ import annotations

from memorybank.storage.keys import Access, ApiKey
from memorybank.storage.reading import Reader
from memorybank.storage.rows import BankState, StoredMemory
from memorybank.storage.store import Store, open_store
from memorybank.storage.writing import Writer

__all__ = ["Access", "ApiKey", "BankState", "Reader", "Store", "StoredMemory", "Writer", "open_store"]
