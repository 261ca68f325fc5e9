"""`python -m assembler` is `assembler`."""

from __future__ import annotations

from assembler.cli import program

if __name__ == "__main__":
    program()
