"""Where sentences end, in any script and in texts without punctuation (SPEC.md section 3, rule 3; section 9).

`SENTENCE_END` is the one rule of what ends a sentence; the assembler cuts by it and the extractive writer splits by it.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

__all__ = ["LONGEST", "SENTENCE_END", "paragraphs", "sentences"]

LONGEST = 280
"""Characters of a sentence that is left whole; what is longer falls into parts."""

SENTENCE_END = regex.compile(
    r"""
    (?<! [.!?…؟۔।॥።։] ) [.!?…؟۔।॥።։]++
    (?<! \b (?: \p{Lu} | (?i: mr | mrs | ms | dr | st | prof | sr | jr | vs ) | e\.g | i\.e ) \. )  # abbreviations
    ["'\p{Pe}\p{Pf}“‘*_]*+  # what closes a quotation, a bracket or an emphasis
    (?= \s++ \P{Ll} | \s*+ \Z )
    | [。！？｡．]++ ["'\p{Pe}\p{Pf}“‘*_]*+
    """,
    regex.VERBOSE,
)

_LINE = regex.compile(r"[^\n]+")
_LOWERCASE = regex.compile(r"[\s\"'\p{Pi}\p{Ps}]*+\p{Ll}")
_TAG = regex.compile(r"\s*+[\p{Pd}]\s*+\p{Ll}")
"""What goes on after a quotation that dashes set off: `— Go! — she said.`"""
_QUOTE = regex.compile(r"""(?<![\p{L}\p{N}])["“„«»‹›]|[「『]""")
_CLOSING = {"“": "”", "„": "“”", "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』"}
_PART_END = regex.compile(
    r"""
    (?P<sentence> (?<! [.!?…؟۔।॥።։] ) [.!?…؟۔।॥።։]++ [\p{Pe}\p{Pf}]*+ (?= \s ) | [。！？｡．] )
    | [,;:—–،؛፣] (?= \s ) | [，、；：] (?! \p{M} ) | \s (?! \p{M} )
    """,
    regex.VERBOSE,
)
_GRAPHEME = regex.compile(r"\X")


def sentences(text: str, longest: int = LONGEST) -> list[str]:
    r"""Return the sentences of a text in their order, each with its whitespace runs made one space.

    A line end is the end of a sentence unless the next line goes on in lower case. Inside a quotation no sentence ends,
    so that what is said stays with who says it; a quotation that stands at the end of a line belongs to the sentence
    before it. A sentence of more than `longest` characters falls into parts, behind a sentence in a quotation, else
    behind a comma or the like, else behind a word, else behind a grapheme cluster. The time is linear in the text.

    >>> sentences('Mara nods. "Go now. I will wait," she says. The gate\nopens')
    ['Mara nods.', '"Go now. I will wait," she says.', 'The gate opens']
    >>> sentences("他走了。她也走")
    ['他走了。', '她也走']
    """
    return [
        part for paragraph in paragraphs(text) for sentence in _split(paragraph) for part in _parts(sentence, longest)
    ]


def _is_quotation(sentence: str) -> bool:
    """Whether a sentence is one quotation from its first character to its last."""
    spans = _quotations(sentence)
    return bool(spans) and spans[0] == (0, len(sentence))


def paragraphs(text: str) -> Iterator[str]:
    """Iterate over the lines of a text; one that goes on in lower case is joined to the one before."""
    lines: list[str] = []
    end = 0
    for found in _LINE.finditer(text):
        line = " ".join(found[0].split())
        if lines and not (found.start() == end + 1 and _LOWERCASE.match(line)):
            yield " ".join(lines)
            lines = []
        if line:
            lines.append(line)
        end = found.end()
    if lines:
        yield " ".join(lines)


def _split(paragraph: str) -> Iterator[str]:
    quoted = _quotations(paragraph)
    found: list[str] = []
    begin = place = 0
    for match in SENTENCE_END.finditer(paragraph):
        while place < len(quoted) and quoted[place][1] <= match.start():
            place += 1
        if (place < len(quoted) and quoted[place][0] < match.start()) or _TAG.match(paragraph, match.end()):
            continue
        found.append(paragraph[begin : match.end()].strip())
        begin = match.end()
    found.append(paragraph[begin:].strip())
    found = [sentence for sentence in found if sentence]
    if len(found) > 1 and len(found[-2]) + len(found[-1]) < LONGEST and _is_quotation(found[-1]):
        found[-2:] = [f"{found[-2]} {found[-1]}"]
    return iter(found)


def _quotations(text: str) -> list[tuple[int, int]]:
    """Return where quotations begin and end; one that is not closed within `LONGEST` characters is none."""
    spans: list[tuple[int, int]] = []
    for match in _QUOTE.finditer(text):
        begin = match.start()
        if spans and begin < spans[-1][1]:
            continue
        closing = _CLOSING.get(match[0], match[0])
        ends = [end for mark in closing if (end := text.find(mark, begin + 1, begin + LONGEST)) >= 0]
        if ends:
            spans.append((begin, min(ends) + 1))
    return spans


def _parts(sentence: str, longest: int) -> Iterator[str]:
    begin = 0
    while len(sentence) - begin > longest:
        end = _part_end(sentence, begin, longest)
        if part := sentence[begin:end].strip():
            yield part
        begin = end
    if part := sentence[begin:].strip():
        yield part


def _part_end(sentence: str, begin: int, longest: int) -> int:
    """Return where a part ends: within `longest` characters, unless one grapheme cluster is longer than that."""
    best = (0, 0)
    for match in _PART_END.finditer(sentence, begin + longest // 2, begin + longest):
        best = max(best, (0 if match[0].isspace() else 2 if match["sentence"] else 1, match.end()))
    if best[1]:
        return best[1]
    end = begin
    for cluster in _GRAPHEME.finditer(sentence, begin):
        if end > begin and cluster.end() > begin + longest:
            break
        end = cluster.end()
    return end
