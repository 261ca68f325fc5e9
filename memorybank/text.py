"""What a text is before anything is counted, stored or embedded (SPEC.md section 2).

A leaf: the standard library only.
"""

from __future__ import annotations

__all__ = ["clean", "join_surrogates", "repair"]


def repair(text: str) -> str:
    r"""Return `text` as sound Unicode with ``\n`` line ends.

    Two escaped surrogate halves become the character that they spell; a lone half becomes U+FFFD, so that the
    result can always be encoded as UTF-8. ``\r\n`` and ``\r`` become ``\n``.

    >>> repair("a\r\nb\rc")
    'a\nb\nc'
    >>> repair("\ud83d\udc4d \ud83d") == "👍 \ufffd"
    True
    """
    text = join_surrogates(text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def join_surrogates(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone halves replaced by U+FFFD; sound text comes back as it is."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean(text: str) -> str:
    r"""Return the text of a block: repaired, without leading and trailing whitespace.

    >>> clean("  The gate opens.\r\n")
    'The gate opens.'
    """
    return repair(text).strip()
