"""Speed of the memory bank and the assembler, with no network: `python -m benchmarks NAME` (see README.md)."""
