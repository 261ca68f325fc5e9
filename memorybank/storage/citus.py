"""The statements that spread a PostgreSQL database over the nodes of a Citus cluster.

`python -m memorybank.storage.citus | psql postgresql://…` runs them, once, when a bank was opened there for the first
time: the tables are there, and nothing is in them yet.

All rows of one bank lie on one node then, and every statement of `reading.py`, `writing.py` and `story.py` names its
bank, so each is answered by one shard. Two questions are not about one bank and ask all shards: which banks a namespace
has, and which have something to be written. A branch writes to the shards of two banks.
"""

from __future__ import annotations

from memorybank.storage.schema import banks, metadata

__all__ = ["statements"]


def statements() -> list[str]:
    """Return one statement for each table of banks, the one that the others refer to first."""
    others = [table.name for table in metadata.sorted_tables if "bank" in table.c and table is not banks]
    return [
        f"SELECT create_distributed_table('{banks.name}', 'bank');",
        *(f"SELECT create_distributed_table('{name}', 'bank', colocate_with => '{banks.name}');" for name in others),
    ]


if __name__ == "__main__":
    print(*statements(), sep="\n")
