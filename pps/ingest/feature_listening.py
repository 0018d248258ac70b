"""Features of an open memory: their tables, listeners in a turn's transaction, and followers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pps.core.errors import NotFound, PPSError, StoreError
from pps.core.feature_parts import Follower, StoredFeature, TurnListener
from pps.core.log_context import unforeseen
from pps.core.sql import Connection
from pps.core.values import Turn
from pps.ingest.redact import KeyedRedactor
from pps.journal.feature_tables import FeatureTables, TableRows
from pps.journal.journal import Journal

_log = logging.getLogger(__name__)
_PAGE = 100
_TABLES = ""
"""In place of a follower's name: what fails is the making of the tables."""
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 60.0


class MemoryFeatures:
    """The features that are on, for one open memory.

    Args:
        journal: Of the entity.
        redactor: Makes what takes secrets out of texts.
        features: Returns those that are on; looked at again for every turn.
    """

    def __init__(
        self,
        journal: Journal,
        redactor: Callable[[], KeyedRedactor],
        features: Callable[[], Sequence[StoredFeature]],
    ) -> None:
        self._journal = journal
        self._redactor = redactor
        self._features = features
        self._tables: dict[str, FeatureTables] = {}
        self._followers: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._failures: dict[tuple[str, str], str] = {}
        self._wake: dict[tuple[str, str], asyncio.Event] = {}
        self._memory: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self, memory: Any) -> None:
        """Make the tables of the features that are on, and register their listeners.

        A feature whose tables cannot be made is left out and listed in ``problems``; the memory
        works without it.

        Args:
            memory: Passed to followers.
        """
        self._memory = memory
        self._loop = asyncio.get_running_loop()
        self._journal.listeners.wake = self._wake_followers
        await self.refresh()

    async def refresh(self) -> None:
        """Follow a change of which features are on."""
        self._failures.clear()
        features = {feature.name: feature for feature in self._features()}
        for name in self._tables.keys() - features.keys():
            del self._tables[name]
        for name, feature in features.items():
            if name in self._tables:
                continue
            try:
                await self._prepare(feature)
            except StoreError as error:
                self._failures[name, _TABLES] = error.message
                continue
            self._tables[name] = self._journal.feature_tables(feature, self._clean)
        features = {name: feature for name, feature in features.items() if name in self._tables}
        self._journal.listeners.tellers = tuple(
            partial(self._tell, feature, listener)
            for feature in features.values()
            for listener in feature.listeners
            if isinstance(listener, TurnListener)
        )
        followers = {
            (feature.name, listener.name): listener
            for feature in features.values()
            for listener in feature.listeners
            if isinstance(listener, Follower)
        }
        for key in self._followers.keys() - followers.keys():
            await _wait_for_end(self._followers.pop(key))
            self._failures.pop(key, None)
        for key, follower in followers.items():
            if key not in self._followers:
                self._wake[key] = asyncio.Event()
                self._followers[key] = asyncio.create_task(self._follow(key, follower))

    async def stop(self) -> None:
        """End the followers; where they stand is on disk."""
        self._journal.listeners.tellers = ()
        for task in self._followers.values():
            await _wait_for_end(task)
        self._followers.clear()

    def tables(self, feature: str) -> FeatureTables:
        """Return the tables of a feature that is on; NotFound for any other."""
        tables = self._tables.get(feature)
        if tables is None:
            raise NotFound("feature")
        return tables

    @property
    def problems(self) -> tuple[str, ...]:
        """Which features cannot be used here or have followers that fail, and why."""
        return tuple(
            f"the feature {feature} cannot be used here: {why}"
            if part == _TABLES
            else f"the follower {part} of the feature {feature} fails and tries again: {why}"
            for (feature, part), why in self._failures.items()
        )

    async def behind(self, feature: str, follower: str) -> int:
        """Return how many turns a follower has not worked on yet, at most 100."""
        done = await self._journal.features.position(feature, follower)
        return len(await self._journal.scan(done, _PAGE))

    async def _prepare(self, feature: StoredFeature) -> None:
        existing = {
            table.name: {*table.columns}
            for table in await self._journal.features.kept_tables()
            if table.feature == feature.name
        }
        if any(existing.get(table.name) != {*table.columns} for table in feature.tables):
            await self._journal.features.prepare(self._journal.group, feature.name, feature.tables)

    def _clean(self) -> Callable[[str], str]:
        return self._redactor().text

    def _tell(
        self, feature: StoredFeature, listener: TurnListener, db: Connection, turn: Turn
    ) -> bool:
        rows = TableRows(
            db, self._journal.group, feature.name, feature.tables, self._clean(), [turn.uuid]
        )
        try:
            listener.act(rows, turn)
        except PPSError:
            raise
        except Exception as error:
            unforeseen(
                _log, f"the listener {listener.name} of the feature {feature.name} failed", error
            )
            raise StoreError(
                f"the listener {listener.name} of the feature {feature.name} failed "
                f"({type(error).__name__}), so nothing was kept; "
                f"`pps feature disable {feature.name}` goes on without it"
            ) from error
        finally:
            rows.close()
        return rows.erased

    def _wake_followers(self) -> None:
        if not self._followers or self._loop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the followers with it
            self._loop.call_soon_threadsafe(self._set_wakes)

    def _set_wakes(self) -> None:
        for event in self._wake.values():
            event.set()

    async def _follow(self, key: tuple[str, str], follower: Follower) -> None:
        failures = 0
        while True:
            self._wake[key].clear()
            try:
                await self._catch_up(key, follower)
            except Exception as error:  # noqa: BLE001 - health reports it, and it is retried
                failures += 1
                why = error.message if isinstance(error, PPSError) else type(error).__name__
                self._failures[key] = why
                wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (failures - 1))
                _log.warning("the follower %s of the feature %s failed: %s", key[1], key[0], why)
                await asyncio.sleep(wait_s)
                continue
            failures = 0
            self._failures.pop(key, None)
            await self._wake[key].wait()

    async def _catch_up(self, key: tuple[str, str], follower: Follower) -> None:
        feature, name = key
        done = await self._journal.features.position(feature, name)
        while turns := await self._journal.scan(done, _PAGE):
            for turn in turns:
                await follower.act(self._memory, self.tables(feature).about(turn), turn)
                done = turn.seq
                await self._journal.features.move_on(feature, name, done)


async def _wait_for_end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
