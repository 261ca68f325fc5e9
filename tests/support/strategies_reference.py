"""Random adventures that bite: small vocabularies so that triggers match, small contexts so that budgets do."""

from __future__ import annotations

from hypothesis import strategies as st

from assembler import Action, Adventure, Settings, StoryCard
from assembler.action_log import KINDS
from memorybank.memory import NewMemory
from tests.support.banks import RankedBank

WORDS = [
    *("Fenrir", "FENRIR", "fenrir’s", "fenrir's", "wolf", "wolves", "werewolf", "elf", "elf's", "Elfs", "shelf", "e"),
    *(
        "a",
        "I",
        "the",
        "The",
        "cat",
        "category",
        "Mr.",
        "Dr.",
        "J.",
        "says",
        "whispers",
        "3.14",
        "42",
        "x_wolf",
        "_elf_",
    ),
    *("café", "cafe\u0301", "cafe", "CAFÉ", "naïve", "Weißer", "WEISSER", "Turm", "straße", "x\u0302", "x"),
    *(
        "Işık",
        "ışık",
        "ISIK",
        "İstanbul",
        "istanbul",
        "ISTANBUL",
        "i\u0307stanbul",
        "ejderhanın",
        "Ejderha",
        "I\u0307z",
    ),
    *("佐藤は公園で写真を撮った。", "佐藤", "龙胆在哪里", "他问", "「なに！？」", "カタカナー", "狼", "的", "「狼」。"),
    *("คนที่นี่", "คน", "ที่นี่", "앨리스가", "앨리스", "각", "가", "한\u1100\u1161"),
    *("дракон", "Дракона", "ДРАКОН", "σοφός", "ΣΟΦΟΣ", "كتاب", "جاء؟", "राम।", "क्षि"),
    *(
        "👨‍👩‍👧‍👦",
        "🇹🇷🇩🇪",
        "🐺",
        "👍🏽",
        "🐺🐺",
        "AC/DC",
        "(run)",
        "C++",
        ".net",
        "<|endoftext|>",
        "l'Anmas",
        "Anmas’ın",
    ),
]
SPACES = [" "] * 12 + ["\n", "\n\n", "\r\n", "\r", "  ", "", "\u00a0", "\t"]
ENDS = [""] * 12 + [".", ".", ". ", "!", "?", "…", "...", ",", ".”", '."', ".)", "?!", "。", "！", "।"]
TRIGGERS = [
    *("Fenrir", "wolf", "wolf", "elf", "cat", "café", "cafe\u0301", "cafe", "Weißer Turm", "weisser turm", "strasse"),
    *(
        "ışık",
        "Işık",
        "ISIK",
        "istanbul",
        "İstanbul",
        "ejderha",
        "佐藤",
        "龙胆",
        "狼",
        "的",
        "公園",
        "คน",
        "ที่นี่",
        "앨리스",
    ),
    *(
        "가",
        "дракон",
        "σοφός",
        "ΣΟΦΟΣ",
        "كتاب",
        "राम",
        "🐺",
        "👨‍👩‍👧‍👦",
        "AC/DC",
        "C++",
        ".net",
        "(",
        ".",
        "e",
        "I",
        "i",
    ),
    *(
        "a",
        "the",
        "the wolf",
        "wolf the",
        " wolf ",
        " elf",
        "the ",
        "fenrir's",
        "Anmas",
        "endoftext",
        "wolfs",
        "x",
        "42",
    ),
    *("", "  ", " a ", "wolf\nthe", "the\r\nelf", "olf", "ca", "Fen", "ss", "'", "’s", "...", "wolf wolf"),
]


@st.composite
def texts(draw: st.DrawFn, most: int = 12, surrogates: bool = False) -> str:
    """A text of up to `most` words."""
    pieces: list[str] = []
    for _ in range(draw(st.integers(0, most))):
        pieces += [draw(st.sampled_from(WORDS)), draw(st.sampled_from(ENDS)), draw(st.sampled_from(SPACES))]
    if draw(st.integers(0, 19)) == 0:
        pieces.insert(0, draw(st.sampled_from([" ", "\n", "\r\n", ">", "> ", "\u3000"])))
    return "".join(pieces)


