"""Other programs' files to and from the adventure document (SPEC.md section 11).

    >>> from assembler.formats import import_file, export
    >>> result = import_file("Eldoria.json")                       # doctest: +SKIP
    >>> result.format, result.imported, result.skipped             # doctest: +SKIP
    ('sillytavern-worldinfo', {'story_cards': 4}, [])
    >>> export(result.adventure, "aidungeon-cards")                # doctest: +SKIP

A file is told by its content; its extension only settles what content leaves open. Each format is a file of this
package that says how its program matches. What a foreign file has and an adventure has not is kept in `extra` under
`imported`, by the name of the format, and written again by an export to that format.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assembler.adventure import Adventure
from assembler.errors import AdventureError
from assembler.formats import (
    adventure_document,
    aidungeon_cards,
    aidungeon_scenario,
    character_card,
    kobold,
    markdown_parts,
    native_tavern,
    novelai,
    novelai_story,
    sillytavern_chat,
    sillytavern_world_info,
    story_tree,
    world_characters,
)
from assembler.formats.fields import EntryError
from assembler.formats.format import Format
from assembler.formats.kept import IMPORTED
from assembler.formats.losses import losses
from assembler.formats.merging import counts, merge
from assembler.formats.remarks import remark
from assembler.formats.report import Imported, Log, Skip
from assembler.formats.source import MAX_BYTES, Source, describe

__all__ = [
    "FORMATS",
    "IMPORTED",
    "Format",
    "Imported",
    "Skip",
    "export",
    "import_bytes",
    "import_file",
    "left_out",
    "sniff",
]

_MODULES = (
    adventure_document,
    novelai,
    novelai_story,
    native_tavern,
    character_card,
    kobold,
    story_tree,
    world_characters,
    aidungeon_cards,
    aidungeon_scenario,
    sillytavern_world_info,
    sillytavern_chat,
    markdown_parts,
)

FORMATS: dict[str, Format] = {known.name: known for module in _MODULES for known in module.FORMATS}
"""All formats by name, in the order in which a file is tried against them: the telling ones first."""


def sniff(data: bytes, filename: str = "") -> Format:
    """Tell the format of a file.

    Raises:
        AdventureError: the file is broken, or of no format that is known; the message says what was seen.
    """
    return _format_of(Source(data, filename))


def import_file(path: str | Path, *, into: Adventure | None = None, select: str | None = None) -> Imported:
    """Read a file of any known format.

    Args:
        path: the file.
        into: an adventure to add to; it stays as it is, the result has a new one.
        select: which of several adventures in the file, by number or title.

    Raises:
        AdventureError: the file cannot be read, is broken, of no known format, or there is nothing in it to import.
    """
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise AdventureError(f"the file is larger than {MAX_BYTES:,} bytes; split it")
        return import_bytes(Path(path).read_bytes(), Path(path).name, into=into, select=select)
    except AdventureError as error:
        raise AdventureError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:  # a ValueError for a NUL in the path
        raise AdventureError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def import_bytes(
    data: bytes, filename: str = "", *, into: Adventure | None = None, select: str | None = None
) -> Imported:
    """Read a file that is in memory already; otherwise as `import_file`."""
    source = Source(data, filename, select)
    kind = _format_of(source)
    if select is not None and not kind.many:
        raise AdventureError(f"select: a file of this kind ({kind.what}) holds one adventure; leave it out")
    log = Log()
    try:
        new = kind.load(source, log)
    except EntryError as error:
        raise AdventureError(str(error)) from error
    remark(new, log)
    adventure = new if into is None else merge(into, new, log)
    imported = counts(into or Adventure(), adventure)
    if not imported:
        reasons = "; ".join(str(skip) for skip in log.skipped[:3]) or "it has no entries"
        raise AdventureError(f"nothing to import (read as {kind.what}): {len(log.skipped)} skipped: {reasons}")
    return Imported(adventure, kind.name, imported, log.skipped, log.notes)


def export(adventure: Adventure, format_name: str) -> bytes:
    """Write an adventure as a file of another program; what the format cannot hold is in `left_out`.

    Raises:
        AdventureError: the format is unknown or only read, or the fields kept from such a file were spoilt since.
    """
    try:
        return _writer(format_name)[1](adventure)
    except EntryError as error:
        raise AdventureError(f"extra.{IMPORTED}: {error}") from error


def left_out(adventure: Adventure, format_name: str) -> list[str]:
    """Say what an export to that format loses, one line for each kind; empty if nothing."""
    return losses(adventure, _writer(format_name)[0])


def _format_of(source: Source) -> Format:
    found = next((known for known in FORMATS.values() if known.recognises(source)), None)
    if found is None:
        raise AdventureError(f"not a format that is known: {describe(source)}. Known are: {', '.join(FORMATS)}")
    return found


def _writer(format_name: str) -> tuple[Format, Callable[[Adventure], bytes]]:
    found = FORMATS.get(format_name)
    if found is None or found.save is None:
        names = ", ".join(known.name for known in FORMATS.values() if known.save)
        problem = "is unknown" if found is None else "is only read"
        raise AdventureError(f"format {format_name!r} {problem}; write one of {names}")
    return found, found.save
