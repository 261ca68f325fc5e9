"""A model run by ONNX Runtime: exported once, compared, used when it may be used, and torch whenever it may not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from assembler import load
from memorybank import MemoryBank, cli
from memorybank.embedding import DEFAULT_MODEL, backend, onnx_export, open_embedder
from memorybank.embedding.exported import Export, find_export, source_of
from memorybank.embedding.loaded import steps
from memorybank.embedding.onnx import OnnxEmbedder
from memorybank.embedding.onnx_export import TEXTS, export_onnx
from memorybank.embedding.onnx_graphs import refuse
from memorybank.embedding.registry import find, locate
from memorybank.embedding.sentence_transformer import SentenceTransformerEmbedder
from memorybank.embedding.testing import RecordingEmbedder
from memorybank.embedding.threads import inference_threads
from memorybank.errors import InvalidInputError, ModelError, ModelMismatchError
from memorybank.search.vectors import embed

QUERIES = ["Where is the silver key?", "the animal you rescued on your first evening", "Kapıyı kim kapattı?"]


@pytest.fixture
def cache(exports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own with both exports; returns the folder that they lie in."""
    monkeypatch.setattr(backend, "gpu_in_sight", lambda: False)
    monkeypatch.setenv("MEMORYBANK_CACHE", str(tmp_path / "cache"))
    shutil.copytree(exports / "onnx", tmp_path / "cache" / "onnx")
    [folder] = (tmp_path / "cache" / "onnx").iterdir()
    return folder


