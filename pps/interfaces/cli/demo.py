"""``pps demo``: the shipped sample as a story in five steps, the one that the README shows.

``pps demo squad`` is the worked flow of a squad of six, step by step.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from importlib.resources import as_file
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pps.app import App
from pps.config import Settings, shipped
from pps.config.home import home_folder
from pps.core.errors import InvalidRequest
from pps.core.recalled import Recall
from pps.core.reports import Stats
from pps.core.time import parse
from pps.core.values import JSON, AnchorPassage
from pps.features.squad import squad_members
from pps.features.squad.desk import rules_of
from pps.features.squad.flow import Played, flow, play
from pps.ingest.importing.formats import read_lines
from pps.interfaces.cli.output import say
from pps.operations.calls import Caller, Calls
from pps.operations.record_asks import record_ask
from pps.operations.session_start import workload_words
from pps.records.saving import RecordGiven, RelationGiven

ENTITIES = ("mira", "theo")
YEAR = "iris"
"""The entity that has a year of records."""
PACK = "constitution"
"""The pack of those records."""
OWN_FOLDER = "pps-demo"
"""The data folder of a demonstration, beside the usual one."""
WEEK = date(2026, 3, 16)
TASK = "Resew the herbal of 1790"
QUESTION = "kitchen morning Saturday Haven"
CHANGED = "What does Jonas make coffee with?"
THEN = date(2026, 2, 1)
PROMPTS = ("thanks!", "I bake a cake for Wren. Carrot and walnut?")
_SHOWN = 3
_BATCH = 64
_MADE_BY_DEMO = ".made-by-pps-demo"
"""The file that says that a folder may be emptied by the next demonstration."""
_LINE = 96
"""Most characters of a memory's text in a line."""

_NEXT = """
Ask more of it:
  {pps} recall mira "What is Wren allergic to?"
  {pps} ambient theo "running in the morning"
  {pps} records list iris --kind Goal
Begin your own:
  {own} init && {own} entity create ana"""

SQUAD = "demo"
_NEXT_OF_SQUAD = """
Ask more of it:
  {pps} squad show demo
  {pps} records list demo_kublai"""


@dataclass(frozen=True, slots=True)
class _FilledEntity:
    """An entity that was told its part of the sample.

    Attributes:
        stats: What it holds.
        took_s: Seconds from the first turn to the last index.
    """

    stats: Stats
    took_s: float


def choose_folder() -> Path:
    """Return the data folder of a demonstration, which is apart from the user's own memories.

    It is the folder that ``PPS_HOME`` names, as it is. Otherwise it is one beside the usual folder;
    what an earlier demonstration left there is removed first, and its server is stopped.

    Raises:
        InvalidRequest: The folder beside the usual one was not made by a demonstration.
    """
    if os.environ.get("PPS_HOME", "").strip():
        return home_folder()
    from pps.server import stop

    folder = home_folder().with_name(OWN_FOLDER)
    mark = folder / _MADE_BY_DEMO
    if mark.exists():
        stop(folder)
        shutil.rmtree(folder)
    elif folder.exists():
        raise InvalidRequest(
            "PPS_HOME",
            f"{folder} was not made by `pps demo` and is left alone; name an empty folder: "
            "`PPS_HOME=/tmp/pps-demo pps demo`",
        )
    folder.mkdir(mode=0o700, parents=True)
    mark.touch()
    return folder


async def demonstrate(settings: Settings, console: Console) -> None:
    """Make the entities of the sample, ask them, and print the story a step at a time.

    Raises:
        InvalidRequest: The data folder has an entity that the demonstration would make.
    """

    def say(line: str, style: str = "") -> None:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    async with App.open(settings) as app:
        _refuse_existing(app)
        say("1. Two agents live through the same spring, each with a memory of its own.", "bold")
        for name in ENTITIES:
            say(_remembered(name, await _ingested(app, name, console)))
        for step in (_true_now, _apart, _given_unasked, _year):
            title, lines = await step(app)
            say(f"\n{title}", "bold")
            for line in lines:
                say(f"   {line}")
    say(_NEXT.format(pps=this_pps(), own=_own_pps()))


def _refuse_existing(app: App) -> None:
    existing = {entry.entity.name for entry in app.registry.list(include_archived=True)}
    for name in (*ENTITIES, YEAR):
        if name in existing:
            raise InvalidRequest(
                "PPS_HOME",
                f"this data folder has an entity {name!r} already, and the demonstration makes "
                f"{', '.join(ENTITIES)} and {YEAR}; unset PPS_HOME or name an empty folder",
            )


