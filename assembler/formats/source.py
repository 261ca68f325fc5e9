"""A foreign file before anybody knows what it is: its bytes as text, as JSON or as JSON lines, within bounds.

UTF-8 with or without a byte-order mark, and UTF-16 with one. What looks like JSON is JSON: a truncated file is told
with its line and column and never taken for prose. Everything wrong is an `AdventureError` that names the place.
"""

from __future__ import annotations

import codecs
import json
import re
from pathlib import PurePath
from typing import Any, Literal

from assembler.document import parse_json
from assembler.errors import AdventureError

__all__ = ["MAX_BYTES", "MAX_DEPTH", "PNG_SIGNATURE", "Source", "check_depth", "describe"]

MAX_BYTES = 100 * 1024 * 1024
"""A larger file is refused before it is read."""

MAX_DEPTH = 256
"""Objects and lists inside each other; deeper ones could be read but not always be written again."""

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

_JSON_SUFFIXES = {".json", ".jsonl", ".lorebook", ".scenario", ".story", ".card"}
_JSON_START = re.compile(r"\s*(\{\s*[\"}]|\[\s*[\]{\"])")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Kind = Literal["png", "json", "lines", "text"]


class Source:
    """The bytes of a file and what they are.

    Attributes:
        data: the bytes.
        filename: without its folder.
        select: which of several adventures in the file is wanted, by number or title; None leaves it to the format.
        kind: `png`, `json`, `lines` (one JSON value on each line) or `text`.
        value: the parsed JSON of kind `json`; of kind `lines` a list of (line number, value or error text).
        text: the decoded text of kind `text`, its line ends made one kind.

    Raises:
        AdventureError: empty, too large, not text, not valid JSON, nested too deeply.
    """

    def __init__(self, data: bytes, filename: str = "", select: str | None = None) -> None:
        self.data = data
        self.select = select
        self.filename = PurePath(filename).name
        self.kind: Kind = "text"
        self.value: Any = None
        self.text = ""
        _check_size(data)
        if data.startswith(PNG_SIGNATURE):
            self.kind = "png"
        else:
            self._read(_decode(data))

    @property
    def stem(self) -> str:
        """The file's name without its extension, in lower case."""
        return PurePath(self.filename).stem.lower()

    @property
    def suffix(self) -> str:
        """The extension with its dot, in lower case."""
        return PurePath(self.filename).suffix.lower()

    def _read(self, text: str) -> None:
        if not text.strip():
            raise AdventureError("the file is empty; there is nothing to import")
        if self.suffix == ".jsonl" or _is_lines(text):
            self.kind, self.value = "lines", _lines(text)
        elif self.suffix in _JSON_SUFFIXES or _JSON_START.match(text):
            self.kind, self.value = "json", parse_json(text)
            check_depth(self.value)
        else:
            self.text = text.replace("\r\n", "\n").replace("\r", "\n")


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise AdventureError(f"the file has {len(data):,} bytes, the limit is {MAX_BYTES:,}; split it")


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        kind = " (a ZIP archive)" if data.startswith(b"PK") else ""
        raise AdventureError(f"byte {error.start}: neither text nor a PNG{kind}; save the file as UTF-8") from error
    if "\0" in text:
        raise AdventureError(f"character {text.index(chr(0))}: a NUL, so this is no text file; save it as UTF-8")
    return text


def _is_lines(text: str) -> bool:
    """Whether the first line is an object of its own and others follow."""
    first, _, rest = text.strip().partition("\n")
    first = first.strip()
    if not (rest.strip() and first.startswith("{") and first.endswith("}")):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _lines(text: str) -> list[tuple[int, Any]]:
    lines: list[tuple[int, Any]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                value = parse_json(line)
                check_depth(value)
            except AdventureError as error:
                value = str(error).removeprefix("line 1, ")
            lines.append((number, value))
    return lines


def check_depth(value: Any) -> None:
    """Raise `AdventureError` if `value` is nested deeper than `MAX_DEPTH`; takes no recursion itself."""
    level, depth = [value], 0
    while level:
        inner = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in inner for child in (item.values() if isinstance(item, dict) else item)]
        depth += bool(inner)
        if depth > MAX_DEPTH:
            raise AdventureError(f"objects and lists are nested more than {MAX_DEPTH} deep; nothing was imported")


def describe(source: Source) -> str:
    """Say in a few words what was seen, for a file that is of no known format."""
    value = source.value
    if source.kind == "json" and isinstance(value, dict):
        names = [str(name)[:40] for name in value][:8] or ["(none)"]
        return f"a JSON object with the fields {', '.join(names)}" + (", …" if len(value) > 8 else "")
    if source.kind == "json" and isinstance(value, list):
        kinds = sorted({type(item).__name__ for item in value})
        return f"a JSON list of {len(value)} ({', '.join(kinds)})" if value else "an empty JSON list"
    return {"json": "a single JSON value", "lines": "JSON lines that are no chat"}.get(source.kind, "plain text")
