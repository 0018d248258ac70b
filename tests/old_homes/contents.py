"""All that a home holds, as JSON that two versions of the code can compare; and the exports of its memories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic_core import to_jsonable_python

from pps.app import App
from pps.core.time import parse
from pps.entities.tasks import Tasks
from pps.journal.pool_rows import Delivery
from pps.memory import Memory

_PAGE = 200
_FAR = parse("2100-01-01T00:00:00Z")
_COUNTS = ("turns", "nodes", "facts", "episodes", "anchors", "text_indexed", "vector_indexed")


async def memory_contents(memory: Memory) -> dict[str, Any]:
    """Return what a memory holds: by name of the part, then by id."""
    turns = await _turns(memory)
    graph = await _graph(memory)
    texts = [*turns, *graph["records"]]
    merging = memory.records.merging
    jobs = await memory.jobs.list(None, limit=1_000)
    stats = cast("dict[str, Any]", to_jsonable_python(await memory.stats()))
    portfolio = await memory.topics.portfolio()
    anchors = [await memory.anchor_read(one.slug) for one in await memory.anchor_list()]
    return cast(
        "dict[str, Any]",
        to_jsonable_python(
            {
                "stats": {name: stats[name] for name in _COUNTS},
                "turns": turns,
                **graph,
                "moves": await memory.records.moves(graph["records"]),
                "cites": await memory.records.cites([*graph["records"]]),
                "versions": {id_: await memory.records.history(id_) for id_ in texts},
                "merges": {merge.id: merge for merge in await merging.merges()},
                "forgotten": {item.id: item for item in await memory.forgetting.list()},
                "jobs": {str(job.id): _job(job) for job in jobs},
                "topics": {topic.id: sorted(topic.members) for topic in portfolio.topics},
                "anchors": {anchor.slug: anchor.text for anchor in anchors},
                "successors": await _successors(memory),
            }
        ),
    )


def _job(job: Any) -> dict[str, object]:
    """Return what does not change while a job is tried again."""
    return {"turn": job.turn_id, "state": job.state, "stage": job.stage, "code": job.code}


async def _turns(memory: Memory) -> dict[str, Any]:
    found: dict[str, Any] = {}
    cursor = ""
    while True:
        page = await memory.graph.said(None, cursor=cursor, limit=_PAGE)
        found |= {one.turn.uuid: one.turn for one in page.turns}
        if not page.next_cursor:
            return found
        cursor = page.next_cursor


async def _graph(memory: Memory) -> dict[str, dict[str, Any]]:
    """Return records, other nodes, relations, facts and who is mentioned where."""
    records: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    relations: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    cursor = ""
    while True:
        page = await memory.asks.page(cursor, _PAGE)
        records |= {one.id: one for one in page.records}
        nodes |= {one.uuid: one for one in page.nodes}
        relations |= {one.id: one for one in page.relations}
        facts |= {one.uuid: one for one in page.facts}
        cursor = page.next_cursor
        if not cursor:
            return {"records": records, "nodes": nodes, "relations": relations, "facts": facts}


async def _successors(memory: Memory) -> dict[str, str]:
    """Return fact → what took its place."""
    found: dict[str, str] = {}
    cursor = ""
    while True:
        page = await memory.timeline(cursor=cursor, limit=_PAGE)
        found |= {fact: one.id for fact, one in page.successors.items()}
        cursor = page.next_cursor
        if not cursor:
            return found


async def pool_contents(pool: Memory, members: Iterable[str]) -> dict[str, Any]:
    """Return what a squad shares, and what waits for each member."""
    rows = pool.records.pool
    shared = await rows.shared()
    inbox: dict[str, list[Delivery]] = {}
    for member in members:
        inbox[member] = await rows.due(member, _FAR, _PAGE)
    found = {
        "shared": shared,
        "roots": await rows.roots(shared),
        "stances": await rows.stances([*shared]),
        "uses": await rows.uses([*shared]),
        "inbox": inbox,
    }
    return cast("dict[str, Any]", to_jsonable_python(found))


async def registry_contents(app: App) -> dict[str, Any]:
    """Return who has a memory here, and which folders and programs lead to it."""
    registry = app.registry
    squads = await asyncio.to_thread(registry.squads.list)
    entries = await asyncio.to_thread(lambda: registry.list(include_archived=True))
    return {
        "entities": {
            entry.entity.name: {
                "group": entry.entity.group,
                "store": entry.store,
                "archived": entry.archived,
            }
            for entry in entries
        },
        "routes": {one.path: one.entity.name for one in registry.routes.list()},
        "watched": {one.path: one.entity.name for one in registry.watched.list()},
        "routers": sorted(one.label for one in registry.routers.list()),
        "tasks": {
            entry.entity.name: [
                {"prompt": task.draft.prompt, "result": task.result}
                for task in Tasks(entry.folder).list()
            ]
            for entry in entries
        },
        "squads": {
            squad.name: {id_: member.entity.name for id_, member in squad.members.items()}
            for squad in squads
        },
    }


async def export_lines(memory: Memory, folder: Path) -> list[str]:
    """Return the lines of a memory's export, which is written to a folder and removed again."""
    file = folder / f"{memory.entity.name}.export.jsonl"
    await memory.documents.export(file)
    text = await asyncio.to_thread(file.read_text, "utf-8")
    await asyncio.to_thread(file.unlink)
    return text.splitlines()


def lost(before: object, after: object, path: str = "") -> list[str]:
    """Return the paths of what is stored in ``before`` and is not, or is otherwise, in ``after``.

    What only ``after`` has is no loss: a later version may tell more.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        found: list[str] = []
        for name, value in cast("Mapping[str, object]", before).items():
            below = f"{path}.{name}" if path else name
            if name not in after:
                found.append(f"{below} is gone")
            else:
                found += lost(value, cast("Mapping[str, object]", after)[name], below)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(
            zip(cast("list[object]", before), cast("list[object]", after), strict=True)
        )
        return [text for at, (old, new) in pairs for text in lost(old, new, f"{path}[{at}]")]
    return [] if before == after else [f"{path}: {json.dumps(before)} -> {json.dumps(after)}"]