def _remembered(name: str, filled_entity: _FilledEntity) -> str:
    stats = filled_entity.stats
    return (
        f"   {name}  {stats.turns} turns, {stats.facts} facts, {stats.nodes} people, places and "
        "things, "
        f"{stats.anchors} notes  ({filled_entity.took_s:.1f} s)"
    )


def _short(text: str) -> str:
    """Return a text as one line of at most ``_LINE`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


def _first_fact(recalled: Recall) -> str:
    return _short(recalled.channels["facts"].hits[0].text)


async def _true_now(app: App) -> tuple[str, list[str]]:
    """Ask one thing as of now and as of a day before it changed."""
    then = parse(THEN.isoformat())
    async with app.memory("mira") as memory:
        now = await memory.recall(CHANGED, limit=_SHOWN)
        past = await memory.recall(CHANGED, limit=_SHOWN, as_of=then)
    title = f"2. What is true now, and what was true then. mira is asked: “{CHANGED}”"
    lines = [f"now         {_first_fact(now)}", f"{THEN}  {_first_fact(past)}"]
    return title, lines


async def _apart(app: App) -> tuple[str, list[str]]:
    """Ask both entities the same and compare what came back."""
    recalls: list[tuple[str, Recall]] = []
    for name in ENTITIES:
        async with app.memory(name) as memory:
            recalls.append((name, await memory.recall(QUESTION, limit=_SHOWN)))
    lines = [
        f"{name}  {_first_fact(recalled)}  ({recalled.took_ms['total']:.0f} ms)"
        for name, recalled in recalls
    ]
    title = f"3. The same words, asked of both: “{QUESTION}”"
    return title, [*lines, _overlap(recalls)]


def _overlap(recalls: list[tuple[str, Recall]]) -> str:
    """Say how many results came back to each, and whether one of them is the other's."""
    (first, first_recall), (second, other) = recalls
    mine = _ids(first_recall)
    theirs = _ids(other)
    both = mine & theirs
    if both:
        return (
            f"LEAK: {len(both)} results came back to both {first} and {second}. Please report this."
        )
    return (
        f"{len(mine)} results for {first}, {len(theirs)} for {second}; none of one came back to "
        "the other."
    )


def _ids(recalled: Recall) -> set[str]:
    """Return the ids of a recall; an anchor's is its text, since both entities may use a name."""
    hits = (hit for channel in recalled.channels.values() for hit in channel.hits)
    return {hit.text if isinstance(hit.item, AnchorPassage) else hit.id for hit in hits}


async def _given_unasked(app: App) -> tuple[str, list[str]]:
    """Show what hooks put before an agent with each of two prompts."""
    lines: list[str] = []
    async with app.memory("mira") as memory:
        for prompt in PROMPTS:
            pack = await memory.ambient_recall(prompt, mode="preview", limit_per_layer=_SHOWN)
            bullets = [line for line in pack.text.splitlines() if line.startswith("- ")]
            head = (
                f"“{prompt}” gets {pack.tokens} tokens:" if bullets else f"“{prompt}” gets nothing."
            )
            lines += [head, *(f"  {_short(line)}" for line in bullets[:_SHOWN])]
    return "4. With each prompt, and without asking, mira's agent is given what is relevant.", lines


async def _ingested(app: App, name: str, console: Console) -> _FilledEntity:
    """Tell an entity its part of the sample."""
    await app.create(name)
    started = time.perf_counter()
    async with app.memory(name) as memory:
        with as_file(shipped("config/sample")) as sample:
            lines = list(read_lines(sample / name / "turns.jsonl"))
            batches = [lines[at : at + _BATCH] for at in range(0, len(lines), _BATCH)]
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            hidden = not console.is_terminal
            with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
                for batch in bar.track(batches, description=f"remembering {name}"):
                    await memory.remember_many(batch)
                    await memory.settled()
            await memory.anchor_import(sample / name / "anchors")
        return _FilledEntity(await memory.stats(), time.perf_counter() - started)


async def keep_year(app: App) -> None:
    """Make the sample's entity with a year of records, its pack of kinds and its calendar."""
    entry = await app.create(YEAR)
    with as_file(shipped(f"config/sample/{YEAR}")) as sample:
        file = sample / "records.json"
        year = json.loads(await asyncio.to_thread(file.read_text, encoding="utf-8"))
        calendar = await asyncio.to_thread((sample / "week.ics").read_text, encoding="utf-8")
    await asyncio.to_thread(_own_calendar, entry.folder, calendar)
    await app.enable_pack(YEAR, PACK)
    async with app.memory(YEAR) as memory:
        saved = await memory.records.save([_record(row) for row in year["records"]])
        ids = {record.record.title: record.record.id for record in saved.records}
        for move in year["moves"]:
            await memory.records.move(ids[move["title"]], move["to"], why=move["why"])


