"""The commands about embedding models: which there are, and exporting one for ONNX Runtime (models/README.md)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybank import cli_output as output
from memorybank.console import CommandParser, note, progress_bar

if TYPE_CHECKING:
    from memorybank.embedding.exported import Export

__all__ = ["add_model_commands"]


def add_model_commands(command: Callable[..., CommandParser]) -> None:
    """Add them to a command line with its function that adds one."""
    command("models", _models, "List the embedding models, and which of them are on this machine.")
    export = command("export-onnx", _export_onnx, "Let ONNX Runtime run a model: the same vectors, ready at once.")
    export.add_argument("model", nargs="?", metavar="MODEL", help="embedding model (all-MiniLM-L6-v2; see `models`)")
    export.add_argument("--int8", action="store_true", help="weights of 8 bits too, which is a model of its own")
    export.add_argument("--force", action="store_true", help="make anew what is there")


def _models(given: argparse.Namespace) -> int:
    from memorybank.embedding.registry import models

    found = models()
    if given.json:
        output.print_json({"models": [asdict(one) for one in found]})
        return 0
    names = ("name", "dimensions", "max_tokens", "licence", "available", "where")
    rows = [(one.name, one.dimensions, one.max_tokens, one.licence, _yes(one.available), one.where) for one in found]
    output.print_rows(names, rows)
    return 0


def _export_onnx(given: argparse.Namespace) -> int:
    from memorybank.embedding import DEFAULT_MODEL
    from memorybank.embedding.onnx_export import export_onnx

    with progress_bar("exporting") as progress:
        made = export_onnx(
            given.model or DEFAULT_MODEL, int8=given.int8, force=given.force, on_wait=note, progress=progress
        )
    if given.json:
        output.print_json({"exports": [_export_json(folder, export) for folder, export in made]})
        return 0
    names = ("precision", "smallest cosine to torch", "of texts", "file")
    rows = [(one.precision, f"{one.least_cosine:.6f}", one.texts, folder / one.graph) for folder, one in made]
    output.print_rows(names, rows)
    return 0


def _export_json(folder: Path, export: Export) -> dict[str, Any]:
    return {"file": str(folder / export.graph), **{k: v for k, v in asdict(export).items() if k != "probes"}}


def _yes(value: bool) -> str:
    return "yes" if value else "no"