@pytest.fixture
def torch_is_loaded(minilm: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every torch embedder of the default model have the one that is loaded already."""
    loaded = minilm.load()
    monkeypatch.setattr(SentenceTransformerEmbedder, "_open", lambda _: loaded)


def record_of(folder: Path, precision: str = "fp32") -> dict[str, Any]:
    return json.loads((folder / f"{precision}.json").read_text(encoding="utf-8"))


def change(folder: Path, **fields: Any) -> None:
    (folder / "fp32.json").write_text(json.dumps(record_of(folder) | fields), encoding="utf-8")


def test_the_record_says_what_was_compared(cache: Path) -> None:
    found = find_export(find(DEFAULT_MODEL), "fp32")
    assert found is not None
    folder, export = found
    assert folder == cache
    assert export.source["model.safetensors"] == find(DEFAULT_MODEL).sha256["model.safetensors"]
    assert (export.texts, export.dimensions, export.limit, export.model) == (len(TEXTS), 384, 256, DEFAULT_MODEL)
    assert 0.9999 < export.least_cosine <= 1.0 + 1e-9
    assert export.largest_difference < 1e-5
    assert {"torch", "onnx", "onnxruntime", "tokenizers"} <= set(export.versions)
    assert 0.95 < record_of(cache, "int8")["least_cosine"] < 0.9999
    assert (cache / "int8.onnx").stat().st_size < 0.3 * (cache / "fp32.onnx").stat().st_size
    assert sorted(path.name for path in cache.iterdir()) == [
        "fp32.json",
        "fp32.onnx",
        "int8.json",
        "int8.onnx",
        "tokenizer.json",
    ]


def test_vectors_are_those_of_torch(
    minilm: SentenceTransformerEmbedder, minilm_onnx: OnnxEmbedder, minilm_int8: OnnxEmbedder, examples: Path
) -> None:
    texts = [memory.text for memory in load(examples / "the_cormorant_light.json").memories]
    texts += ["The wolf crossed the river and the king wept. " * 80, "", "[SEP] [PAD]"]
    torch = minilm.embed(texts)
    np.testing.assert_allclose(minilm_onnx.embed(texts), torch, atol=2e-6)
    assert (minilm_onnx.name, minilm_onnx.fingerprint) == (minilm.name, minilm.fingerprint)
    assert 0.95 < float((minilm_int8.embed(texts) * torch).sum(axis=1).min()) < 0.9999
    assert minilm_int8.name == f"{DEFAULT_MODEL}+int8"
    assert minilm_int8.fingerprint != minilm.fingerprint


@pytest.mark.parametrize(
    "example", ["the_cormorant_light.json", "ilkyarin_isigi.json", "ombra_di_pietrachiara.json"], ids=lambda name: name
)
def test_a_bank_of_one_backend_is_searched_by_the_other(
    minilm: SentenceTransformerEmbedder, minilm_onnx: OnnxEmbedder, examples: Path, tmp_path: Path, example: str
) -> None:
    adventure = load(examples / example)
    texts = [memory.text for memory in adventure.memories]
    queries = [*QUERIES, *(action.text for action in adventure.actions[-4:] if action.text)]
    for written, reads in ((minilm, minilm_onnx), (minilm_onnx, minilm)):
        file = tmp_path / f"{type(written).__name__}.sqlite"
        with MemoryBank.open(file, embedder=written) as bank:
            bank.add_many(texts)
            expected = [[(one.memory.id, one.similarity) for one in bank.search(query)] for query in queries]
        with MemoryBank.open(file, embedder=reads) as bank:
            found = [[(one.memory.id, one.similarity) for one in bank.search(query)] for query in queries]
        assert [[id_ for id_, _ in row] for row in found] == [[id_ for id_, _ in row] for row in expected]
        for row, same in zip(found, expected, strict=True):
            np.testing.assert_allclose([value for _, value in row], [value for _, value in same], atol=1e-5)


def test_a_bank_notices_8_bits(
    minilm_onnx: OnnxEmbedder, minilm_int8: OnnxEmbedder, tmp_path: Path, cache: Path
) -> None:
    with MemoryBank.open(tmp_path / "x.sqlite", embedder=minilm_onnx) as bank:
        bank.add("The gate opens.")
    with pytest.raises(ModelMismatchError, match=r"--model all-MiniLM-L6-v2\+int8"):
        MemoryBank.open(tmp_path / "x.sqlite", embedder=minilm_int8)
    with MemoryBank.open(tmp_path / "x.sqlite", verify_model=False) as bank:
        assert bank.reembed(open_embedder("all-MiniLM-L6-v2+int8", cache=None)) == 1
        assert bank.info().model == "all-MiniLM-L6-v2+int8"


def test_auto_takes_the_export_and_loads_no_torch(cache: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    process = child("""
        import sys
        from memorybank import MemoryBank
        from memorybank.embedding import backend, open_embedder
        backend.gpu_in_sight = lambda: False
        with MemoryBank.open() as bank:
            bank.add("The gate opens.")
            assert bank.search("Does the gate open?")[0].similarity > 0.7
        assert "onnxruntime" in sys.modules
        print(*[name for name in ("torch", "transformers", "sentence_transformers", "onnx") if name in sys.modules])
    """)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out.strip(), err) == (0, "", "")


def test_a_forked_child_embeds(cache: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    process = child("""
        import os
        os.environ["OMP_NUM_THREADS"] = "2"
        from memorybank.embedding import open_embedder
        embedder = open_embedder(backend="onnx", cache=None)
        texts = ["The gate opens.", "A wolf howls. " * 30]
        before = embedder.embed(texts)
        if (pid := os.fork()) == 0:
            os._exit(0 if abs(embedder.embed(texts) - before).max() < 1e-6 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert abs(embedder.embed(texts) - before).max() < 1e-6
    """)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err


@pytest.mark.parametrize(
    ("backend_name", "model", "kind", "name"),
    [
        (None, DEFAULT_MODEL, OnnxEmbedder, DEFAULT_MODEL),
        ("auto", "sentence-transformers/all-MiniLM-L6-v2", OnnxEmbedder, DEFAULT_MODEL),
        ("onnx", DEFAULT_MODEL, OnnxEmbedder, DEFAULT_MODEL),
        ("torch", DEFAULT_MODEL, SentenceTransformerEmbedder, DEFAULT_MODEL),
        ("onnx-int8", DEFAULT_MODEL, OnnxEmbedder, "all-MiniLM-L6-v2+int8"),
        (None, "all-MiniLM-L6-v2+int8", OnnxEmbedder, "all-MiniLM-L6-v2+int8"),
        ("onnx-int8", "all-MiniLM-L6-v2+int8", OnnxEmbedder, "all-MiniLM-L6-v2+int8"),
    ],
)
def test_what_runs_the_model(cache: Path, backend_name: Any, model: str, kind: type, name: str) -> None:
    found = open_embedder(model, backend=backend_name, cache=None)
    assert type(found) is kind
    assert (found.name, found.dimensions) == (name, 384)


def test_the_environment_chooses_where_nobody_else_does(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYBANK_BACKEND", "torch")
    assert isinstance(open_embedder(cache=None), SentenceTransformerEmbedder)
    assert isinstance(open_embedder(backend="onnx", cache=None), OnnxEmbedder)
    assert open_embedder("hashing-64").name == "hashing-64"
    monkeypatch.setenv("MEMORYBANK_BACKEND", "tensorflow")
    with pytest.raises(InvalidInputError, match=r"MEMORYBANK_BACKEND.*auto, torch, onnx, onnx-int8, not 'tensorflow'"):
        open_embedder()


def test_8_bits_are_not_run_by_torch(cache: Path) -> None:
    with pytest.raises(InvalidInputError, match="run by the backend onnx-int8, not by torch"):
        open_embedder("all-MiniLM-L6-v2+int8", backend="torch")


def test_auto_takes_torch_beside_a_gpu_and_without_onnx_runtime(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(backend, "gpu_in_sight", lambda: True)
        assert isinstance(open_embedder(cache=None), SentenceTransformerEmbedder)
    monkeypatch.setattr(backend, "find_spec", lambda _: None)
    assert isinstance(open_embedder(cache=None), SentenceTransformerEmbedder)
    with pytest.raises(ModelError, match=r"not installed: pip install 'story-context\[model\]'"):
        open_embedder(backend="onnx")


@pytest.mark.parametrize("off", [True, False])
def test_without_an_export_auto_takes_torch_and_onnx_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: bool
) -> None:
    monkeypatch.setenv("MEMORYBANK_CACHE", "off" if off else str(tmp_path))
    told: list[str] = []
    assert isinstance(open_embedder(cache=None, on_wait=told.append), SentenceTransformerEmbedder)
    assert told == []
    for name, command in (("onnx", "export-onnx all-MiniLM"), ("onnx-int8", "export-onnx --int8 all-MiniLM")):
        with pytest.raises(ModelError, match=f"memorybank {command}"):
            open_embedder(backend=name)


def half_written(folder: Path) -> None:
    (folder / "fp32.onnx").write_bytes((folder / "fp32.onnx").read_bytes()[:1_000_000])


def one_bit(folder: Path) -> None:
    data = bytearray((folder / "fp32.onnx").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "fp32.onnx").write_bytes(data)


def missing_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def no_json(folder: Path) -> None:
    (folder / "fp32.json").write_text('{"format": "onnx-ex')


def no_record(folder: Path) -> None:
    (folder / "fp32.json").write_text("[1, 2]")


def other_weights(folder: Path) -> None:
    change(folder, source=record_of(folder)["source"] | {"model.safetensors": "0" * 64})


def not_near_enough(folder: Path) -> None:
    change(folder, least_cosine=0.99)


def no_number(folder: Path) -> None:
    change(folder, least_cosine=float("nan"))


def of_another_processor(folder: Path) -> None:
    change(folder, probes=record_of(folder, "int8")["probes"])


def no_graph(folder: Path) -> None:
    from memorybank.embedding.exported import sha256_of

    (folder / "fp32.onnx").write_bytes(b"a graph of another program")
    change(folder, sha256=record_of(folder)["sha256"] | {"fp32.onnx": sha256_of(folder / "fp32.onnx")})


DAMAGES = [half_written, one_bit, missing_tokenizer, no_json, no_record, other_weights, not_near_enough, no_number]
DAMAGES += [of_another_processor, no_graph]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.usefixtures("torch_is_loaded")
def test_what_is_wrong_with_an_export_is_told_and_torch_runs_the_model(
    cache: Path, minilm: SentenceTransformerEmbedder, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    damage(cache)
    told: list[str] = []
    embedder = open_embedder(cache=None, on_wait=told.append)
    assert (embedder.name, embedder.dimensions) == (DEFAULT_MODEL, 384)
    np.testing.assert_array_equal(embedder.embed(QUERIES), minilm.embed(QUERIES))
    [note] = told
    assert str(cache) in note
    assert "memorybank export-onnx --force all-MiniLM-L6-v2" in note
    assert "torch runs the model instead" in note
    assert [record.getMessage() for record in caplog.records] == [note]
    with pytest.raises(ModelError, match="export-onnx --force"):
        open_embedder(backend="onnx", cache=None).embed(["a"])


def test_a_graph_without_a_record_is_no_export(cache: Path) -> None:
    (cache / "fp32.json").unlink()
    told: list[str] = []
    assert isinstance(open_embedder(cache=None, on_wait=told.append), SentenceTransformerEmbedder)
    assert told == []


def test_other_files_have_another_export(cache: Path, tmp_path: Path) -> None:
    original = locate(find(DEFAULT_MODEL))
    assert original is not None
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    before = source_of(find(str(copy)), copy)
    assert isinstance(open_embedder(str(copy), cache=None), SentenceTransformerEmbedder)
    (copy / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 384, "pooling_mode_cls_token": true}')
    after = source_of(find(str(copy)), copy)
    assert before is not None
    assert after is not None
    assert {name for name in before if before[name] != after[name]} == {"1_Pooling/config.json"}


def test_what_is_there_is_not_made_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_export, "_Work", None)  # it would fail
    made = export_onnx(DEFAULT_MODEL, int8=True)
    assert [(folder, export.precision) for folder, export in made] == [(cache, "fp32"), (cache, "int8")]
    one_bit(cache)
    with pytest.raises(TypeError):
        export_onnx(DEFAULT_MODEL)


@pytest.mark.usefixtures("torch_is_loaded")
def test_an_export_that_is_not_near_enough_is_not_used(
    cache: Path, exports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph with weights of 8 bits, where one of 32 is due."""
    [folder] = (exports / "onnx").iterdir()
    monkeypatch.setattr(onnx_export, "trace", lambda _name, _loaded, graph: shutil.copy(folder / "int8.onnx", graph))
    (cache / ".making-left").mkdir()
    before = {path.name: path.read_bytes() for path in cache.iterdir() if path.is_file()}
    steps: list[tuple[int, int]] = []
    with pytest.raises(ModelError, match=r"not used: the smallest cosine .* is 0\.9\d+, and must be 0\.9999"):
        export_onnx(DEFAULT_MODEL, force=True, progress=lambda done, total: steps.append((done, total)))
    assert {path.name: path.read_bytes() for path in cache.iterdir() if path.is_file()} == before
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [path.name for path in cache.glob(".making-*")] == [".making-left"]  # it may be another process's


def model(**changes: Any) -> Any:
    tokenizer = {"backend_tokenizer": object(), "padding_side": "right", "model_input_names": ["input_ids"], **changes}
    return type("Model", (list,), {"tokenizer": SimpleNamespace(**tokenizer)})


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (model(backend_tokenizer=None)(), "no tokenizer.json"),
        (model(padding_side="left")(), "filled up at the left"),
        (model(model_input_names=["input_ids", "pixels"])(), "it takes pixels"),
        (model()([SimpleNamespace(include_prompt=False)]), "leaves prompts out"),
    ],
)
def test_a_model_that_cannot_be_exported_says_why(made: Any, says: str) -> None:
    with pytest.raises(ModelError, match=f"'x' cannot be exported: .*{says}.*torch runs it as before"):
        refuse("x", made)
    assert refuse("x", model()([SimpleNamespace(include_prompt=True)])) is None


