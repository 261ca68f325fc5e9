"""In which script and, roughly, in which language a text is: enough to notice an answer in another one. Pure.

The language is told by its commonest short words, for texts in Latin and Cyrillic script, and only when it is clear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import regex

__all__ = ["guess_language", "same_language", "script_shares"]

READ = 20_000
"""Characters that are looked at."""
SHARE = 0.2
"""What the answer's script must have in the source: names in a foreign script are fewer."""
CLEAR, TIMES = 3, 2
"""Hits that a language must have, and how many times those of the next one."""

_SCRIPTS: Mapping[str, regex.Pattern[str]] = {
    name: regex.compile(pattern)
    for name, pattern in {
        "Latin": r"\p{Latin}[\p{Latin}\p{M}]*+",
        "Cyrillic": r"\p{Cyrillic}++",
        "Greek": r"\p{Greek}++",
        "Arabic": r"\p{Arabic}++",
        "Hebrew": r"\p{Hebrew}++",
        "Devanagari": r"\p{Devanagari}++",
        "Hangul": r"\p{Hangul}++",
        "Thai": r"\p{Thai}",
        "Han": r"\p{Han}",
        "Kana": r"[\p{Hiragana}\p{Katakana}]",
    }.items()
}
"""Whole words, and letters of the scripts that put no spaces between words."""
_WORD = regex.compile(r"[\p{L}\p{M}]++")

_COMMON: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the and of to was with that his her you had from for were who at not is are by",
        "it": "il di che la e non per una un con gli del della nel sono era più ma al si",
        "es": "el de que y la los las en por una con del se su para no un está pero al",
        "fr": "le les et des est une dans que qui pas pour du elle au avec sur son ne un ce",
        "de": "der die das und ist nicht ein eine mit den dem sich auf von zu er sie war im wie",
        "pt": "o os as que não uma um do da em com para por seu ele ela mas foi na e",
        "nl": "de het een en van is niet dat met zijn op voor hij zij was te aan naar ook er",
        "tr": "ve bir bu da de için ile çok ama gibi daha ne sonra kadar diye olarak onu değil var o",
        "pl": "i w na nie się z do to że jest jak po co ale był za od tym przez jego",
        "ru": "и в не на что с он как она но это его за по из от было был к ты",
        "uk": "і в не на що з він як вона але це його за по із від було був до ти",
    }.items()
}
_SHARED = Counter(word for words in _COMMON.values() for word in words)


def script_shares(text: str) -> dict[str, float]:
    """Return for each script its share of the words (of the letters, where words are not set apart)."""
    text = text[:READ]
    counts = {name: len(words.findall(text)) for name, words in _SCRIPTS.items()}
    whole = sum(counts.values())
    return {name: count / whole for name, count in counts.items() if count}


def guess_language(text: str) -> str | None:
    """Return the language of a text as a tag of two letters, or None if it is not clear.

    >>> guess_language("The key was under the floor of the chapel."), guess_language("Mara!")
    ('en', None)
    """
    hits: dict[str, float] = dict.fromkeys(_COMMON, 0.0)
    for word, count in Counter(_WORD.findall(text[:READ].casefold())).items():
        for language, words in _COMMON.items():
            if word in words:
                hits[language] += count / _SHARED[word]
    (best, most), (_, second) = sorted(hits.items(), key=lambda one: -one[1])[:2]
    return best if most >= CLEAR and most >= TIMES * second else None


def same_language(answer: str, source: str, hint: str | None = None) -> bool:
    """Whether an answer may be in the language of its source; what is not clear may be.

    Args:
        answer: what a writer gave.
        source: what it was given.
        hint: the language's tag, if it is known.
    """
    found, expected = script_shares(answer), script_shares(source)
    if found and expected:
        script = max(found, key=lambda name: found[name])
        not_japanese = expected.get("Kana", 0.0) >= SHARE and script == "Han" and "Kana" not in found
        if expected.get(script, 0.0) < SHARE or not_japanese:
            return False
    tag = (hint or "").casefold()[:2]
    languages = {guess_language(source), tag if tag in _COMMON else None} - {None}
    return not languages or guess_language(answer) in {None, *languages}
