"""Column types that mean the same on both engines; on SQLite they are the plain ones.

Texts of the schema are compared and ordered by their bytes: SQLite does so anyway, PostgreSQL by the collation "C". The
language of a server would order ids otherwise, and an update of its locale library would break the indexes.
"""

from __future__ import annotations

from sqlalchemy import Dialect, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

__all__ = ["EscapedText", "free_text", "plain_text", "short_text"]

_ESCAPE, _ZERO = "\x1a", "\0"


class EscapedText(TypeDecorator[str]):
    """Text that may hold U+0000, which PostgreSQL cannot store: written there as U+001A 0, and U+001A as U+001A 1."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as it is stored."""
        if value is None or (_ZERO not in value and _ESCAPE not in value):
            return value
        return value.replace(_ESCAPE, _ESCAPE + "1").replace(_ZERO, _ESCAPE + "0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text that was stored."""
        if value is None or _ESCAPE not in value:
            return value
        return value.replace(_ESCAPE + "0", _ZERO).replace(_ESCAPE + "1", _ESCAPE)


def plain_text() -> TypeEngine[str]:
    """Return the type of texts that cannot hold U+0000, such as JSON in ASCII."""
    return Text().with_variant(Text(collation="C"), "postgresql")


def free_text() -> TypeEngine[str]:
    """Return the type of what a player can type, U+0000 included."""
    return Text().with_variant(EscapedText(collation="C"), "postgresql")


def short_text(length: int) -> TypeEngine[str]:
    """Return the type of ids, names and other short texts of this program."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")
