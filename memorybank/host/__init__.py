"""All banks of one database, for a process that serves many of them: the service and the commands for operators.

Reading order: `bank_host.py` (the banks), `index_ledger.py` (which indexes stay in memory), `keys.py` (who may do
what).
"""

from __future__ import annotations

from memorybank.host.bank_host import BankHost, BankPage, HostStats
from memorybank.host.index_ledger import LedgerStats
from memorybank.host.keys import Access, ApiKey, KeyRing

__all__ = ["Access", "ApiKey", "BankHost", "BankPage", "HostStats", "KeyRing", "LedgerStats"]
