"""How a model refuses: phrases at the very beginning of an answer, in the languages that the project is tried with.

A story may have such a phrase, too ("I cannot do that, Mara"). So it is none when the source says the same, and the
phrases are those of an assistant that speaks of its task, not of a character.
"""

from __future__ import annotations

import re

__all__ = ["is_refusal"]

LOOKED_AT = 300
"""Characters at the beginning of an answer within which a refusal begins and says what it refuses."""

_CANNOT = r"i(?: cannot| can ?not| can['’]t| won['’]t| am unable to|['’]m unable to| am not able to|['’]m not able to)"
_TASK = (
    r"(?:help|assist|comply|fulfil|fulfill|provide|generate|create|write|produce|summari[sz]e|continue|engage|process)"
)
_PATTERNS = (
    rf"(?:i['’]?m |i am |i |my )?(?:very |so |really )?(?:sorry|apologi[sz]e|apologies)[,.!]?(?: but)?,? {_CANNOT}",
    rf"{_CANNOT} {_TASK}\b.{{0,40}}\b(?:that|this|your|request|content|material|summary|story|passage|text)\b",
    r"(?:as|i am|i['’]m) (?:just )?an? (?:ai|artificial intelligence|language model|large language model)\b",
    r"unfortunately,? i (?:cannot|can['’]t|am unable)",
    r"(?:mi dispiace|mi spiace|spiacente),? (?:ma )?non (?:posso|sono in grado)",
    r"non posso (?:aiutart|aiutarl|assister|fornir|generare|creare|scrivere|riassumere|soddisfare|elaborare)",
    r"(?:in quanto|come) (?:ia|intelligenza artificiale|modello linguistico|assistente)\b",
    r"(?:lo siento|disculpa|perdona),? (?:pero )?no puedo",
    r"no puedo (?:ayudar|asistir|generar|proporcionar|crear|escribir|resumir|cumplir)",
    r"como (?:ia|una ia|inteligencia artificial|modelo de lenguaje|um modelo de linguagem|uma ia)\b",
    r"(?:je suis )?(?:désolé|désolée|navré)[,.]? (?:mais )?je ne (?:peux|suis)",
    r"je ne peux pas (?:vous aider|t['’]aider|aider|générer|fournir|créer|écrire|résumer)",
    r"en tant qu['’](?:ia|intelligence artificielle|assistant|un modèle)",
    r"(?:es tut mir leid|tut mir leid|entschuldigung)[,.]? (?:aber )?(?:ich kann|das kann ich|dabei kann ich)",
    r"ich kann (?:dir|ihnen|dabei|diese|diesen|das)\b.{0,40}\bnicht (?:helfen|weiterhelfen|erfüllen|zusammenfassen)",
    r"als (?:ki|künstliche intelligenz|sprachmodell)\b",
    r"(?:desculpe|sinto muito|lamento),? (?:mas )?(?:eu )?não posso",
    r"(?:üzgünüm|maalesef|özür dilerim)[,.]? (?:ama )?.{0,60}\b(?:olamam|olamıyorum|yapamam|edemem|yazamam)",
    r"(?:bir )?(?:yapay zek[aâ]|dil modeli) olarak",
    r"(?:извините|простите|к сожалению|мне жаль)[,.]? (?:но )?я не (?:могу|в состоянии)",
    r"как (?:ии|искусственный интеллект|языковая модель)\b",
    r"(?:很)?(?:抱歉|对不起)[，,。]?.{0,12}(?:无法|不能|不可以)",
    r"(?:作为|身为)(?:一个|一名)?(?:ai|人工智能|语言模型|大型语言模型)",
    r"(?:申し訳|すみません|恐れ入りますが).{0,40}(?:できません|できかねます|いたしかねます|お手伝い)",
    r"(?:죄송|미안).{0,40}(?:수 없|어렵)",
)
_REFUSAL = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)


def is_refusal(answer: str, source: str = "") -> bool:
    """Whether an answer begins by refusing the task, and not with what the source says.

    >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("I can't open the door, Mara said.")
    (True, False)
    """
    found = _REFUSAL.match(answer[:LOOKED_AT].lstrip("*_ \n"))
    return found is not None and _plain(found[0]) not in _plain(source)


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())