def test_a_missing_package_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_export, "find_spec", lambda name: None if name == "onnx" else name)
    with pytest.raises(ModelError, match=r"needs onnx: pip install 'story-context\[model\]'"):
        export_onnx(DEFAULT_MODEL, force=True)


def test_steps_hold_so_many_pieces() -> None:
    lengths = [200, 3, 90, 256, 60, 100, 100, 5]
    found = list(steps(lengths, 256))
    assert sorted(place for step in found for place in step) == list(range(8))
    assert all(len(step) == 1 or len(step) * max(lengths[place] for place in step) <= 256 for step in found)
    assert found[0] == [1, 7, 4]
    assert list(steps([5, 3], 0)) == [[1], [0]]


def test_the_command(cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.main(["export-onnx", "--int8"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["fp32", "int8"]
    assert rows[0][1:] == ["1.000000", str(len(TEXTS)), str(cache / "fp32.onnx")]
    assert cli.main(["export-onnx", "--json"]) == 0
    [said] = json.loads(capsys.readouterr().out)["exports"]
    assert (said["file"], said["precision"], said["model"]) == (str(cache / "fp32.onnx"), "fp32", DEFAULT_MODEL)
    monkeypatch.setenv("MEMORYBANK_CACHE", "off")
    assert cli.main(["export-onnx"]) == 2
    assert "MEMORYBANK_CACHE is off" in capsys.readouterr().err


def test_a_record_comes_back_as_it_was(cache: Path, tmp_path: Path) -> None:
    found = find_export(find(DEFAULT_MODEL), "int8")
    assert found is not None
    replace(found[1], model="x").write(tmp_path)
    again = Export(**json.loads((tmp_path / "int8.json").read_text(encoding="utf-8")))
    assert again == replace(found[1], model="x")


def test_many_texts_are_embedded_longest_first_in_batches_of_like_length() -> None:
    texts = [f"{number} " + "wolf " * (number * 7 % 130) for number in range(130)]
    inner = RecordingEmbedder()
    told: list[int] = []
    found = embed(inner, texts, progress=told.append)
    np.testing.assert_array_equal(found, inner.inner.embed(texts))
    assert [len(text) for text in inner.texts] == sorted(map(len, texts), reverse=True)
    assert told == [64, 128, 130]


@pytest.mark.parametrize(
    ("version", "environment", "files", "expected"),
    [
        ("2.13.0+cpu", {}, True, False),
        ("2.13.0", {}, True, True),
        ("2.13.0", {}, False, False),
        ("2.13.0", {"CUDA_VISIBLE_DEVICES": ""}, True, False),
        ("2.13.0", {"CUDA_VISIBLE_DEVICES": "0"}, True, True),
    ],
)
def test_a_gpu_is_seen_without_torch(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    version: str,
    environment: dict[str, str],
    files: bool,
    expected: bool,
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(backend, "version", lambda _: version)
    monkeypatch.setattr(backend, "OF_GPUS", (str(tmp_path if files else tmp_path / "none"),))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert backend.gpu_in_sight() is expected
    assert "torch" not in sys.modules


def test_threads_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert inference_threads() == 3
    for nonsense in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", nonsense)
        assert 1 <= inference_threads() <= (os.cpu_count() or 1)
