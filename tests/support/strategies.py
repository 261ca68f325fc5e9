"""Random adventures for the properties: small vocabularies, so that triggers match, and every oddity of Unicode."""

import functools
import json
import tempfile
from pathlib import Path

from hypothesis import strategies as st

from assembler import Action, Adventure, Settings, StoryCard
from memorybank import NewMemory
from memorybank.text import repair

WORDS = [
    *("the gate opens", "Fenrir", "wolf", "Mara", "silver key", "lantern", "e", "You wait.", "runs.", "He said:"),
    *("ejderhanın", "IŞIK", "İstanbul", "perché", "cafe\u0301", "l'Anmas", "Weißer Turm", "WEISSER"),
    *("佐藤は公園で", "龙胆", "ภาษาไทย", "คน", "앨리스가", "각"),
    *("👨\u200d👩\u200d👧\u200d👦", "🇮🇹🇹🇷", "e\u0301\u0323", "!", "...", "—", "/", "//slash", "<|endoftext|>"),
    *("\n", "\n\n", "\t", "  ", "\r\n", "\x00", "\ud83d", "\u200d", "3.14", "well-known", "don't"),
    "supercalifragilistic",
]
words = st.sampled_from(WORDS)
texts = st.one_of(
    st.lists(words, max_size=12).map(" ".join),
    st.lists(words, max_size=40).map(" ".join),
    st.lists(words, max_size=8).map("".join),
    st.text(max_size=20),
)
kinds = st.sampled_from(["start", "do", "say", "story", "output", "continue"])
triggers = st.lists(st.sampled_from(["Fenrir", "wolf", "e", ".", "ışık", "istanbul", "café", "佐藤", "คน", "key", " "]))


@st.composite
def adventures(draw: st.DrawFn) -> Adventure:
    """Adventures of up to 20 actions, 8 cards and 6 memories."""
    count = draw(st.integers(0, 20))
    actions = [Action(f"a{n}", draw(kinds), draw(texts)) for n in range(1, count + 1)]
    cards = [
        StoryCard(
            id=f"c{n}",
            triggers=tuple(draw(triggers)),
            entry=draw(texts),
            match=draw(st.sampled_from(["word_start", "word", "substring"])),
            enabled=draw(st.integers(0, 9)) > 0,
        )
        for n in range(1, draw(st.integers(0, 8)) + 1)
    ]
    memories = []
    for n in range(1, draw(st.integers(0, 6)) + 1):
        first = draw(st.integers(0, count))
        sources = tuple(action.id for action in actions[first : first + draw(st.integers(0, 4))])
        memories.append(NewMemory(draw(texts), id=f"m{n}", actions=sources, pinned=draw(st.integers(0, 4)) == 0))
    return Adventure(
        actions=actions,
        story_cards=tuple(cards),
        memories=tuple(memory for memory in memories if memory.text.strip()),
        memory_bank=draw(st.integers(0, 4)) > 0,
        **{
            name: draw(st.one_of(st.just(""), texts))
            for name in ("ai_instructions", "plot_essentials", "story_summary", "authors_note", "front_memory")
        },
    )


@functools.cache
def byte_level_bpe() -> str:
    """Return the path of a small tokenizer of an open model's kind, trained here."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator([*map(repair, WORDS), json.dumps(WORDS)] * 3, trainer)
    path = Path(tempfile.mkdtemp()) / "tokenizer.json"
    tokenizer.save(str(path))
    return str(path)


TOKENIZERS = ["o200k_base", "cl100k_base", "chars/4", "byte_level_bpe"]


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    """Settings with context sizes at which the budgets bite, and some at which everything fits."""
    tokenizer = draw(st.sampled_from(TOKENIZERS))
    return Settings(
        context_size=draw(st.one_of(st.integers(1, 60), st.integers(60, 500), st.integers(500, 5000))),
        tokenizer=byte_level_bpe() if tokenizer == "byte_level_bpe" else tokenizer,
        layout=draw(st.sampled_from(["classic", "cache_friendly"])),
    )
