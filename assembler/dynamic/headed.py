"""A section with a header line that is paid for together with the first item that goes in (SPEC.md section 5)."""

from __future__ import annotations

from assembler.blocks import BlockMaker
from assembler.layout import HEADERS
from assembler.report import Line, Section, no_room

__all__ = ["HeadedSection"]


class HeadedSection:
    """Takes whole items while they fit; one that does not is passed over, and may be tried again."""

    def __init__(self, section: Section, blocks: BlockMaker) -> None:
        header = blocks(HEADERS[section])
        self._header = Line(section, "header", header.text, header.tokens)
        self.items: list[Line] = []

    @property
    def tokens(self) -> int:
        """Tokens used, the header's included."""
        return self._header.used + sum(line.used for line in self.items)

    @property
    def lines(self) -> list[Line]:
        """The header, if anything stands under it, and all items, in the order of rank."""
        return [self._header, *self.items] if self._header.kept else self.items

    def take(self, line: Line, room: int) -> int:
        """Take the item in if it fits the room; return the tokens that this costs, 0 if it was passed over."""
        header = 0 if self._header.kept else self._header.offered
        needs = line.offered + header
        if needs > room:
            line.drop(no_room(needs, room, header))
            return 0
        self._header.keep()
        line.keep()
        return needs

    def reset(self) -> None:
        """Leave everything out, to be packed again."""
        for line in (self._header, *self.items):
            line.drop("")

    def give_up(self, line: Line, reason: str) -> None:
        """Leave out an item that was in, and the header with the last one."""
        line.drop(reason)
        if not any(item.kept for item in self.items):
            self._header.drop("")
