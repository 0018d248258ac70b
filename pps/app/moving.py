"""Moving an entity's memory between a file and PostgreSQL: copy, compare, switch.

This module also erases the copy that a move left behind.

The registry names the store that is in force, and changes it in one transaction. After a crash
before it, the memory is in the old store and the partial copy is noted. After a crash behind it,
the memory is in the new store, and its ``entity.toml`` is updated when it is next opened. Repeating
the move finishes it in both cases.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from pps.app.shared import Shared
from pps.app.threads import Progress, in_thread
from pps.core.errors import InvalidRequest, PPSError
from pps.entities import folder
from pps.entities.folder import Entry
from pps.entities.moves import Moves, OtherCopy, Place, place_of
from pps.entities.registry import Registry

if TYPE_CHECKING:
    from pps.journal.copying import Digests, Tell

State: TypeAlias = Literal["moved", "nothing_to_do", "dropped"]


@dataclass(frozen=True, slots=True)
class MoveReport:
    """The result of moving a memory.

    Attributes:
        state: ``dropped`` if the copy in the other store was erased.
        store: Where the memory is now: ``embedded`` or ``postgresql``.
        rows: Table → number of rows moved, without empty tables.
        kept: Where the copy from before the move still is; empty if there is none.
        seconds: How long it took.
    """

    entity: str
    state: State
    store: Place
    rows: dict[str, int] = field(default_factory=dict[str, int])
    kept: str = ""
    seconds: float = 0.0


class Moving:
    """Moves memories that nobody has open. Callers hold the gate of the entity."""

    def __init__(self, registry: Registry, shared: Shared) -> None:
        self._registry = registry
        self._shared = shared

    async def check(self, entry: Entry, target: Place) -> bool:
        """Check that a move is possible, and return whether there is anything to move.

        Raises:
            InvalidRequest: The copy from the last move is still kept.
            ConfigError, StoreUnavailable: The server is not configured, or does not answer.
        """
        if place_of(entry.store) == target:
            return False
        other = await self._other_copy(entry)
        if other is not None and other.is_kept:
            raise InvalidRequest(
                "to",
                f"{place_of(entry.store)!r} is where {entry.entity.name!r} was moved to, and "
                f"{other.place!r} keeps it as it was before: run `pps move {entry.entity.name} "
                "--drop-source` first",
            )
        await asyncio.to_thread((await self._shared.database()).check)
        return True

    async def carry_out(
        self, entry: Entry, target: Place, progress: Progress | None
    ) -> dict[str, int]:
        """Copy, compare and switch; return table → rows. The caller holds the entity's files.

        Raises:
            StoreError: The copy is not the same as the memory; it is erased, and nothing was
                changed.
            InvalidRequest, StoreUnavailable, StoreConflict: It cannot be copied; nothing was
                changed.
        """
        await asyncio.to_thread(self._registry.moves.begin, entry.entity, target)
        try:
            digests = await in_thread(await self._copying(entry, target), progress)
        except BaseException:
            # What cannot be erased now stays noted: the doctor names it, and the next move writes
            # over it.
            with contextlib.suppress(PPSError):
                await asyncio.shield(self.erase_other_copy(entry))
            raise
        store = "postgresql" if target == "postgresql" else _store_in_file(entry)
        await asyncio.to_thread(self._registry.move, entry, store)
        return {name: table.rows for name, table in digests.items() if table.rows}

    async def _copying(self, entry: Entry, target: Place) -> Callable[[Tell], Digests]:
        from pps.journal.copying import copy_to_database, copy_to_file

        database = await self._shared.database()
        group = entry.entity.group
        if target == "postgresql":
            return lambda tell: copy_to_database(file_of(entry), database, group, tell)
        return lambda tell: copy_to_file(database, group, file_of(entry), tell)

    async def erase_other_copy(self, entry: Entry) -> bool:
        """Erase the entity's copy in a store that is not its own.

        Return whether such a copy was noted.

        Raises:
            StoreError, StoreUnavailable: It cannot be erased; it stays noted.
        """
        return await erase_other_copy(entry, self._registry.moves, self._shared)

    async def kept(self, entry: Entry) -> str:
        """Return where the copy from before a move still is, or an empty text."""
        other = await self._other_copy(entry)
        return place_text(entry, other) if other is not None and other.is_kept else ""

    async def _other_copy(self, entry: Entry) -> OtherCopy | None:
        return await asyncio.to_thread(self._registry.moves.other_copy, entry.entity.group)


async def erase_other_copy(entry: Entry, moves: Moves, shared: Shared) -> bool:
    """Do what ``Moving.erase_other_copy`` says."""
    from pps.journal.copying import erase_file

    other = await asyncio.to_thread(moves.other_copy, entry.entity.group)
    if other is None or other.place == place_of(entry.store):
        return False
    if other.place == "embedded":
        await asyncio.to_thread(erase_file, file_of(entry))
    else:
        database = await shared.database()
        await asyncio.to_thread(database.erase, entry.entity.group)
    await asyncio.to_thread(moves.end, entry.entity.group)
    return True


def notes_and_problems(entry: Entry, other: OtherCopy | None) -> tuple[list[str], list[str]]:
    """Return a notice on another store's copy of an entity: a kept one, or of a move cut short."""
    if other is None:
        return [], []
    name = entry.entity.name
    where = place_text(entry, other)
    drop = f"`pps move {name} --drop-source`"
    if other.is_kept:
        return [
            f"{where} keeps this memory as it was before its move on {other.at:%Y-%m-%d}: it is "
            f"erased by {drop}, by the first forgetting for good, or with the entity"
        ], []
    return [], [
        f"a move to {other.place} was begun on {other.at:%Y-%m-%d} and cut short, and {where} may "
        f"have a copy of this memory: `pps move {name} --to {other.place}` finishes it, {drop} "
        "erases the copy"
    ]


def place_text(entry: Entry, other: OtherCopy) -> str:
    """Return a description of where a copy is."""
    return str(file_of(entry)) if other.place == "embedded" else "the PostgreSQL database"


def file_of(entry: Entry) -> Path:
    """Return the path of an entity's ``memory.db``, which need not exist."""
    return entry.folder / "data" / folder.JOURNAL


def _store_in_file(entry: Entry) -> str:
    return "neo4j" if entry.is_published else "embedded"
