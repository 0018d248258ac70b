"""sentence-transformers as embedder and reranker, with tiny real models that are built here."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pps.config import EmbedderSettings, RerankerSettings
from pps.core.errors import ConfigError, ModelOutputInvalid, ModelUnavailable
from pps.models.factory import make_embedder, make_reranker
from pps.models.protocols import Fingerprint
from pps.models.sentence_transformers import CrossEncoderReranker, SentenceTransformerEmbedder
from tests.tiny_models import save_cross_encoder, save_embedder
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.torch

_PASSAGES = [f"Ana keeps {number} cups in the kitchen" for number in range(40)]


@pytest.fixture(scope="module", autouse=True)
def offline() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_cross_encoder(tmp_path_factory.mktemp("scorer") / "tiny")


@pytest.fixture(scope="module")
def embedder_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_embedder(tmp_path_factory.mktemp("embedder"))


@pytest.fixture(scope="module")
def embedder(embedder_folder: str) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(embedder_folder)


@pytest.fixture
def reranker(scorer: str) -> Any:
    made = CrossEncoderReranker(scorer, batch=8)
    yield made
    made.close()


def stock(folder: str) -> Any:
    """Return the library's own model."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(folder)


def test_a_folder_says_what_its_vectors_are_before_it_is_loaded(
    embedder_folder: str, tmp_path: Path
) -> None:
    folder = tmp_path / "tiny-embedder"
    shutil.copytree(embedder_folder, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    embedder = SentenceTransformerEmbedder(str(folder))
    assert embedder.fingerprint == Fingerprint("tiny-embedder", 32, "mean")
    with pytest.raises(ModelUnavailable):
        embedder.embed_query("tea")


def test_an_embedder_from_a_folder_keeps_the_order(embedder: SentenceTransformerEmbedder) -> None:
    rows = embedder.embed_passages(_PASSAGES)
    assert rows.shape == (40, 32)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(rows[[3]], embedder.embed_passages([_PASSAGES[3]]), atol=1e-4)
    assert embedder.embed_passages([]).shape == (0, 32)


def test_the_models_own_prompts_are_used(
    embedder: SentenceTransformerEmbedder, embedder_folder: str
) -> None:
    text = "Ana drinks tea"
    query = embedder.embed_query(text)
    assert not np.allclose(query, embedder.embed_passages([text])[0], atol=1e-4)
    assert np.allclose(
        query,
        stock(embedder_folder).encode([f"query: {text}"], normalize_embeddings=True)[0],
        atol=1e-5,
    )


def test_long_texts_are_split_to_the_models_window(
    embedder: SentenceTransformerEmbedder, embedder_folder: str
) -> None:
    sentences = [f"On day {number} Ana moved to Lisbon." for number in range(80)]
    passages = embedder.split(" ".join(sentences))
    tokenizer = stock(embedder_folder).tokenizer
    assert max(len(tokenizer("passage: " + passage)["input_ids"]) for passage in passages) <= 128
    assert all(any(sentence in passage for passage in passages) for sentence in sentences)
    assert embedder.embed_query(" ".join(sentences)).shape == (32,)


def test_threads_share_an_embedder(embedder_folder: str) -> None:
    embedder = SentenceTransformerEmbedder(embedder_folder)
    expected = embedder.embed_passages(_PASSAGES)
    wrong: list[int] = []

    def work(at: int) -> None:
        for _ in range(5):
            embedder.split("Ana drinks tea. " * 60)
            if not np.allclose(
                embedder.embed_passages([_PASSAGES[at]])[0], expected[at], atol=1e-4
            ):
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_wrong_dimension_is_found_at_the_first_use(embedder_folder: str) -> None:
    embedder = SentenceTransformerEmbedder(embedder_folder, dimension=64)
    with pytest.raises(ConfigError, match=r"embedder\.dimension is 64, but .* gives 32"):
        embedder.embed_query("tea")


def test_a_model_that_cannot_be_loaded_is_unavailable() -> None:
    embedder = SentenceTransformerEmbedder("nobody/no-such-model", dimension=8)
    with pytest.raises(ModelUnavailable, match="nobody/no-such-model"):
        embedder.embed_query("tea")


def test_settings_make_an_embedder_from_a_path(embedder_folder: str) -> None:
    made = make_embedder(EmbedderSettings(name="sentence-transformers", path=Path(embedder_folder)))
    assert made is not None
    assert made.fingerprint.dimension == 32


def test_a_reranker_gives_each_passage_the_models_score_in_the_order_given(
    scorer: str, reranker: CrossEncoderReranker
) -> None:
    from sentence_transformers import CrossEncoder

    result = reranker.rerank("cups in the kitchen", _PASSAGES, deadline_s=120)
    assert result.complete
    direct = CrossEncoder(scorer).predict(
        [("cups in the kitchen", passage) for passage in _PASSAGES]
    )
    assert np.allclose(result.scores, direct, atol=1e-4)
    assert len(set(result.scores)) > 1


def test_nothing_to_rank_is_complete_and_loads_nothing() -> None:
    reranker = CrossEncoderReranker("nobody/no-such-model")
    result = reranker.rerank("tea", [], deadline_s=0.5)
    assert result.complete
    assert result.scores == ()
    with pytest.raises(ModelUnavailable):
        reranker.rerank("tea", ["a"], deadline_s=120)
    reranker.close()


def test_the_first_call_answers_in_time_while_the_model_loads_behind_it(
    reranker: CrossEncoderReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import CrossEncoder

    answered = threading.Event()

    def after_the_answer(source: str) -> CrossEncoder:
        assert answered.wait(PATIENCE_S), "the first call waits until the model is loaded"
        return CrossEncoder(source)

    monkeypatch.setattr("sentence_transformers.CrossEncoder", after_the_answer)
    first = reranker.rerank("tea", _PASSAGES, deadline_s=0.05)
    answered.set()
    assert not first.complete
    assert first.scores == ()
    assert reranker.rerank("tea", _PASSAGES, deadline_s=120).complete


def test_a_deadline_in_the_middle_leaves_the_scores_of_the_first_passages(scorer: str) -> None:
    ticks = iter(
        [0.0, 0.0, 0.0, 0.0, *([1_000.0] * 100)]
    )  # the call, its turn, two batches, then too late
    reranker = CrossEncoderReranker(scorer, batch=8, clock=lambda: next(ticks))
    result = reranker.rerank("tea", _PASSAGES, deadline_s=120)
    reranker.close()
    assert not result.complete
    assert len(result.scores) == 16


def test_a_deadline_that_has_passed_costs_no_work(reranker: CrossEncoderReranker) -> None:
    result = reranker.rerank("tea", _PASSAGES, deadline_s=0)
    assert not result.complete
    assert result.scores == ()


def test_callers_at_once_are_served_by_one_worker(
    reranker: CrossEncoderReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import CrossEncoder

    threads_seen: set[str] = set()
    results: list[bool] = []

    class Watched(CrossEncoder):
        def predict(self, *args: Any, **options: Any) -> Any:
            threads_seen.add(threading.current_thread().name)
            return super().predict(*args, **options)

    monkeypatch.setattr("sentence_transformers.CrossEncoder", Watched)
    callers = [
        threading.Thread(
            target=lambda: results.append(
                reranker.rerank("tea", _PASSAGES[:9], deadline_s=120).complete
            )
        )
        for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [True] * 4
    assert len(threads_seen) == 1


def test_a_reranker_that_cannot_be_loaded_says_so_for_a_minute_and_is_then_tried_again(
    tmp_path: Path,
) -> None:
    moment = [0.0]
    reranker = CrossEncoderReranker(str(tmp_path / "later"), clock=lambda: moment[0])
    with pytest.raises(ModelUnavailable, match="later"):
        reranker.rerank("tea", ["a"], deadline_s=120)
    save_cross_encoder(tmp_path / "later")
    with pytest.raises(ModelUnavailable):
        reranker.rerank("tea", ["a"], deadline_s=120)
    moment[0] = 61
    assert reranker.rerank("tea", ["a"], deadline_s=120).complete
    reranker.close()


def test_a_classifier_is_no_reranker(tmp_path: Path) -> None:
    reranker = CrossEncoderReranker(save_cross_encoder(tmp_path / "classifier", labels=3))
    with pytest.raises(ModelOutputInvalid, match=r"reranker\.model"):
        reranker.rerank("tea", _PASSAGES[:3], deadline_s=120)
    reranker.close()


def test_odd_texts_are_scored(reranker: CrossEncoderReranker) -> None:
    odd = ["", "a\ud800b", "x\0y", "咖啡" * 500, "😀"]
    assert reranker.rerank("\0", odd, deadline_s=120).complete


def test_settings_make_a_reranker(scorer: str) -> None:
    made = make_reranker(RerankerSettings(name="cross-encoder", model=scorer, batch=4))
    assert made is not None
    assert made.name == scorer
