"""Databases as wholes: copied into another one, of whatever engine, and backed up while they are in use.

Reading order: `tables.py` (all rows of a bank, and their checksum), `copying.py` (from database to database),
`backup.py` (an SQLite file into another file).
"""

from __future__ import annotations

from memorybank.moving.backup import Backup, back_up
from memorybank.moving.copying import CopiedBank, CopyReport, copy_database
from memorybank.moving.tables import UnsoundCopyError

__all__ = ["Backup", "CopiedBank", "CopyReport", "UnsoundCopyError", "back_up", "copy_database"]
