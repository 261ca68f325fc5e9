"""What can be seen in the words of a sentence without a language model: names, and whether it leans on the one before.

Names are capital letters in the middle of a sentence, so they are found in scripts that have capitals and weigh nothing
in the others. The words that point back are a short list for the languages that the project is tried with.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

__all__ = ["leans_back", "names_in"]

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]++")
_IN_THE_MIDDLE = regex.compile(r"(?<=[\p{L}\p{M}\p{N}][,;]?\ )\p{Lu}[\p{L}\p{M}]++")
_FIRST = regex.compile(r"[^\p{L}\p{M}\p{N}]*+([\p{L}\p{M}\p{N}]++)")

_QUOTES = ('"', "“", "„", "«", "»", "「", "『")
_GOES_ON = regex.compile(r"[\"“”«»」』]\s*+[\p{L}\p{Pd}]")
"""A quotation that has ended, and something told behind it."""

_POINTING_BACK = frozenset(
    """
    he she it they him her them his hers its their theirs this that these those
    lui lei loro egli ella esso essa essi esse costui costei questo questa questi queste quello quella quelli quelle
    o onlar onu ona onun ondan onunla onları onlara onların bu şu bunu bunun buna
    él ella ello ellos ellas este esta esto ese esa eso aquel aquella
    elle ils elles leur celui celle ceux celles cela ça
    er sie es ihr ihm ihn ihnen dieser diese dieses jener jene
    он она оно они его её ее их ему ей им это этот эта эти
    그 그녀 그들 เขา เธอ มัน พวกเขา
    """.split()  # noqa: SIM905 - a table to be read
)
_POINTING_BACK_UNSPACED = ("他", "她", "它", "彼", "それ", "その", "เขา", "เธอ", "มัน")


def names_in(sentences: Sequence[str]) -> list[int]:
    """Return for each sentence how many different names of the whole text are in it.

    A word is a name if it stands with a capital in the middle of any of the sentences; so it counts at the beginning
    of another one, too.
    """
    names = {word for sentence in sentences for word in _IN_THE_MIDDLE.findall(sentence)}
    return [len(names.intersection(_WORD.findall(sentence))) for sentence in sentences]


def leans_back(sentence: str) -> bool:
    """Whether nobody knows whom or what a sentence is about without the one before it.

    It begins with a word that means somebody or something named before, or it is nothing but what somebody says.
    """
    if sentence.startswith(_QUOTES) and not _GOES_ON.search(sentence, 1):
        return True
    first = _FIRST.match(sentence)
    if first is None:
        return False
    word = first[1].casefold()
    return word in _POINTING_BACK or word.startswith(_POINTING_BACK_UNSPACED)
