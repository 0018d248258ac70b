"""What a cross-encoder costs: the facts channel with it and by ranks alone, of one memory, taking turns (S2-16)."""

from __future__ import annotations

import asyncio
import importlib
import os
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import writing
from benchmarks.ablation import write_profile
from benchmarks.generator import FACTS_A_TURN, World
from benchmarks.latency import Questions, percentiles
from benchmarks.machine import machine
from benchmarks.measuring import throw_away
from benchmarks.probe import bench_embedder
from benchmarks.quality import Progress
from pps import __version__
from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError, InvalidRequest, ModelUnavailable
from pps.core.recalled import Recall
from pps.memory import Memory
from pps.recall.perspectives.rerankers import MAX_RERANKED
from pps.recall.profiles import Profiles

_ENTITY = "bench"
_BY_RANKS = "facts-by-ranks"
_LOADS_S = 120.0


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a BERT; that of ms-marco-MiniLM-L6-v2, the usual cross-encoder, if nothing else is said."""

    hidden: int = 384
    layers: int = 6
    heads: int = 12
    inner: int = 1536
    window: int = 512


@dataclass(frozen=True, slots=True)
class RerankWanted:
    """What is to be measured.

    Attributes:
        facts: Facts in the memory, 4 or more.
        calls: Questions asked each way, 2 or more.
        model: A cross-encoder's folder or name; empty: the settings', or else one of ``shape`` with random weights,
            whose times are those of a trained one and whose order means nothing.
    """

    facts: int = 5_000
    calls: int = 100
    model: str = ""
    shape: Shape = Shape()


async def reranking(
    wanted: RerankWanted, env: Mapping[str, str], progress: Progress
) -> dict[str, Any]:
    """Ask one memory's facts channel with the cross-encoder and without, in turn; return the report as plain JSON.

    Times are milliseconds. ``fell_back`` counts the answers for which the cross-encoder ran out of its time, so that
    the order by ranks stood (S2-05).

    Raises:
        ConfigError: The extra ``torch`` is missing.
        InvalidRequest: A number is out of its bounds.
        ModelUnavailable: The cross-encoder did not come up.
    """
    if wanted.facts < FACTS_A_TURN:
        raise InvalidRequest("facts", f"must be {FACTS_A_TURN} or more")
    if wanted.calls < 2:
        raise InvalidRequest("calls", "must be 2 or more")
    if find_spec("sentence_transformers") is None:
        raise ConfigError("a cross-encoder needs torch: install pps with its extra 'torch'")
    before = machine()
    async with throw_away(env, "embedded") as settings:
        model = wanted.model or settings.reranker.model
        folder = model or await asyncio.to_thread(save_bert, settings.home / "scorer", wanted.shape)
        reranker = settings.reranker.model_copy(update={"name": "cross-encoder", "model": folder})
        own = settings.model_copy(update={"reranker": reranker})
        await asyncio.to_thread(_without_reranking, own)
        async with App.open(own, embedder=bench_embedder(env)) as app:
            found = await _measured(app, wanted, progress)
        return {
            "title": "What a cross-encoder costs: the facts channel with it and by ranks alone",
            "command": f"scripts/bench rerank --facts {wanted.facts} --calls {wanted.calls}",
            "version": __version__,
            "machine": before,
            "model": model or f"random weights: {wanted.shape}",
            "facts": wanted.facts,
            "candidates": MAX_RERANKED,
            "limit_ms": reranker.deadline_ms,
            **found,
            "load_1_min_at_the_end": round(os.getloadavg()[0], 2),
        }


def save_bert(folder: Path, shape: Shape, *, scores: bool = True, labels: int = 1) -> str:
    """Save a cross-encoder (an encoder alone where it does not score) with random weights; return its folder.

    The weights are the same at each call. Needs the extra ``torch``.
    """
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=30_522,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
        max_position_embeddings=shape.window,
        num_labels=labels,
    )
    kind = transformers.BertForSequenceClassification if scores else transformers.BertModel
    kind(config).save_pretrained(folder)
    vocabulary = files("pps.models") / "data" / "vocab.txt"
    tokenizer = transformers.BertTokenizerFast(vocab=str(vocabulary), model_max_length=shape.window)
    tokenizer.save_pretrained(folder)
    return str(folder)


def _without_reranking(settings: Settings) -> None:
    """Write the profile ``facts`` less its cross-encoder."""
    profile = Profiles.load(settings).get("facts")
    own = profile.channels["facts"].model_dump(exclude_defaults=True)
    own["perspectives"] = {
        name: weight for name, weight in own["perspectives"].items() if name != "cross_encoder"
    }
    write_profile(settings, _BY_RANKS, own, "facts", profile.filters)


async def _measured(app: App, wanted: RerankWanted, progress: Progress) -> dict[str, Any]:
    world, turns = World(), wanted.facts // FACTS_A_TURN
    await app.create(_ENTITY)
    progress("writing", 0, 1)
    await writing.grow(app, _ENTITY, world, 0, turns)
    progress("writing", 1, 1)
    questions = Questions(world.questions(2 * wanted.calls + 200, turns))
    times: dict[str, list[float]] = {"facts": [], _BY_RANKS: [], "rerank": []}
    fell_back = 0
    async with app.memory(_ENTITY) as memory:
        await _loaded(memory, questions)
        for number in range(wanted.calls):
            for profile in ("facts", _BY_RANKS):
                recalled = await _ask(memory, profile, *questions.take(1))
                times[profile].append(recalled.took_ms["total"])
                if profile == "facts":
                    times["rerank"].append(recalled.took_ms["rerank"])
                    fell_back += _fell_back(recalled)
            progress("asking", number + 1, wanted.calls)
    return {
        "by_ranks_ms": percentiles(times[_BY_RANKS]),
        "cross_encoder_ms": percentiles(times["facts"]),
        "of_that_the_cross_encoder_ms": percentiles(times["rerank"]),
        "fell_back": fell_back,
    }


async def _loaded(memory: Memory, questions: Questions) -> None:
    """Ask until the cross-encoder answers in time: it loads behind the first answers."""
    until = clock.monotonic() + _LOADS_S
    while _fell_back(recalled := await _ask(memory, "facts", *questions.take(1))):
        notes = "; ".join(recalled.channels["facts"].notes)
        if "ran out" not in notes or clock.monotonic() > until:  # one that loads is late
            raise ModelUnavailable(f"the cross-encoder did not come up: {notes}")
        await asyncio.sleep(1)


async def _ask(memory: Memory, profile: str, query: str) -> Recall:
    return await memory.recall(query, profile=profile, channels=("facts",), limit=10)


def _fell_back(recalled: Recall) -> bool:
    return any("reranker" in note for note in recalled.channels["facts"].notes)
