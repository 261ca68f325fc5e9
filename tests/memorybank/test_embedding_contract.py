"""What every embedder must do, and what the real model does on top. The model is loaded once for the whole file."""

import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memorybank.embedding import DEFAULT_MODEL, Embedder, open_embedder
from memorybank.embedding.cache import CachedEmbedder, VectorCache
from memorybank.embedding.loaded import room, windows_of
from memorybank.embedding.registry import find, locate
from memorybank.embedding.sentence_transformer import SentenceTransformerEmbedder
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import InvalidInputError, ModelError

REAL = {
    "MiniLM": "minilm",
    "MiniLM in ONNX": "minilm_onnx",
    "MiniLM in ONNX, 8 bits": "minilm_int8",
    "USE": "use",
    "E5 in 4 bits": "e5_4bit",
}
KINDS = ["hashing", *REAL, "hashing behind a cache"]
HOSTILE = {
    "empty": "",
    "spaces": " \n\t ",
    "dots": "...",
    "emoji": "😀",
    "NUL": "a\0b",
    "lone half": "\ud83d",
    "control words": "[CLS] <|endoftext|> [MASK]",
    "a million a": "a" * 1_000_000,
    "1.5 million spaces": "The wolf" + " " * 1_500_000 + "howls",
    "200,000 han": "哈" * 200_000,
    "combining": "e" + "\u0301" * 50_000,
}


@pytest.fixture(params=KINDS)
def embedder(request, tmp_path):
    inner = request.getfixturevalue(REAL[request.param]) if request.param in REAL else HashingEmbedder(64)
    if "cache" not in request.param:
        yield inner
        return
    with VectorCache(tmp_path / "vectors.sqlite") as cache:
        yield CachedEmbedder(inner, cache)


@pytest.fixture
def attempts(monkeypatch) -> list[object]:
    """All attempts to reach the network, each of which fails."""
    seen: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        seen.append(arguments)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return seen


def assert_sound(vectors: np.ndarray, count: int, embedder: Embedder) -> None:
    assert vectors.shape == (count, embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1.0, atol=1e-6)


def test_is_an_embedder(embedder):
    assert isinstance(embedder, Embedder)
    assert embedder.name
    assert embedder.dimensions > 0


def test_shape_type_and_length(embedder):
    assert_sound(embedder.embed(["The gate opens.", "A wolf howls.", "哈"]), 3, embedder)


def test_no_text_gives_no_rows(embedder):
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_order_is_kept_and_duplicates_are_equal(embedder):
    texts = ["A long story about a wolf and a king. " * 9, "Bread.", "The gate opens.", "Bread.", "A"]
    together = embedder.embed(texts)
    for row, text in zip(together, texts, strict=True):
        np.testing.assert_allclose(row, embedder.embed([text])[0], atol=1e-6)
    np.testing.assert_array_equal(together[1], together[3])


def test_vector_does_not_depend_on_the_batch(embedder):
    probe = "Mara hid the silver key under the chapel floor."
    alone = embedder.embed([probe])[0]
    for others in (["x"], ["word " * 200] * 3, [f"filler number {n}" for n in range(40)]):
        np.testing.assert_allclose(embedder.embed([*others, probe])[-1], alone, atol=1e-6)


def test_similar_texts_are_nearer(embedder):
    a, b, c = embedder.embed(["The wolf howls at night.", "At night, the wolf howled.", "Bakers sell fresh bread."])
    # E5 was trained with a temperature of 0.01: its cosines lie between 0.7 and 1.
    likely, unlikely = (0.95, 0.8) if "e5" in embedder.name else (0.6, 0.3)
    assert a @ b > likely > unlikely > a @ c


def test_long_texts_with_different_ends_differ(embedder):
    start = "one day " * 200
    a, b = embedder.embed([start + "the king died in his bed", start + "the ship sailed for the south"])
    assert a @ b < 0.9999


def test_different_words_too_long_for_a_tokenizer_differ(embedder):
    a, b = embedder.embed(["a" * 3000, "xyz" * 1000])
    assert a @ b < 0.99


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_has_a_vector(embedder, text):
    assert_sound(embedder.embed([text], kind="query"), 1, embedder)


def test_escaped_pair_is_its_character(embedder):
    a, b, c = embedder.embed(["\ud83d\udc4d yes", "👍 yes", "yes\r\nno"])
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(c, embedder.embed(["yes\nno"])[0], atol=1e-6)


def test_kinds_are_both_taken(embedder):
    assert_sound(embedder.embed(["Where is the key?"], kind="query"), 1, embedder)
    assert_sound(embedder.embed(["Where is the key?"], kind="passage"), 1, embedder)


@pytest.mark.parametrize(
    ("texts", "kind", "said"),
    [
        ("one text", "passage", "list of texts"),
        (["a", None], "passage", r"texts\[1\] must be a string"),
        (["a"], "document", "'query' or 'passage'"),
    ],
    ids=["a string", "None in the list", "unknown kind"],
)
def test_wrong_calls_are_refused(embedder, texts, kind, said):
    with pytest.raises(InvalidInputError, match=said):
        embedder.embed(texts, kind=kind)


def test_caller_may_change_the_result(embedder):
    first = embedder.embed(["The gate opens."])
    kept = first.copy()
    first[:] = 0
    np.testing.assert_allclose(embedder.embed(["The gate opens."]), kept, atol=1e-6)


