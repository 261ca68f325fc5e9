"""The embedders for tests, and the defaults of the threads."""

import hashlib
import os
import sys

import numpy as np
import pytest

from memorybank.embedding.testing import HashingEmbedder, RecordingEmbedder
from memorybank.embedding.threads import set_thread_defaults
from memorybank.errors import InvalidInputError

GOLDEN = "f22bbac2931cb1a52a2e4805e544bfcc4bb6a144e23e4749135a4a8fb8d62670"


def test_the_same_bits_everywhere():
    vectors = HashingEmbedder(64).embed(["The wolf howls at night.", "Weißer Turm", "哈哈", "...", ""])
    assert hashlib.sha256(vectors.astype("<f4").tobytes()).hexdigest() == GOLDEN


def test_case_form_and_punctuation_do_not_count():
    rows = HashingEmbedder().embed(["Café, WEISSER Turm!", "cafe\u0301 weißer turm"])
    np.testing.assert_array_equal(rows[0], rows[1])


def test_texts_without_words_differ():
    rows = HashingEmbedder().embed(["...", "!", "😀", "😢", ""])
    assert len({row.tobytes() for row in rows}) == 5


def test_width_and_name():
    assert (HashingEmbedder(7).dimensions, HashingEmbedder(7).name) == (7, "hashing-7")
    assert HashingEmbedder(7, name="x").name == "x"
    for width in (0, 4097):
        with pytest.raises(InvalidInputError, match="from 1 to 4096"):
            HashingEmbedder(width)


def test_one_dimension_is_enough_for_a_unit_vector():
    assert set(np.abs(HashingEmbedder(1).embed(["a b c", "", "wolf"])).ravel()) == {1.0}


def test_recording():
    embedder = RecordingEmbedder()
    embedder.embed(["a", "b"])
    embedder.embed(["c"], kind="query")
    assert embedder.calls == [(("a", "b"), "passage"), (("c",), "query")]
    assert embedder.texts == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("environment", "modules", "expected"),
    [
        ({}, [], "1"),
        ({"OMP_NUM_THREADS": "4"}, [], None),
        ({"OPENBLAS_NUM_THREADS": "3"}, [], "3"),
        ({}, ["numpy"], None),
        ({}, ["torch"], None),
    ],
    ids=["nobody chose", "the user chose OMP", "the user chose OpenBLAS", "numpy is here", "torch is here"],
)
def test_thread_defaults(monkeypatch, environment, modules, expected):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, environment.get(name, ""))  # so that monkeypatch puts it back afterwards
        if name not in environment:
            os.environ.pop(name)
    monkeypatch.setattr(sys, "modules", dict.fromkeys(modules))
    set_thread_defaults()
    found = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ.pop("OPENBLAS_NUM_THREADS", None)
    assert found == expected