def _record(row: dict[str, Any]) -> RecordGiven:
    relations = tuple(RelationGiven(**relation) for relation in row.pop("relations", ()))
    return RecordGiven(created_at=parse(row.pop("created_at")), relations=relations, **row)


def _own_calendar(folder: Path, text: str) -> None:
    (folder / "calendar.ics").write_text(text, encoding="utf-8")
    with (folder / "entity.toml").open("a", encoding="utf-8") as own:
        own.write(
            '\n[calendar]\nfiles = ["calendar.ics"]\nhours = [8, 8, 8, 8, 8, 4, 0]\ntime_zone = '
            '"Europe/Oslo"\n'
        )


async def _year(app: App) -> tuple[str, list[str]]:
    """Return lines on the third entity's session context, workload, and a task's reasons."""
    await keep_year(app)
    async with app.memory(YEAR) as memory:
        context = await memory.layers.context()
        week = await memory.layers.workload(WEEK, WEEK + timedelta(days=7))
        why = await record_ask.answer(
            memory, record_ask.parse({"query": "why", "parameters": {"id": TASK}})
        )
    full, *_ = workload_words(replace(week, tasks=(), events=())).splitlines()
    title = "5. iris keeps goals, tasks and measurements as records, with her calendar beside them."
    return title, [
        f"A session begins with {context.nodes} records, {context.total_tokens:,} tokens.",
        f"The week {full}",
        *[_short(line) for line in why.text.splitlines()][:2],
    ]


def this_pps() -> str:
    """Return the command ``pps`` as it is typed here for the data folder of this process."""
    home = os.environ.get("PPS_HOME")
    return f"PPS_HOME={shlex.quote(home)} {_own_pps()}" if home else _own_pps()


def _own_pps() -> str:
    if shutil.which("pps"):
        return "pps"
    beside = Path(sys.executable).with_name("pps")
    return os.path.relpath(beside if beside.exists() else sys.argv[0])


async def demonstrate_squad(settings: Settings, *, quiet: bool) -> dict[str, JSON]:
    """Make the squad ``demo``, play the first flow, and return each step with what was seen.

    Raises:
        InvalidRequest: There is a squad of that name.
    """
    started = time.perf_counter()
    steps: list[JSON] = []
    async with App.open(settings) as app:
        if any(existing.name == SQUAD for existing in app.registry.squads.list()):
            raise InvalidRequest(
                "squad", f"{SQUAD!r} is there already: `pps squad delete {SQUAD}`, or set PPS_HOME"
            )
        squad = (await squad_members.found(app, SQUAD, "openclaw", {})).squad
        titles = {member: rules.title for member, rules in rules_of(squad).members.items()}
        calls = Calls(app)

        async def ask(who: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            return (
                await calls.answer(
                    Caller.of_entity(squad.members[who].entity), tool, dict(arguments)
                )
            ).data

        known: dict[str, Mapping[str, Any]] = {}
        async for played in play(flow("first"), ask, known):
            steps.append(_row(played))
            if not quiet:
                say(f"{titles[played.step.who]:<9}{played.step.does}  ({played.step.tool})")
                for line in _lines(played):
                    say(f"           {line}")
        pool = await ask("kublai", "memory_query", {"topic": "async patterns", "limit": 20})
    shared = len(pool["pool"])
    took_s = round(time.perf_counter() - started, 1)
    if not quiet:
        say(
            f"\n{len(steps)} steps of six agents, {took_s} s; the pool has {shared} records for "
            f"all of them.{_NEXT_OF_SQUAD.format(pps=this_pps())}"
        )
    return {"squad": SQUAD, "steps": steps, "shared": shared, "took_s": took_s}


def _row(played: Played) -> JSON:
    step = played.step
    missing = [*played.missing]
    return {
        "who": step.who,
        "does": step.does,
        "tool": step.tool,
        "missing": missing,
        "saw": _lines(played),
    }


def _lines(played: Played) -> list[JSON]:
    """Return the lines of a step's answer: titles of delivered records, or a record's new state."""
    answer = played.answer
    copy = answer.get("copy")
    if copy:
        text = f"; told at once or in batches: {', '.join(copy['told'])}" if copy["told"] else ""
        return [
            (
                f"{answer['title']}: shared, confidence {copy['confidence']:.2f}, {copy['roots']} "
                f"root(s){text}"
            )
        ]
    if "state" in answer and "title" in answer:
        return [f"{answer['title']}: {answer['state']}"]
    records = [row["record"] for row in answer.get("deliveries", ())] + [*answer.get("pool", ())]
    lines: list[JSON] = [f"{row['title']} (of {row['shared_by']})" for row in records]
    return lines + [
        f"{row['what']}: {row['text']}"
        for row in answer.get("items", ())
        if row["what"] == "synthesis"
    ]
