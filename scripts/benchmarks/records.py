"""Finding records: precision on labelled ones, and how long lists, searches, workload and a session's start take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import pages, records_data
from benchmarks.machine import machine
from benchmarks.measuring import throw_away
from benchmarks.pages import Report
from benchmarks.quality import Progress
from benchmarks.records_data import Topic
from benchmarks.scores import latency
from pps import __version__
from pps.app import App
from pps.config import EmbedderSettings
from pps.core.kinds import Kinds
from pps.core.record_values import RecordQuery
from pps.ingest.record_vectors import embedding_text
from pps.memory import Memory
from pps.models.protocols import Matrix
from pps.recall.floor import least_similarity
from pps.records.finding import HYBRID_LEAST, SEMANTIC_LEAST, FoundRecords, RecordSearch
from pps.records.ranks import RankRequest, Ranks
from pps.records.saving import RecordGiven

ENTITY = "bench_records"
PACK = "constitution"
SIZES = (45, 500, 1_000, 5_000)
TARGETS_S = {
    "session": (5.0, 8.0),
    "list_foundation": (2.0, 3.0),
    "list_vision": (1.0, 2.0),
    "semantic": (1.5, 3.0),
    "hybrid": (2.5, 4.0),
    "workload": (2.0, 3.0),
}
"""Seconds that the seed allows a call's p99, and at most (S0-17)."""
_TOP, _BATCH, _FAR = 10, 200, 20_000
_RANKS = ("pagerank", "communities", "betweenness")


@dataclass(frozen=True, slots=True)
class RecordsWanted:
    """What a run is asked for: sizes in records, calls of each kind at each, the store, a folder for the report."""

    sizes: tuple[int, ...] = SIZES
    calls: int = 30
    store: str = ""
    out: Path | None = None
    name: str = "records"

    def command(self) -> str:
        sizes = "" if self.sizes == SIZES else f" --sizes {','.join(map(str, self.sizes))}"
        store = f" --store {self.store}" if self.store else ""
        return f"scripts/bench records{sizes}{store} --out docs/benchmarks"


