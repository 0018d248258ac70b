"""``pps demo``: the main job on the shipped sample; two entities, one question, no leak."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
import time
from dataclasses import replace
from datetime import date, timedelta
from importlib.resources import as_file
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pps.app import App
from pps.config import Settings, shipped
from pps.core.recalled import Channel, Recall
from pps.core.reports import Stats
from pps.core.time import parse
from pps.core.values import AnchorPassage
from pps.ingest.importing.formats import read_lines
from pps.operations.record_asks import record_ask
from pps.operations.session_start import context_words, workload_words
from pps.records.saving import RecordGiven, RelationGiven

ENTITIES = ("mira", "theo")
YEAR, PACK = "iris", "constitution"
"""Who has a year of records, and of which pack they are."""
WEEK = date(2026, 3, 16)
TASK = "Resew the herbal of 1790"
QUESTION = "kitchen morning Saturday Haven"
_SHOWN = 3
_BATCH = 64


_NEXT = """
Ask more of it:
  {pps} recall mira "What is Wren allergic to?"
  {pps} recall mira "What did Jonas make coffee with?" --as-of 2026-02-01
  {pps} ambient theo "running in the morning"
  {pps} records list iris --kind Goal
Begin your own:
  {own} init && {own} entity create ana"""


async def demonstrate(settings: Settings, console: Console) -> None:
    """Make two entities of the sample, ask both the same question, and print what went in and what came back."""
    table = Table("entity", title="What was remembered", title_justify="left")
    for column in ("turns", "nodes", "facts", "anchors", "seconds"):
        table.add_column(column, justify="right")
    asked: list[tuple[str, Recall]] = []
    async with App.open(settings) as app:
        for name in ENTITIES:
            stats, took_s = await _ingested(app, name, console)
            numbers = (stats.turns, stats.nodes, stats.facts, stats.anchors)
            table.add_row(stats.entity, *(str(number) for number in numbers), f"{took_s:.1f}")
        for name in ENTITIES:
            async with app.memory(name) as memory:
                asked.append((name, await memory.recall(QUESTION, limit=_SHOWN)))
        year = await _year(app)
    console.print(table)
    for name, recalled in asked:
        console.print(
            f"\n[bold]{name}[/bold] is asked: “{recalled.query}”  ({recalled.took_ms['total']:.0f} ms)"
        )
        for channel in recalled.channels.values():
            _show_channel(console, channel)
    console.print(f"\n{_apart(asked)}", style="bold")
    for line in year:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(_next(), markup=False, highlight=False, soft_wrap=True)


def _next() -> str:
    """Return what to type next, in the data folder that this process was given."""
    beside = Path(sys.executable).with_name("pps")
    own = (
        "pps"
        if shutil.which("pps")
        else os.path.relpath(beside if beside.exists() else sys.argv[0])
    )
    home = os.environ.get("PPS_HOME")
    return _NEXT.format(pps=f"PPS_HOME={shlex.quote(home)} {own}" if home else own, own=own)


def _apart(asked: list[tuple[str, Recall]]) -> str:
    """Say how many results came back to each, and whether one of them is the other's."""
    (first, one), (second, other) = asked
    mine, theirs = _ids(one), _ids(other)
    both = mine & theirs
    if both:
        return (
            f"LEAK: {len(both)} results came back to both {first} and {second}. Please report this."
        )
    return f"{len(mine)} results for {first}, {len(theirs)} for {second}; none of one came back to the other."


def _ids(recalled: Recall) -> set[str]:
    """Return the ids of a recall; an anchor's is its text, since both entities may use a name."""
    hits = (hit for channel in recalled.channels.values() for hit in channel.hits)
    return {hit.text if isinstance(hit.item, AnchorPassage) else hit.id for hit in hits}


def _show_channel(console: Console, channel: Channel) -> None:
    if channel.error:
        console.print(f"  {channel.name}: failed: {channel.error}", markup=False)
    for number, hit in enumerate(channel.hits[:_SHOWN]):
        label = channel.name if number == 0 else ""
        text = " ".join((hit.passage or hit.text).split())
        console.print(f"  {label:<12}{text}", markup=False, overflow="ellipsis", no_wrap=True)


async def _ingested(app: App, name: str, console: Console) -> tuple[Stats, float]:
    """Tell an entity its part of the sample; return what it holds, and the seconds from first turn to last index."""
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
            with Progress(*columns, console=console, transient=not console.is_terminal) as bar:
                for batch in bar.track(batches, description=f"remembering {name}"):
                    await memory.remember_many(batch)
                    await memory.settled()
            await memory.anchor_import(sample / name / "anchors")
        return await memory.stats(), time.perf_counter() - started


async def keep_year(app: App) -> None:
    """Make the entity of the sample that has a year of records, with its pack and its calendar, and keep them."""
    entry = await app.create(YEAR)
    with as_file(shipped(f"config/sample/{YEAR}")) as sample:
        file = sample / "records.json"
        year = json.loads(await asyncio.to_thread(file.read_text, encoding="utf-8"))
        calendar = await asyncio.to_thread((sample / "week.ics").read_text, encoding="utf-8")
    await asyncio.to_thread(_own_calendar, entry.folder, calendar)
    await app.enable_pack(YEAR, PACK)
    async with app.memory(YEAR) as memory:
        saved = await memory.records.save([_record(one) for one in year["records"]])
        ids = {one.record.title: one.record.id for one in saved.records}
        for move in year["moves"]:
            await memory.records.move(ids[move["title"]], move["to"], why=move["why"])


def _record(one: dict[str, Any]) -> RecordGiven:
    relations = tuple(RelationGiven(**relation) for relation in one.pop("relations", ()))
    return RecordGiven(created_at=parse(one.pop("created_at")), relations=relations, **one)


def _own_calendar(folder: Path, text: str) -> None:
    (folder / "calendar.ics").write_text(text, encoding="utf-8")
    with (folder / "entity.toml").open("a", encoding="utf-8") as own:
        own.write(
            '\n[calendar]\nfiles = ["calendar.ics"]\nhours = [8, 8, 8, 8, 8, 4, 0]\ntime_zone = "Europe/Oslo"\n'
        )


async def _year(app: App) -> list[str]:
    """Return what a session of the third entity begins with, how full a week is, and why one task matters."""
    await keep_year(app)
    async with app.memory(YEAR) as memory:
        context = await memory.layers.context()
        week = await memory.layers.workload(WEEK, WEEK + timedelta(days=7))
        why = await record_ask.answer(
            memory, record_ask.parse({"query": "why", "parameters": {"id": TASK}})
        )
    shown = context_words(context).splitlines()
    return [
        f"\n{YEAR} begins a session with {context.nodes} records, {context.total_tokens:,} of at most "
        f"{context.budget_tokens:,} tokens ({context.took_ms['total']:.0f} ms):",
        *[f"  {line[:110]}" for line in shown if line.startswith(("## ", "- "))][:12],
        f"\nThe week of {WEEK}:",
        *(f"  {line}" for line in workload_words(replace(week, tasks=(), events=())).splitlines()),
        f"\nWhy does “{TASK}” matter?",
        *[f"  {line}" for line in why.text.splitlines()][:8],
    ]
