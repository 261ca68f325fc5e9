"""The character card inside a PNG: base64 of its JSON in a `tEXt` chunk named `ccv3` (preferred) or `chara`.

Chunks are walked by hand; a chunk that claims more bytes than there are ends the walk with an error, not with memory.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from assembler.document import parse_json
from assembler.errors import AdventureError
from assembler.formats.source import PNG_SIGNATURE, check_depth

__all__ = ["card_in_png"]


def card_in_png(data: bytes) -> Any:
    """Return the parsed JSON of the card.

    Raises:
        AdventureError: there is none, or the file is cut short, or the text is no base64 of JSON.
    """
    texts = dict(_texts(data))
    for keyword in (b"ccv3", b"chara"):
        if keyword in texts:
            return _parsed(texts[keyword], f"tEXt chunk {keyword.decode()}")
    raise AdventureError("the PNG carries no character card: it has no tEXt chunk named chara or ccv3")


def _texts(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keyword and text of each `tEXt` chunk."""
    position = len(PNG_SIGNATURE)
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        kind, end = data[position + 4 : position + 8], position + 12 + length
        if end > len(data):
            raise AdventureError(f"byte {position}: the PNG is cut short, a chunk of {length:,} bytes does not fit")
        if kind == b"tEXt":
            keyword, _, text = data[position + 8 : end - 4].partition(b"\0")
            yield keyword.lower(), text
        if kind == b"IEND":
            return
        position = end


def _parsed(text: bytes, place: str) -> Any:
    try:
        value = parse_json(base64.b64decode(b"".join(text.split()), validate=True))
        check_depth(value)
    except (binascii.Error, AdventureError) as error:
        raise AdventureError(f"{place}: {error}") from error
    return value
