"""The whole run of a quality benchmark: write, ask, compare, leave out; one report."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.ablation import ablated
from benchmarks.against import GRAPHITI, SYSTEMS, ask_graphiti, ask_plain
from benchmarks.data import Conversation
from benchmarks.days import DayAnswer, ask_days, day_figures
from benchmarks.machine import machine
from benchmarks.packs import PackAnswer, ask_packs, pack_figures
from benchmarks.quality import Asking, Progress, Written, ask, write
from benchmarks.scores import FIGURES, Answer, mean, ratios, summary
from pps import __version__
from pps.app import App
from pps.config import Settings, load
from pps.core.errors import ConfigError
from pps.models.factory import make_embedder
from pps.recall.profiles import Profiles
from pps.recall.request import DEFAULT_PROFILE

NOTES = {
    "pps": "the ten best turns of the episodes channel; R@20 from a recall of twenty; of a question about a time alone, "
    "the share of the ten whose day is meant",
    GRAPHITI: "stock search_ with EDGE_HYBRID_SEARCH_RRF over the same graph, twenty facts, each counted as the "
    "turns that support it; on the embedded store its calls are answered by our tables and indexes",
    "bm25": "bm25s over the turns, English stop words",
    "dense": "exact cosine over the turns",
    "four-lists": "BM25 and dense over facts and over turns with a neighbour on either side, joined by reciprocal "
    "ranks (k 5): no graph, no index, no tuning",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures beside the profile.

    Attributes:
        profiles: Profiles to ask; the first is the one that others are compared with.
        against: Other systems, of ``against.SYSTEMS``.
        ablation: Also leave out each part of the first profile in turn.
        packs: Also make the pack of each question, from its own memory and from another of the same data.
    """

    profiles: tuple[str, ...] = (DEFAULT_PROFILE,)
    against: tuple[str, ...] = ()
    ablation: bool = False
    packs: bool = False


@dataclass(slots=True)
class Measured:
    """Every answer of a run, by profile or system."""

    written: list[Written] = field(default_factory=list[Written])
    answers: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    days: dict[str, list[DayAnswer]] = field(default_factory=dict[str, list[DayAnswer]])
    others: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    left_out: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    packs: list[PackAnswer] = field(default_factory=list[PackAnswer])


@contextlib.asynccontextmanager
async def throw_away(env: Mapping[str, str], store: str | None = None) -> AsyncGenerator[Settings]:
    """Lend settings with a data folder of their own, removed afterwards; entities on a server are deleted too.

    Profiles of the user's own come along, so that one can be measured; a report says whose each is (``origins``).
    """
    with tempfile.TemporaryDirectory(prefix="pps-bench-") as folder:
        own = load(env=env)
        settings = own.model_copy(update={"home": Path(folder), "store": store or own.store})
        await asyncio.to_thread(_bring_profiles, own.home, settings.home)
        try:
            yield settings
        finally:
            await delete_all(settings)


async def measure(
    settings: Settings, conversations: Sequence[Conversation], plan: Plan, progress: Progress
) -> Measured:
    """Write every conversation into an entity of its own, ask all of them, and return every answer.

    Raises:
        ConfigError: A profile fills no episodes channel, a library of the extra ``bench`` is missing, or there is
            no embedder to compare with.
    """
    check(settings, plan)
    parts = ablated(settings, plan.profiles[0]) if plan.ablation else {}
    measured = Measured()
    async with App.open(settings) as app:
        for number, one in enumerate(conversations):
            measured.written.append(written := await write(app, one, f"bench_{number}", progress))
            async with app.memory(written.entity) as memory:
                for name in plan.profiles:
                    found = await ask(memory, one, written, Asking(name), progress)
                    measured.answers.setdefault(name, []).extend(found)
                    days = await ask_days(memory, one, name, progress)
                    measured.days.setdefault(name, []).extend(days)
                for left_out, name in parts.items():
                    found = await ask(memory, one, written, Asking(name, long=False), progress)
                    measured.left_out.setdefault(left_out, []).extend(found)
        if plan.packs:
            measured.packs = await ask_packs(app, conversations, measured.written, progress)
    await _compare(settings, conversations, plan, measured, progress)
    return measured


def check(settings: Settings, plan: Plan) -> None:
    """Raise before the long work starts when it could not be finished."""
    known = Profiles.load(settings)
    for name in plan.profiles:
        if "episodes" not in known.get(name).channels:
            raise ConfigError(
                f"profile {name!r} fills no episodes channel, which is what is scored"
            )
    if plan.against and settings.embedder.name == "none":
        raise ConfigError(
            "embedder.name: is 'none', so there is nothing to compare with; set a model first"
        )
    if plan.against:
        from benchmarks.plain import library

        library("bm25s")


