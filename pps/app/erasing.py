"""Removal of deleted entities, and of graphs on Neo4j that are no longer published.

A removal is noted before it begins and carried out at once if possible. It is tried again after a
crash, or when Neo4j answers again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from pps.app.shared import Shared
from pps.core.errors import PPSError, StoreError, StoreUnavailable
from pps.core.ids import EntityId
from pps.entities.deletions import Deletion
from pps.entities.registry import Registry

_NOBODY = "removed"
"""Stands for the name of an entity that may be no more."""
_PATIENCE_S = 300.0
_FIRST_RETRY_S = 1.0
_LONGEST_RETRY_S = 60.0


class Erasing:
    """Removes the data of entities that are no longer registered.

    Args:
        registry: Knows the deletions that have begun.
        shared: Has the connection to Neo4j.
        gate: Returns the lock of an entity's name. Callers of ``finished`` and ``carry_out`` hold
            it.

    Attributes:
        unpublishing: Held while graphs are removed from Neo4j.
        stays: Why some graphs could not be removed at the last try; empty if all are gone.
    """

    def __init__(
        self,
        registry: Registry,
        shared: Shared,
        gate: Callable[[str], AbstractAsyncContextManager[None]],
    ) -> None:
        self._deletions = registry.deletions
        self._unpublished = registry.unpublishing
        self.unpublishing = asyncio.Lock()
        self.stays = ""
        self._shared = shared
        self._gate = gate

    async def finish_all(self) -> dict[str, str]:
        """Finish interrupted deletions; return entity → reason for those that are not possible."""
        in_the_way: dict[str, str] = {}
        try:
            await asyncio.to_thread(self._deletions.sweep)
        except StoreError as error:
            in_the_way[".trash"] = error.message
        for deletion in await asyncio.to_thread(self._deletions.pending):
            try:
                async with self._gate(deletion.entity.name):
                    await self.finished(deletion.entity.name)
            except PPSError as error:
                in_the_way[deletion.entity.name] = error.message
        return in_the_way

    async def finished(self, name: str) -> Deletion | None:
        """Finish the deletion of an entity of this name and return the entity.

        Return None if no deletion of that name has begun.
        """
        pending = await asyncio.to_thread(self._deletions.pending)
        deletion = next((candidate for candidate in pending if candidate.entity.name == name), None)
        if deletion:
            await self.carry_out(deletion)
        return deletion

    async def carry_out(self, deletion: Deletion) -> None:
        """Remove an entity's files and its published graph.

        If Neo4j does not answer, the graph is removed later.

        Raises:
            StoreError, StoreUnavailable: Files are left; the next start tries again.
        """
        try:
            await asyncio.to_thread(self._deletions.remove_files, deletion)
            if deletion.in_database:
                database = await self._shared.database()
                await asyncio.to_thread(database.erase, deletion.entity.group)
            await asyncio.to_thread(self._deletions.end, deletion)
        except PPSError as error:
            kind = StoreUnavailable if error.retryable else StoreError
            raise kind(
                f"the deletion of {deletion.entity.name} is begun and not finished: {error.message}"
            ) from error
        await self.unpublish()

    async def unpublish(self) -> str:
        """Remove the graphs from Neo4j that are no longer published.

        Return why some of them stay, or an empty text if all are gone.
        """
        async with self.unpublishing:
            groups = await asyncio.to_thread(self._unpublished.groups)
            if not groups:
                return ""
            try:
                from pps.isolation.client import erase

                async with asyncio.timeout(_PATIENCE_S):
                    driver = (await self._shared.server()).driver()
                    for group in groups:
                        await erase(EntityId(_NOBODY, group), driver, self._shared.counters)
                        await asyncio.to_thread(self._unpublished.end, group)
            except PPSError as error:
                self.stays = error.message
            except TimeoutError:
                self.stays = f"Neo4j took longer than {_PATIENCE_S:.0f} s"
            else:
                self.stays = ""
            return self.stays

    async def keep_unpublishing(self) -> None:
        """While the app is open, keep trying to remove graphs that are no longer published."""
        wait_s = _FIRST_RETRY_S
        while True:
            try:
                left = await self.unpublish()
            except PPSError as error:  # the registry's file
                left = error.message
            wait_s = min(2 * wait_s, _LONGEST_RETRY_S) if left else _FIRST_RETRY_S
            await asyncio.sleep(wait_s)
