"""``pps demo``: the main job on the shipped sample; two entities, one question, no leak."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator
from dataclasses import dataclass
from importlib.resources import as_file
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pps.app import App
from pps.config import Settings, shipped
from pps.core.recalled import Channel, Recall
from pps.core.reports import Stats
from pps.core.values import AnchorPassage
from pps.ingest.importing import read_lines

ENTITIES = ("mira", "theo")
QUESTION = "kitchen morning Saturday Haven"
_SHOWN = 3
_BATCH = 64


_NEXT = """
Ask more of it:
  PPS_HOME=.demo .venv/bin/pps recall mira "What is Wren allergic to?"
  PPS_HOME=.demo .venv/bin/pps recall mira "What did Jonas make coffee with?" --as-of 2026-02-01
  PPS_HOME=.demo .venv/bin/pps ambient theo "running in the morning"
Begin your own:
  .venv/bin/pps init && .venv/bin/pps entity create ana"""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one entity took in; ``took_s`` is wall time from the first turn to the last index entry."""

    stats: Stats
    took_s: float


@dataclass(frozen=True, slots=True)
class Demonstrated:
    """What the demo did: what went in, and the same question asked of both entities."""

    ingested: tuple[Ingested, ...]
    asked: tuple[tuple[str, Recall], ...]


async def demonstrate(settings: Settings, console: Console) -> Demonstrated:
    """Make two entities of the sample, ask both the same question, and return what came back."""
    async with App.open(settings) as app:
        ingested = [await _ingest(app, name, console) for name in ENTITIES]
        asked: list[tuple[str, Recall]] = []
        for name in ENTITIES:
            async with app.memory(name) as memory:
                asked.append((name, await memory.recall(QUESTION, limit=_SHOWN)))
        return Demonstrated(tuple(ingested), tuple(asked))


def show(console: Console, done: Demonstrated) -> None:
    """Print what was ingested and each entity's answer, channel by channel."""
    table = Table(title="What was remembered", title_justify="left")
    for column in ("entity", "turns", "nodes", "facts", "anchors", "seconds"):
        table.add_column(column, justify="left" if column == "entity" else "right")
    for one in done.ingested:
        stats = one.stats
        numbers = (stats.turns, stats.nodes, stats.facts, stats.anchors)
        table.add_row(stats.entity, *(str(number) for number in numbers), f"{one.took_s:.1f}")
    console.print(table)
    for name, recalled in done.asked:
        console.print(f"\n[bold]{name}[/bold] is asked: “{recalled.query}”  ({recalled.took_ms['total']:.0f} ms)")
        for channel in recalled.channels.values():
            _show_channel(console, channel)
    console.print(f"\n{_apart(done)}", style="bold")
    console.print(_NEXT, markup=False, highlight=False, soft_wrap=True)


def _apart(done: Demonstrated) -> str:
    """Say how many results came back to each, and whether one of them is the other's."""
    (first, one), (second, other) = done.asked
    mine, theirs = _ids(one), _ids(other)
    both = mine & theirs
    if both:
        return f"LEAK: {len(both)} results came back to both {first} and {second}. Please report this."
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


async def _ingest(app: App, name: str, console: Console) -> Ingested:
    await app.create(name)
    started = time.perf_counter()
    async with app.memory(name) as memory:
        with _sample(name) as folder:
            lines = list(read_lines(folder / "turns.jsonl"))
            with _bar(console) as bar:
                task = bar.add_task(f"remembering {name}", total=len(lines))
                for start in range(0, len(lines), _BATCH):
                    await memory.remember_many(lines[start : start + _BATCH])
                    await memory.settled()
                    bar.advance(task, len(lines[start : start + _BATCH]))
            await memory.anchor_import(folder / "anchors")
        return Ingested(await memory.stats(), time.perf_counter() - started)


@contextlib.contextmanager
def _sample(name: str) -> Generator[Path]:
    with as_file(shipped("config/sample")) as folder:
        yield folder / name


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=not console.is_terminal)