def test_16_threads_get_the_vectors_of_one(embedder):
    texts = [" ".join(["the wolf", "runs", "over", "snow"][: 1 + n % 4] * (1 + n // 16)) + f" {n}" for n in range(50)]
    texts = texts if embedder.name.startswith("hashing") else texts[:12]
    expected = embedder.embed(texts)

    def work(thread: int) -> float:
        order = np.random.default_rng(thread).permutation(len(texts))
        return max(float(np.abs(embedder.embed([texts[n]])[0] - expected[n]).max()) for n in order)

    with ThreadPoolExecutor(16) as pool:
        assert max(pool.map(work, range(16))) < 1e-5


def test_minilm_gives_the_published_similarities(minilm):
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    a, b, c = minilm.embed(texts)
    np.testing.assert_allclose([a @ b, a @ c, b @ c], [0.6660, 0.1046, 0.1411], atol=5e-5)


def test_minilm_reads_each_window_by_its_weight(minilm):
    long = " ".join(f"The wolf crossed river {n} and the king wept." for n in range(60))
    loaded = minilm.load()
    parts = [part.text for part in _windows_of(minilm, long)]
    assert len(parts) > 2
    weights = np.array([len(loaded.pieces(part)) for part in parts])
    mean = weights @ minilm.embed(parts)
    assert minilm.embed([long])[0] @ mean / np.linalg.norm(mean) == pytest.approx(1.0, abs=1e-6)


def test_minilm_windows_fit_the_model_and_lose_nothing(minilm):
    loaded = minilm.load()
    for text in (
        "The wolf ran home. " * 300,
        "pneumonoultramicroscopic" * 400,
        "哈" * 3000,
        "https://a.b/c?d=e&" * 300,
    ):
        parts = [part.text for part in _windows_of(minilm, text)]
        assert all(len(loaded.model.tokenizer(part)["input_ids"]) <= 256 for part in parts)
        read = [piece for part in parts for piece in "".join(part.split())]
        assert "".join(read) == "".join(text.split())


def test_minilm_takes_typed_control_words_for_text(minilm):
    loaded = minilm.load()
    ids = loaded.model.tokenizer("The wolf [SEP] howls")["input_ids"]
    assert ids.count(loaded.model.tokenizer.sep_token_id) == 1  # the one at the end
    assert len(loaded.pieces("The wolf [SEP] howls")) == len(ids) - 2 > 5


def test_minilm_draws_no_progress_bar(minilm, capfd):
    SentenceTransformerEmbedder(find(DEFAULT_MODEL)).embed(["quiet"])
    minilm.embed(["quiet"] * 3)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_someone_who_waits_is_told_once():
    told = []
    embedder = open_embedder(cache=None, on_wait=told.append)
    assert (embedder.name, embedder.dimensions, told) == (DEFAULT_MODEL, 384, [])
    embedder.embed(["a"])
    embedder.embed(["b"])
    assert told == ["loading the embedding model all-MiniLM-L6-v2 …"]


def test_a_directory_is_a_model_without_a_connection(minilm, tmp_path, attempts):
    directory = str(_linked(tmp_path / "my-model"))
    embedder = open_embedder(directory, cache=None)
    assert (embedder.name, embedder.dimensions) == (directory, 384)
    np.testing.assert_allclose(embedder.embed(["The gate opens."]), minilm.embed(["The gate opens."]), atol=1e-6)
    assert attempts == []


def test_a_hub_model_on_this_machine_needs_no_connection(minilm, tmp_path, monkeypatch, attempts):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--someone--little-model"
    _linked(home / "snapshots" / "abc123")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("abc123")
    embedder = open_embedder("someone/little-model", cache=None)
    np.testing.assert_allclose(embedder.embed(["The gate opens."]), minilm.embed(["The gate opens."]), atol=1e-6)
    assert embedder.dimensions == 384
    assert attempts == []


def test_a_hub_model_without_network_says_what_to_do(tmp_path, monkeypatch, attempts):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    told = []
    embedder = open_embedder("someone/absent", cache=None, on_wait=told.append)
    with pytest.raises(ModelError, match=r"someone/absent.*not on this machine.*[Cc]onnect.*directory.*pip install"):
        embedder.embed(["a"])
    assert attempts
    assert told == ["downloading the embedding model someone/absent from the Hugging Face hub …"]


def test_a_broken_model_directory_is_a_model_error(tmp_path):
    directory = _linked(tmp_path / "broken")
    (directory / "model.safetensors").unlink()
    (directory / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(ModelError, match="cannot be loaded"):
        open_embedder(str(directory), cache=None).embed(["a"])


def test_another_width_than_the_profile_says_is_an_error():
    with pytest.raises(ModelError, match="width 384, but its files say 383"):
        SentenceTransformerEmbedder(replace(find(DEFAULT_MODEL), dimensions=383)).embed(["a"])


def _packaged() -> Path:
    directory = locate(find(DEFAULT_MODEL))
    assert directory is not None
    return directory


def _linked(target: Path) -> Path:
    """Make a model directory of links to the packaged files."""
    for file in _packaged().rglob("*"):
        if file.is_file():
            link = target / file.relative_to(_packaged())
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
    return target


def _windows_of(minilm, text):
    loaded = minilm.load()
    return windows_of(text, loaded.pieces, room(loaded, ""))
