"""How an installation is, at a glance: its server, its entities, and what waits.

Read from files, so that it is told with and without a server; nothing is opened, started or made
for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from pps.core.errors import PPSError
from pps.core.text import counted
from pps.core.time import shown
from pps.entities.folder import JOURNAL, Entry
from pps.journal.outline import Outline, outline_of, read_outline
from pps.operations.pages import on_clock
from pps.server import RunFile, runfile, spool

if TYPE_CHECKING:
    from pps.core.values import JSON
    from pps.journal.postgresql import Database


@dataclass(frozen=True, slots=True)
class ServerState:
    """The running server; ``by_need`` tells that it was started by a command and ends when idle."""

    url: str
    pid: int
    version: str
    since: datetime
    by_need: bool


@dataclass(frozen=True, slots=True)
class EntityState:
    """An entity at a glance.

    Attributes:
        turns, last_turn_at: What is kept, and when the latest of it was said; none where that
            cannot be read here.
        waiting, failed: Turns that are still to be taken in, and those that could not be.
        is_open: The server has its memory open.
        problem: Why it cannot be used, and what to do; empty when it can.
        note: What is to be known beside, such as a changed file that is not used yet.
    """

    name: str
    store: str
    archived: bool = False
    turns: int | None = None
    last_turn_at: datetime | None = None
    waiting: int = 0
    failed: int = 0
    is_open: bool = False
    problem: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class InstallationState:
    """A data folder at a glance.

    ``hooks_waiting`` and ``hooks_bad`` count events of hooks in its spool.
    """

    home: str
    server: ServerState | None
    entities: tuple[EntityState, ...]
    hooks_waiting: int = 0
    hooks_bad: int = 0

    @property
    def ok(self) -> bool:
        """Whether every entity that is not archived can be used."""
        return not any(entity.problem for entity in self.entities)


def state_of(
    home: Path,
    entries: Collection[Entry],
    run: RunFile | None,
    *,
    problems: Mapping[str, str],
    open_names: Collection[str] = (),
    stale: Collection[str] = (),
    outlines: Mapping[str, Outline | str] = {},
) -> InstallationState:
    """Return how a data folder is. Blocks for a look into each entity's file.

    Args:
        home: The data folder.
        entries: Its entities, archived ones too.
        run: Of the server that is running.
        problems: Name → why an entity cannot be used.
        open_names: Entities whose memories the server has open.
        stale: Those of them whose ``entity.toml`` was changed since.
        outlines: Of ``outlines_in``, for entities on PostgreSQL.
    """
    events = spool.look(home)
    return InstallationState(
        str(home),
        None if run is None else _server(home, run),
        tuple(
            _entity(
                entry,
                problems.get(entry.entity.name, ""),
                is_open=entry.entity.name in open_names,
                is_stale=entry.entity.name in stale,
                outline=outlines.get(entry.entity.name),
            )
            for entry in entries
        ),
        events.waiting,
        events.bad,
    )


def _server(home: Path, run: RunFile) -> ServerState:
    since = datetime.fromtimestamp(runfile.run_file(home).stat().st_mtime, UTC)
    return ServerState(run.url, run.pid, run.version, since, run.auto)


def outlines_in(database: Database, entries: Collection[Entry]) -> dict[str, Outline | str]:
    """Return name → the memory's state, or why it cannot be read, for memories in a database.

    Blocks.
    """
    outlines: dict[str, Outline | str] = {}
    for entry in entries:
        if entry.store == "postgresql" and not entry.archived:
            try:
                outlines[entry.entity.name] = database.read(entry.entity.group, read_outline)
            except PPSError as error:
                outlines[entry.entity.name] = error.message
    return outlines


def _entity(
    entry: Entry, problem: str, *, is_open: bool, is_stale: bool, outline: Outline | str | None
) -> EntityState:
    name = entry.entity.name
    if entry.archived:
        return EntityState(name, entry.store, archived=True)
    note = ""
    if is_stale:
        note = (
            "entity.toml was changed: it is used once nothing uses the memory, or after `pps stop`"
        )
    journal = entry.folder / "data" / JOURNAL
    if entry.store != "postgresql":
        if not entry.made and not journal.exists():
            return EntityState(name, entry.store, turns=0, problem=problem, note=note)
        outline = outline_of(journal)
    if not isinstance(outline, Outline):
        unread = outline or f"{journal} cannot be read by you here; `pps doctor {name}` says more"
        problem = problem or unread
        return EntityState(name, entry.store, is_open=is_open, problem=problem, note=note)
    return EntityState(
        name,
        entry.store,
        turns=outline.turns,
        last_turn_at=outline.last_turn_at,
        waiting=outline.waiting,
        failed=outline.failed,
        is_open=is_open,
        problem=problem,
        note=note,
    )


def state_words(state: InstallationState) -> str:
    """Return a state as text: the server, the folder, a line an entity, and what waits."""
    lines = [_server_line(state.server), f"Data folder: {state.home}"]
    if not state.entities:
        lines.append("No entities yet: `pps entity create NAME` makes one.")
    width = max((len(entity.name) for entity in state.entities), default=0)
    for entity in state.entities:
        lines.append(f"  {entity.name:<{width}}  {_entity_line(entity)}")
        lines += [f"  {'':<{width}}  ! {text}" for text in (entity.problem, entity.note) if text]
    if state.hooks_waiting:
        lines.append(f"Hooks: {counted(state.hooks_waiting, 'event')} wait for the server.")
    if state.hooks_bad:
        bad = counted(state.hooks_bad, "event")
        lines.append(f"Hooks: {bad} could not be taken in; `pps doctor` says more.")
    return "\n".join(lines)


def _server_line(server: ServerState | None) -> str:
    if server is None:
        return "Server: none is running; the next command that needs it starts it"
    since = shown(server.since, server.since.tzinfo or UTC)
    end = "; it ends by itself when it is idle" if server.by_need else ""
    return (
        f"Server: {server.url}, process {server.pid}, version {server.version}, since {since}{end}"
    )


def _entity_line(entity: EntityState) -> str:
    if entity.archived:
        return f"archived; `pps entity archive {entity.name} --undo` brings it back"
    if entity.turns is None:
        return "what it keeps cannot be read"
    last = entity.last_turn_at
    parts = [counted(entity.turns, "turn") if entity.turns else "no turns"]
    if last is not None:
        parts.append(f"the latest of {shown(last, last.tzinfo or UTC)}")
    if entity.waiting:
        parts.append(f"{entity.waiting:,} to be taken in")
    if entity.failed:
        parts.append(f"{entity.failed:,} failed (`pps jobs list {entity.name}`)")
    return ", ".join(parts)


def state_answer(state: InstallationState, zone: tzinfo) -> tuple[dict[str, JSON], str]:
    """Return a state as JSON data and as text in a zone, as the operation ``status`` does."""
    data = TypeAdapter(InstallationState).dump_python(state, mode="json", exclude_none=True)
    return data, state_words(on_clock(state, zone))
