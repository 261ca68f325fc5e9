"""This project's own document, `adventure/1`, as one format among the others."""

from __future__ import annotations

from collections.abc import Mapping

from assembler.adventure import Adventure
from assembler.document import dumps, from_dict
from assembler.formats.format import ALL_TEXTS, CARD_FIELDS, Format
from assembler.formats.source import Source

__all__ = ["FORMATS"]


def _recognises(source: Source) -> bool:
    value = source.value
    return source.kind == "json" and isinstance(value, Mapping) and str(value.get("format")).startswith("adventure/")


def _save(adventure: Adventure) -> bytes:
    return dumps(adventure).encode()


FORMATS = (
    Format(
        name="adventure",
        what="adventure/1, the document of this project",
        recognises=_recognises,
        load=lambda source, _log: from_dict(source.value),
        save=_save,
        holds=ALL_TEXTS | {"actions", "memories", "story_cards", *CARD_FIELDS},
    ),
)