async def records(wanted: RecordsWanted, env: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """Measure precision, then times at each size, and return the report as plain JSON."""
    rows: dict[str, Any] = {}
    async with throw_away(env, wanted.store or None) as settings:
        async with App.open(settings) as app:
            await app.create(ENTITY, packs=(PACK,))
            async with app.memory(ENTITY) as memory:
                precision = await _precision(memory, progress)
        # What is timed here takes as long with any model, but for a question's own vector: 5 to 10 ms with MiniLM.
        async with App.open(settings.model_copy(update={"embedder": EmbedderSettings(name="hash")})) as app:
            for size in wanted.sizes:
                name = f"{ENTITY}_{size}"
                await app.create(name, packs=(PACK,))
                async with app.memory(name) as memory:
                    rows[str(size)] = await _times(memory, size, wanted.calls, progress)
    report: dict[str, Any] = {
        "benchmark": "records",
        "title": "Records: found, listed, ranked",
        "command": wanted.command(),
        "version": __version__,
        "machine": machine(),
        "store": settings.store,
        "embedder": settings.embedder.name,
        "precision": precision,
        "sizes": rows,
    }
    if wanted.out:
        await asyncio.to_thread(pages.save, report, wanted.out, wanted.name, page, _draw)
    return report


async def _precision(memory: Memory, progress: Progress) -> dict[str, Any]:
    every = records_data.topics()
    ids: dict[str, list[str]] = {}
    for at, topic in enumerate(every):
        given = records_data.told(topic, 0, every[(at + 1) % len(every)])
        saved = (await memory.records.save(given, wait="journal")).records
        ids[topic.name] = [one.record.id for one in saved[: 2 * len(topic.records)]]
        progress("topics written", at + 1, len(every))
    await memory.settled(_FAR)
    asked = [(ids[topic.name], question) for topic in every for question in topic.questions]
    semantic = [await memory.finding.search(RecordSearch(q, min_similarity=-1)) for _, q in asked]
    named = [await memory.finding.search(RecordSearch(one.name, min_similarity=-1)) for one in every]
    hybrid = [await memory.finding.search(RecordSearch(q, min_similarity=-1, anchor=own[0])) for own, q in asked]
    gold = [frozenset(own) for own, _ in asked]
    led = [frozenset(own[1:]) for own, _ in asked]
    calibrated = least_similarity(memory.finding.model) or SEMANTIC_LEAST
    thresholds = sorted({calibrated, HYBRID_LEAST, SEMANTIC_LEAST, 0.25, 0.35, 0.4, 0.45, 0.5})
    return {
        "records": sum(map(len, ids.values())),
        "topics": len(every),
        "questions": len(asked),
        "copied_words": round(records_data.copied_share(every), 3),
        "calibrated": calibrated,
        "semantic_at_10": _at_10(semantic, gold),
        "hybrid_at_10": _at_10(hybrid, led),
        "keywords_at_10": _at_10(named, [frozenset(ids[one.name]) for one in every]),
        "semantic_at_1": _at_10(semantic, gold, most=1),
        "thresholds": {f"{one:g}": _shown(semantic, gold, one) for one in thresholds},
        **await asyncio.to_thread(_similarities, memory, every),
    }


def _at_10(found: Sequence[FoundRecords], gold: Sequence[frozenset[str]], most: int = _TOP) -> float:
    """Return the mean share of relevant records among the first min(10, relevant)."""
    shares = [
        sum(one.node.uuid in right for one in each.results[: min(most, len(right))]) / min(most, len(right))
        for each, right in zip(found, gold, strict=True)
    ]
    return round(sum(shares) / len(shares), 3)


def _shown(found: Sequence[FoundRecords], gold: Sequence[frozenset[str]], least: float) -> dict[str, float]:
    """Return what a threshold lets through of the ten best: how many a question, and how many of those are wrong."""
    shown = [
        [one.node.uuid in right for one in each.results if one.semantic >= least]
        for each, right in zip(found, gold, strict=True)
    ]
    total, rightly = sum(map(len, shown)), sum(map(sum, shown))
    return {
        "shown": round(total / len(shown), 2),
        "false_positives": round(1 - rightly / total, 3) if total else 0.0,
        "answered": round(sum(any(one) for one in shown) / len(shown), 3),
    }


def _similarities(memory: Memory, every: Sequence[Topic]) -> dict[str, Any]:
    """Return cosines of duplicates and of unrelated records, and the silhouette of the topics."""
    embedder = memory.finding.embedder
    if embedder is None:
        return {}
    text = partial(_text, memory.kinds)
    pairs = records_data.duplicates()
    first = embedder.embed_passages([text("Task", *one) for one, _ in pairs])
    again = embedder.embed_passages([text("Task", *other) for _, other in pairs])
    twice = np.sum(first * again, axis=1)
    given = [(at, one) for at, topic in enumerate(every) for one in records_data.told(topic, 0)]
    rows = embedder.embed_passages([text(one.kind, one.title or "", one.summary or "") for _, one in given])
    labels = np.array([at for at, _ in given])
    cosines = rows @ rows.T
    apart = cosines[labels[:, None] < labels[None, :]]
    whole = labels[:: len(records_data.AS_IT_IS) * 2]
    own = embedder.embed_passages([text("Task", *one) for topic in every for one in topic.records])
    return {
        "duplicates": {"median": _round(np.median(twice)), "above_0_9": _round((twice > 0.9).mean())},
        "unrelated": {"median": _round(np.median(apart)), "below_0_4": _round((apart < 0.4).mean())},
        "silhouette": _round(_silhouette(rows, labels)),
        "silhouette_as_it_is": _round(_silhouette(own, np.repeat(whole, len(records_data.AS_IT_IS)))),
    }


def _silhouette(rows: Matrix, labels: np.ndarray) -> float:
    """Return the mean silhouette of rows by cosine distance. Source: Rousseeuw 1987."""
    distances = 1 - rows @ rows.T
    members = labels[None, :] == np.unique(labels)[:, None]
    sums = distances @ members.T
    sizes = members.sum(axis=1)
    own = np.searchsorted(np.unique(labels), labels)
    at = np.arange(len(labels))
    inside = sums[at, own] / np.maximum(1, sizes[own] - 1)
    means = sums / sizes
    means[at, own] = np.inf
    outside = means.min(axis=1)
    return float(((outside - inside) / np.maximum(inside, outside)).mean())


async def _times(memory: Memory, size: int, calls: int, progress: Progress) -> dict[str, Any]:
    started = time.perf_counter()
    batch: list[RecordGiven] = []
    done = 0
    for some in records_data.many(size):
        batch += some
        if len(batch) + len(some) > _BATCH or done + len(batch) >= size:
            await memory.records.save(batch, wait="journal")
            done, batch = done + len(batch), []
            progress(f"{size} records", done, size)
    await memory.settled(_FAR)
    write_s = time.perf_counter() - started
    graph = await memory.records.graph()
    anchor = next(one.id for one in graph.records.values() if one.kind == "Goal")
    questions = [question for topic in records_data.topics() for question in topic.questions]
    kinds = memory.kinds
    found: dict[str, Any] = {"write_s": round(write_s, 1), "relations": len(graph.relations)}

    def listed(layer: str) -> Callable[[int], Awaitable[object]]:
        query = RecordQuery(kinds=kinds.of_layers((layer,)), statuses=("active",))
        return lambda _: memory.records.list(query)

    asked: dict[str, Callable[[int], Awaitable[object]]] = {
        "session": lambda at: memory.layers.context(f"s{at}"),
        "list_foundation": listed("foundation"),
        "list_vision": listed("vision"),
        "list_execution": listed("execution"),
        "semantic": lambda at: memory.finding.search(RecordSearch(questions[at % len(questions)])),
        "hybrid": lambda at: memory.finding.search(RecordSearch(questions[-at % len(questions)], anchor=anchor)),
        "workload": lambda _: memory.layers.workload(None, None, with_calendar=True),
    }
    for name, ask in asked.items():
        found[f"{name}_ms"] = latency([await _timed(ask, at) for at in range(calls + 1)][1:])
    ranks = Ranks(memory.records, kinds)
    for algorithm in _RANKS:
        asking = partial(ranks.rank, RankRequest(algorithm))  # the first call computes, the next is kept
        found[f"{algorithm}_ms"] = round(await _timed(lambda _, rank=asking: rank(), 0), 1)
    return found


async def _timed(ask: Callable[[int], Awaitable[object]], at: int) -> float:
    started = time.perf_counter()
    await ask(at)
    return (time.perf_counter() - started) * 1000


def _text(kinds: Kinds, kind: str, title: str, summary: str) -> str:
    return embedding_text(kinds.kind(kind), title, summary, {})


def _round(value: Any) -> float:
    return round(float(value), 3)


def text(report: Report) -> str:
    """Return the report for a terminal."""
    one = report["precision"]
    lines = [
        f"semantic@10 {one['semantic_at_10']} (> .80), hybrid@10 {one['hybrid_at_10']} (> .85), "
        f"{one['questions']} questions, {one['records']} records",
        *(f"threshold {least}: {said}" for least, said in one["thresholds"].items()),
        *(
            f"{size} records: "
            + ", ".join(f"{name[:-3]} p99 {row[name]['p99']}" for name in row if _is_calls(row[name]))
            for size, row in report["sizes"].items()
        ),
    ]
    return "\n".join(lines)


def page(report: Report, name: str) -> str:
    """Return the report as a page."""
    one, sizes = report["precision"], report["sizes"]
    precision = pages.table(
        ["", "measured", "seed"],
        [
            ["semantic@10", f"{one['semantic_at_10']:.3f}", "> .80"],
            ["hybrid@10", f"{one['hybrid_at_10']:.3f}", "> .85"],
            ["semantic@10, asked by a topic's name", f"{one['keywords_at_10']:.3f}", "> .80"],
            ["first result right", f"{one['semantic_at_1']:.3f}", ""],
            ["duplicates, median cosine", f"{one['duplicates']['median']:.3f}", "> .9"],
            ["duplicates above .9", f"{one['duplicates']['above_0_9']:.1%}", ""],
            ["unrelated, median cosine", f"{one['unrelated']['median']:.3f}", "< .4"],
            ["unrelated below .4", f"{one['unrelated']['below_0_4']:.1%}", ""],
            ["silhouette of the topics, all records", f"{one['silhouette']:.3f}", "> .5"],
            ["silhouette, as it is alone", f"{one['silhouette_as_it_is']:.3f}", "> .5"],
        ],
    )
    thresholds = pages.table(
        ["least cosine", "shown of ten", "of those wrong (seed < 10 %)", "questions answered"],
        [
            [
                f"{least}{_whose(float(least), one)}",
                f"{row['shown']:.2f}",
                f"{row['false_positives']:.1%}",
                f"{row['answered']:.1%}",
            ]
            for least, row in one["thresholds"].items()
        ],
    )
    calls = [key for key in next(iter(sizes.values())) if key.endswith("_ms")]
    times = pages.table(
        ["p99 ms (ranks: the first call)", *(f"{int(size):,}" for size in sizes), "seed, s (at most)"],
        [
            [
                key[:-3].replace("_", " "),
                *(f"{row[key]['p99'] if _is_calls(row[key]) else row[key]:,.0f}" for row in sizes.values()),
                "{:g} ({:g})".format(*TARGETS_S[key[:-3]]) if key[:-3] in TARGETS_S else "5 (at 1,000)",
            ]
            for key in calls
            if key != "list_execution_ms"
        ],
    )
    writes = "; ".join(
        f"{int(size):,} records with {row['relations']:,} relations in {row['write_s']:g} s"
        for size, row in sizes.items()
    )
    about = (
        f"{one['questions']} questions about {one['topics']} topics, {one['records']:,} records; each question's "
        f"{one['records'] // one['topics']} are relevant. {one['copied_words']:.0%} of the questions' words are in "
        "their records. The threshold is chosen on these questions; nothing else is."
    )
    said = (
        f"No question and answer reach the seed's .7 with a model of this size often enough: at .7 "
        f"{one['thresholds']['0.7']['answered']:.0%} of the questions are answered at all. The calibrated threshold is "
        f"{one['calibrated']:g} (`config/floor.toml`)."
    )
    return (
        "\n\n".join(
            [
                *pages.head(report, name),
                about,
                precision,
                thresholds,
                said,
                times,
                f"Times are with the embedder `hash`; MiniLM adds 5 to 10 ms for a query's vector. Written: {writes}.",
            ]
        )
        + "\n"
    )


def _whose(least: float, one: Report) -> str:
    named = {one["calibrated"]: " (calibrated)", SEMANTIC_LEAST: " (seed, semantic)", HYBRID_LEAST: " (seed, hybrid)"}
    return named.get(least, "")


def _is_calls(value: Any) -> bool:
    return isinstance(value, dict)


def _draw(report: Report, file: Path) -> None:
    with pages.panels(file, 1) as (axis,):
        for key, label in {"session_ms": "session", "semantic_ms": "semantic", "hybrid_ms": "hybrid"}.items():
            sizes = list(report["sizes"])
            axis.plot(sizes, [report["sizes"][size][key]["p99"] for size in sizes], marker="o", label=label)
        axis.set_title("p99, ms, by records", loc="left", fontsize=10)
        axis.legend(fontsize=8, frameon=False)