async def _compare(
    settings: Settings,
    conversations: Sequence[Conversation],
    plan: Plan,
    measured: Measured,
    progress: Progress,
) -> None:
    # One that kept queries would embed them for the first system alone, and the others' times would lack it.
    embedder = make_embedder(settings.embedder, keep_queries=False) if plan.against else None
    if embedder is None:
        return
    plain = [name for name in plan.against if name != GRAPHITI]
    try:
        for one, written in zip(conversations, measured.written, strict=True):
            if plain:
                found = await asyncio.to_thread(ask_plain, one, embedder, progress)
                for name in plain:
                    measured.others.setdefault(name, []).extend(found[name])
            if GRAPHITI in plan.against:
                stock = await ask_graphiti(settings, one, written, embedder, progress)
                measured.others.setdefault(GRAPHITI, []).extend(stock)
    finally:
        await asyncio.to_thread(embedder.close)


def report(
    settings: Settings, conversations: Sequence[Conversation], plan: Plan, measured: Measured
) -> dict[str, object]:
    """Return every figure as plain JSON."""
    profiles = {name: summary(found) for name, found in measured.answers.items()}
    ours = mean(measured.answers.get(plan.profiles[0], []))
    others = {name: summary(measured.others[name]) for name in SYSTEMS if name in measured.others}
    return {
        "benchmark": "quality",
        "version": __version__,
        "machine": machine(),
        "store": settings.store,
        "embedder": settings.embedder.name,
        "reranker": settings.reranker.name,
        "origins": origins(settings, plan.profiles),
        "scored": {name: note for name, note in NOTES.items() if name == "pps" or name in others},
        "data": [
            {
                **_sizes(one),
                "left_out": one.notes,
                "seconds": written.seconds,
                "facts_in_graph": written.facts,
                "nodes_in_graph": written.nodes,
            }
            for one, written in zip(conversations, measured.written, strict=True)
        ],
        "profiles": profiles,
        "against": others,
        "ratios": {name: ratios(ours, mean(measured.others[name])) for name in others},
        "ablation": _losses(measured, plan.profiles[0]),
        "packs": pack_figures(measured.packs) if plan.packs else None,
        "times": {name: day_figures(found) for name, found in measured.days.items() if found},
    }


def origins(settings: Settings, profiles: Sequence[str]) -> dict[str, str]:
    """Return whose each profile is that was measured, and those that they extend: ``shipped`` or ``yours``."""
    known = Profiles.load(settings)
    return {one: origin for name in profiles for one, origin in known.origins(name).items()}


def answers_of(measured: Measured) -> list[tuple[str, Answer]]:
    """Return every answer with the profile or system that gave it."""
    named = {**measured.answers, **measured.others}
    return [(name, answer) for name, found in named.items() for answer in found]


def _sizes(one: Conversation) -> dict[str, object]:
    return {
        "conversation": one.name,
        "turns": len(one.turns),
        "facts": sum(len(turn.facts) for turn in one.turns.values()),
        "questions": len(one.questions),
        "questions_without_answer": len(one.questions) - len(one.scored()),
    }


def _losses(measured: Measured, profile: str) -> list[dict[str, object]]:
    """Return what each part brings, the most first: percentage points that are lost without it."""
    whole = mean(measured.answers.get(profile, []))
    rows: list[tuple[str, dict[str, float]]] = []
    for left_out, answers in measured.left_out.items():
        rest = mean(answers)
        lost = {
            name: round(mine - other, 2)
            for name in FIGURES
            if name != "R@20"
            and (mine := whole.get(name)) is not None
            and (other := rest.get(name)) is not None
        }
        rows.append((left_out, lost))
    rows.sort(key=lambda row: -sum(row[1].values()))
    return [{"left_out": left_out, "lost": lost} for left_out, lost in rows]


def _bring_profiles(source: Path, target: Path) -> None:
    for file in (source / "profiles").glob("*.toml"):
        (target / "profiles").mkdir(exist_ok=True)
        (target / "profiles" / file.name).write_bytes(file.read_bytes())


async def delete_all(settings: Settings) -> None:
    """Take a folder's entities off a shared server; on the embedded store the folder is all there is."""
    if settings.store != "neo4j":
        return
    # Without a model any vectors open: nothing is asked of them.
    plain = settings.model_copy(
        update={"embedder": settings.embedder.model_copy(update={"name": "none"})}
    )
    async with App.open(plain) as app:
        for entry in app.registry.list():
            await app.delete(entry.entity.name)
