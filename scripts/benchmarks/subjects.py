"""Topics and divergence on the coding project: whether topics are the true ones and hold, and what raises an alert."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import numpy as np

from benchmarks.causes import Topic, read_causes, topics
from benchmarks.data import Conversation
from benchmarks.plain import library
from benchmarks.quality import Progress, write
from benchmarks.scores import latency
from pps.app import App
from pps.core.time import now
from pps.ingest.drafts import RememberOptions
from pps.models.factory import make_embedder
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import operations_for

GOALS = {"adjusted_rand": 0.8, "job_s": 10.0, "false_alarms": 0.05, "found": 0.7}
TURNS = 6
"""Turns of a session, the newest of which goes on or changes the subject."""
ALERTS = "get_divergence_alerts"


async def topics_found(app: App, progress: Progress) -> dict[str, Any]:
    """Find topics of the coding project without its last day, then of all; return how they match and how they hold.

    Figures are of the memories that a topic has; ``grouped`` is their share. The silhouette is by cosine of vectors.
    """
    metrics: Any = library("sklearn.metrics")
    (whole,) = read_causes()
    newest = max(turn.at for turn in whole.turns.values() if turn.at)
    early, late = Conversation("early"), Conversation("late")
    for turn in whole.turns.values():
        (late if turn.at and turn.at > newest - timedelta(days=1) else early).say(turn)
    written = await write(app, early, "bench_topics", progress)
    ids = dict(written.ids)
    before, _, first_s = await _detected(app, ids)
    async with app.memory("bench_topics") as memory:
        for turn in late.turns.values():
            receipt = await memory.remember(turn.content, session=turn.session, occurred_at=turn.at)
            ids[receipt.turn_id] = turn.id
        await memory.settled()
    after, count, seconds = await _detected(app, ids)
    true = {one: topic.name for topic in topics() for one in topic.memories}
    both = sorted(before.keys() & after.keys())
    found: dict[str, Any] = {"memories": len(ids), "topics": count, "added": len(late.turns)}
    found |= {"grouped": round(len(after) / len(ids), 3), "job_s": max(first_s, seconds)}
    found |= dict.fromkeys(("v_measure", "silhouette", "adjusted_rand"))
    if after:
        found["v_measure"] = round(
            float(metrics.v_measure_score([true[one] for one in after], [*after.values()])), 3
        )
    if 1 < len(set(after.values())) < len(after) and (
        embedder := make_embedder(app.settings.embedder)
    ):
        vectors = embedder.embed_passages([whole.turns[one].content for one in after])
        embedder.close()
        found["silhouette"] = round(
            float(metrics.silhouette_score(vectors, [*after.values()], metric="cosine")), 3
        )
    if both:
        labels = ([one[each] for each in both] for one in (before, after))
        found["adjusted_rand"] = round(float(metrics.adjusted_rand_score(*labels)), 3)
    return found


async def _detected(app: App, ids: Mapping[str, str]) -> tuple[dict[str, str], int, float]:
    """Return the topic of each memory that has one, by the data's ids; how many topics there are; and the seconds."""
    calls, caller = Calls(app), Caller.of_entity("bench_topics")
    started = time.perf_counter()
    await calls.answer(caller, "detect_topics", {"force": True})
    seconds = round(time.perf_counter() - started, 2)
    found = (await calls.answer(caller, "get_topic_portfolio", {"format": "verbose"})).data[
        "topics"
    ]
    every = cast("list[dict[str, Any]]", found)
    return (
        {ids[uuid]: topic["id"] for topic in every for uuid in topic["members"]},
        len(every),
        seconds,
    )


async def alerts(
    app: App, going_on: int, changing: int, progress: Progress
) -> dict[str, Any] | None:
    """Play sessions that go on with a topic, and some whose newest turn is of another; return how many raised an alert.

    None where the product has no such operation.
    """
    if ALERTS not in operations_for("entity"):
        return None
    chance, every = random.Random(50), topics()  # noqa: S311 - the same each time
    raised: dict[bool, list[bool]] = {False: [], True: []}
    times: list[float] = []
    await app.create("bench_alerts")
    calls, caller = Calls(app), Caller.of_entity("bench_alerts")
    for number in range(going_on + changing):
        changes, session = number >= going_on, f"session {number}"
        async with app.memory("bench_alerts") as memory:
            await memory.remember_many(_drafts(_lines(chance, every, changes=changes), session))
            await memory.settled()
        started = time.perf_counter()
        found = await calls.answer(caller, ALERTS, {"session": session})
        times.append((time.perf_counter() - started) * 1000)
        raised[changes].append(bool(found.data["alerts"]))
        progress("sessions", number + 1, going_on + changing)
    shares = {
        changes: round(float(np.mean(one)), 3) if one else None for changes, one in raised.items()
    }
    sizes = {"going_on": going_on, "changing": changing}
    return {**sizes, "false_alarms": shares[False], "found": shares[True], "ms": latency(times)}


def _lines(chance: random.Random, every: Sequence[Topic], *, changes: bool) -> list[str]:
    """Return neighbouring lines of one topic, the last of them of another topic where the subject changes."""
    topic, other = chance.sample(list(every), 2)
    lines = list(topic.memories.values())
    start = chance.randint(0, len(lines) - TURNS)
    said = lines[start : start + TURNS]
    return [*said[:-1], chance.choice(list(other.memories.values()))] if changes else said


def _drafts(lines: Sequence[str], session: str) -> list[tuple[str, RememberOptions]]:
    first = now() - timedelta(minutes=len(lines))
    return [
        (text, RememberOptions(session=session, occurred_at=first + timedelta(minutes=at)))
        for at, text in enumerate(lines)
    ]