@st.composite
def actions(draw: st.DrawFn, most: int, prefix: str = "a") -> list[Action]:
    """A log; some actions have no text."""
    found: list[Action] = []
    for number in range(1, draw(st.integers(0, most)) + 1):
        kind = draw(st.sampled_from([*KINDS, "do", "output", "output"]))
        found.append(Action(f"{prefix}{number}", kind, "" if kind == "continue" else draw(texts(10))))
    return found


@st.composite
def cards(draw: st.DrawFn) -> tuple[StoryCard, ...]:
    """Some story cards of all modes."""
    found: list[StoryCard] = []
    for number in range(1, draw(st.integers(0, 7)) + 1):
        triggers = draw(st.lists(st.sampled_from(TRIGGERS), max_size=4))
        found.append(
            StoryCard(
                id=f"c{number}",
                triggers=",".join(triggers) if draw(st.integers(0, 5)) == 0 else tuple(triggers),
                entry=draw(texts(8)),
                match=draw(st.sampled_from(["word_start", "word_start", "word", "substring"])),
                enabled=draw(st.integers(0, 9)) > 0,
            )
        )
    return tuple(found)


@st.composite
def memories(draw: st.DrawFn, log: list[Action]) -> list[NewMemory]:
    """Memories with sources anywhere in the log, or gone from it, or none."""
    found: list[NewMemory] = []
    for number in range(1, draw(st.integers(0, 6)) + 1):
        sources: list[str] = []
        if log and draw(st.booleans()):
            begin = draw(st.integers(0, len(log) - 1))
            sources = [action.id for action in log[begin : begin + draw(st.integers(1, 3))]]
        if draw(st.integers(0, 6)) == 0:
            sources.append("gone")
        text = draw(texts(8)).strip() or "Something happened."
        found.append(NewMemory(text, f"m{number}", tuple(sources), draw(st.integers(0, 4)) == 0))
    return found


@st.composite
def components(draw: st.DrawFn) -> dict[str, str]:
    """The plot components, each of them often empty."""
    names = ("ai_instructions", "plot_essentials", "story_summary", "authors_note", "front_memory")
    return {name: draw(texts(6 if name == "front_memory" else 25)) for name in names if draw(st.booleans())}


@st.composite
def settings(draw: st.DrawFn, layout: str | None = None) -> Settings:
    """Settings with small context sizes most of the time."""
    size = draw(st.one_of(st.integers(1, 400), st.integers(20, 250), st.integers(400, 3000)))
    percents = draw(
        st.sampled_from([(70, 25, 25)] * 4 + [(70, 50, 50), (50, 0, 25), (100, 30, 0), (0, 100, 0), (30, 10, 90)])
    )
    return Settings(
        context_size=size,
        tokenizer=draw(st.sampled_from(["o200k_base", "o200k_base", "cl100k_base"])),
        layout=layout or draw(st.sampled_from(["classic", "cache_friendly"])),  # type: ignore[arg-type]
        required_percent=percents[0],
        story_cards_percent=percents[1],
        memory_bank_percent=percents[2],
        anchor_step=draw(st.sampled_from([1, 10, 40, 512])),
    )


@st.composite
def adventures(draw: st.DrawFn, most_actions: int = 14) -> tuple[Adventure, RankedBank | None]:
    """An adventure and its bank."""
    log = draw(actions(most_actions))
    remembered = draw(memories(log))
    adventure = Adventure(
        actions=log,  # type: ignore[arg-type]
        story_cards=draw(cards()),
        memory_bank=draw(st.integers(0, 5)) > 0,
        **draw(components()),
    )
    return adventure, RankedBank.of(remembered) if draw(st.integers(0, 7)) else None
