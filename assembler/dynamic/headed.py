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
        return self._header.used + sum(line.used for line in self.items) if self._header.kept else 0

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
        self.put_in(line)
        return needs

    def needs(self, line: Line) -> int:
        """Return what an item that is not in would cost, in tokens, with the header if that is not in either."""
        return line.offered if self._header.kept else line.offered + self._header.offered

    def may_go_in(self, line: Line) -> bool:
        """Whether nothing but a lack of room keeps an item out."""
        return not line.kept and bool(line.block)

    def put_in(self, line: Line) -> None:
        """Take an item in, whatever it costs."""
        self._header.keep()
        line.keep()

    def reset(self) -> None:
        """Leave everything out, to be packed again."""
        for line in (self._header, *self.items):
            line.drop("")

    def give_up(self, line: Line, reason: str) -> None:
        """Leave out an item that was in, and the header with the last one."""
        line.drop(reason)
        if not any(item.kept for item in self.items):
            self._header.drop("")
