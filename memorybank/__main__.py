"""`python -m memorybank` is `memorybank`."""

from __future__ import annotations

from memorybank.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
