"""Point-in-time questions whose answers are known: dated events written by the public verbs, asked by ``timeline``.

An event holds for its day: ``valid_at`` is its midnight, ``invalid_at`` the next. The answer to a question is
worked out from the events alone, without any store, and compared with every page of the timeline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.events import DAY, Event, generated, read_events
from benchmarks.machine import machine
from benchmarks.measuring import throw_away
from benchmarks.quality import Progress
from benchmarks.reading import data_path
from benchmarks.scores import latency
from benchmarks.time_questions import Question, questions
from benchmarks.times_report import TIMELINE
from pps import __version__
from pps.app import App
from pps.core.values import FactDraft
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory
from pps.recall.request import TimelineOptions

ENTITY = "bench_timeline"
_A_TURN, _BATCH = 400, 20
_MOST_PAGES = 12
_SHOWN_WRONG = 5


@dataclass(frozen=True, slots=True)
class TimelineWanted:
    """What a run is asked for.

    Attributes:
        data: Folder with ``train.txt``, ``entity2id.txt`` and ``relation2id.txt``; empty for the environment's.
        generated: So many made-up events instead of data; 0 is data.
        questions: How many are asked.
        seed: Of the questions, and of made-up events.
        store: Empty for the setting's.
        out: Folder for the report's files, if one is wanted.
    """

    data: str = ""
    generated: int = 0
    questions: int = 2_000
    seed: int = 14
    store: str = ""
    out: Path | None = None

    def command(self) -> str:
        """Return the command that asks for the same, without this machine's paths."""
        source = f"--generated {self.generated}" if self.generated else "--data DATA"
        store = f" --store {self.store}" if self.store else ""
        return f"scripts/bench timeline {source} --questions {self.questions} --seed {self.seed}{store}"


async def timeline(
    wanted: TimelineWanted, env: Mapping[str, str], progress: Progress
) -> dict[str, Any]:
    """Write the events, ask the questions, and return how many answers were exact, as plain JSON.

    Raises:
        ConfigError, InvalidRequest: There are no data, or they are not what they should be.
    """
    if wanted.generated:
        events = generated(wanted.generated, wanted.seed)
    else:
        events = await asyncio.to_thread(read_events, data_path(wanted.data, env))
    asked = questions(events, wanted.questions, wanted.seed)
    async with (
        throw_away({**env, "PPS_EMBEDDER__NAME": "none"}, wanted.store or None) as settings,
        App.open(settings) as app,
    ):
        await app.create(ENTITY)
        async with app.memory(ENTITY) as memory:
            seconds = await write(memory, events, progress)
            results = await ask(memory, events, asked, progress)
    wrong = [one for one in results if one.why]
    report: dict[str, Any] = {
        "benchmark": "timeline",
        "title": "Timeline: dated events asked at points and spans of time",
        "command": wanted.command(),
        "version": __version__,
        "machine": machine(),
        "store": settings.store,
        "data": "generated" if wanted.generated else Path(data_path(wanted.data, env)).name,
        "seed": wanted.seed,
        "events": len(events),
        "write_s": round(seconds, 1),
        "questions": len(results),
        "exact": len(results) - len(wrong),
        "pages": sum(one.pages for one in results),
        "facts_read": sum(one.facts for one in results),
        "empty_answers": sum(one.facts == 0 for one in results),
        "page_ms": latency([one.page_ms for one in results]),
        "wrong": [asdict(one) for one in wrong[:_SHOWN_WRONG]],
    }
    if wanted.out:
        await asyncio.to_thread(TIMELINE.save, report, wanted.out, "timeline")
    return report


@dataclass(frozen=True, slots=True)
class Result:
    """One question's outcome; ``why`` is empty when the answer was exact. ``page_ms`` is of one page, on average."""

    question: str
    facts: int
    pages: int
    page_ms: float
    why: str = ""


async def write(memory: Memory, events: Sequence[Event], progress: Progress) -> float:
    """Remember the events, some hundred a turn, and wait until the graph has them; return the seconds."""
    started = time.perf_counter()
    turns = [
        _turn(number, events[at : at + _A_TURN])
        for number, at in enumerate(range(0, len(events), _A_TURN))
    ]
    for at in range(0, len(turns), _BATCH):
        await memory.remember_many(turns[at : at + _BATCH])
        await memory.settled()
        progress("events written", min((at + _BATCH) * _A_TURN, len(events)), len(events))
    return time.perf_counter() - started


async def ask(
    memory: Memory, events: Sequence[Event], asked: Sequence[Question], progress: Progress
) -> list[Result]:
    """Ask every question, page by page, and compare with what the events say."""
    results: list[Result] = []
    for number, question in enumerate(asked, start=1):
        expected = sorted((one for one in events if question.holds(one)), key=lambda one: one.day)
        results.append(await _asked(memory, question, expected))
        progress("questions", number, len(asked))
    return results


async def _asked(memory: Memory, question: Question, expected: Sequence[Event]) -> Result:
    # A page of one is a fine thing to ask for, a thousand of them are not.
    least = len(expected) // _MOST_PAGES + 1
    limit = max(question.limit, min(least, 1000))
    started, pages, cursor = time.perf_counter(), 0, ""
    found: list[tuple[datetime, str]] = []
    problem = ""
    while True:
        options: TimelineOptions = {"limit": limit, "cursor": cursor}
        options["id"] = question.about
        for name in ("relation", "as_of", "after", "before"):
            options[name] = getattr(question, name)
        page = await memory.timeline(**options)
        pages += 1
        found += [(fact.valid_at, fact.text) for fact in page.facts if fact.valid_at]
        if page.next_cursor and len(page.facts) != limit:
            problem = "a page that is not the last one is not full"
        cursor = page.next_cursor
        if not cursor:
            break
    took_ms = (time.perf_counter() - started) * 1000
    why = problem or _difference(found, expected)
    return Result(str(question), len(found), pages, round(took_ms / pages, 3), why)


def _difference(found: Sequence[tuple[datetime, str]], expected: Sequence[Event]) -> str:
    """Return how an answer differs from the one there is; empty when it is exact."""
    if [at for at, _ in found] != [event.day for event in expected]:
        return (
            f"{len(found)} facts at other times than the {len(expected)} expected, or out of order"
        )
    if sorted(text for _, text in found) != sorted(event.text() for event in expected):
        return "other facts than expected"
    return ""


def _turn(number: int, events: Sequence[Event]) -> tuple[str, RememberOptions]:
    facts = [
        FactDraft(
            one.subject,
            one.relation,
            one.object,
            one.text(),
            valid_at=one.day,
            invalid_at=one.day + DAY,
        )
        for one in events
    ]
    options: RememberOptions = {
        "source": "bench",
        "source_ref": str(number),
        "occurred_at": datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=number),
        "facts": facts,
        "extraction": "given",
    }
    return f"Report {number}: {len(facts)} events.", options
