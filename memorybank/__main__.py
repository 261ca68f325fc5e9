"""`python -m memorybank` is `memorybank`."""

from __future__ import annotations

from memorybank.cli import program

if __name__ == "__main__":
    program()
