"""``scripts/bench rerank``: what a cross-encoder costs, with a tiny real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app as bench
from benchmarks.reranking import RerankWanted, reranking
from pps.core.errors import InvalidRequest, ModelUnavailable
from tests.tiny_models import TINY, save_cross_encoder

pytestmark = pytest.mark.torch


def test_both_ways_are_timed_and_the_model_is_in_the_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = save_cross_encoder(tmp_path / "scorer")
    monkeypatch.setenv("PPS_EMBEDDER__NAME", "hash")
    monkeypatch.setenv("PPS_RERANKER__DEADLINE_MS", "60000")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    ran = CliRunner().invoke(bench, ["rerank", "--facts", "40", "--calls", "3", "--model", scorer])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert (found["facts"], found["candidates"], found["limit_ms"], found["fell_back"]) == (
        40,
        30,
        60_000,
        0,
    )
    assert found["model"] == scorer
    for what in ("by_ranks_ms", "cross_encoder_ms", "of_that_the_cross_encoder_ms"):
        assert found[what]["calls"] == 3
        assert 0 < found[what]["p50"] <= found[what]["p95"]
    assert found["of_that_the_cross_encoder_ms"]["p50"] < found["cross_encoder_ms"]["p50"]


@pytest.mark.parametrize(
    ("wanted", "field"), [(RerankWanted(facts=3), "facts"), (RerankWanted(calls=1), "calls")]
)
async def test_too_little_to_measure_is_refused_by_name(wanted: RerankWanted, field: str) -> None:
    with pytest.raises(InvalidRequest, match=field):
        await reranking(wanted, {}, lambda *_: None)


async def test_a_model_that_cannot_be_loaded_is_said_at_once(tmp_path: Path) -> None:
    env = {"PPS_HOME": str(tmp_path), "PPS_EMBEDDER__NAME": "hash", "HF_HUB_OFFLINE": "1"}
    with pytest.raises(ModelUnavailable, match="did not come up"):
        await reranking(
            RerankWanted(facts=8, calls=2, model=str(tmp_path / "nothing")), env, lambda *_: None
        )


async def test_a_model_is_made_where_none_is_named(tmp_path: Path) -> None:
    env = {
        "PPS_HOME": str(tmp_path),
        "PPS_EMBEDDER__NAME": "hash",
        "PPS_RERANKER__DEADLINE_MS": "60000",
    }
    found = await reranking(RerankWanted(facts=8, calls=2, shape=TINY), env, lambda *_: None)
    assert found["model"] == f"random weights: {TINY}"
    assert found["fell_back"] == 0
