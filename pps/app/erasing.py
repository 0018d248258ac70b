"""Deletions that are begun: carried through at once, or by the next start after a kill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from pps.app.shared import Shared
from pps.core.errors import PPSError, StoreError, StoreUnavailable
from pps.entities.deletions import Deletion
from pps.entities.registry import Registry


class Erasing:
    """Removes what is left of entities whose registration was taken away.

    Args:
        registry: Knows which deletions are begun.
        shared: Has the connection to a server.
        gate: Keeps everybody else from an entity of a name; who calls ``finished`` or ``carry_out``
            holds it.
    """

    def __init__(
        self,
        registry: Registry,
        shared: Shared,
        gate: Callable[[str], AbstractAsyncContextManager[None]],
    ) -> None:
        self._deletions = registry.deletions
        self._shared = shared
        self._gate = gate

    async def finish_all(self) -> dict[str, str]:
        """Finish what was cut short; return what stands in the way, by the name of the entity."""
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
        """Carry through the deletion of an entity of this name and return it.

        None when none is begun.
        """
        pending = await asyncio.to_thread(self._deletions.pending)
        deletion = next((candidate for candidate in pending if candidate.entity.name == name), None)
        if deletion:
            await self.carry_out(deletion)
        return deletion

    async def carry_out(self, deletion: Deletion) -> None:
        """Remove files and graph.

        StoreError or StoreUnavailable say what is left, and the next start tries again.
        """
        try:
            await asyncio.to_thread(self._deletions.remove_files, deletion)
            if deletion.store == "neo4j":
                from pps.isolation.client import erase

                await erase(
                    deletion.entity, (await self._shared.server()).driver(), self._shared.counters
                )
            if deletion.store == "postgresql":
                database = await self._shared.database()
                await asyncio.to_thread(database.erase, deletion.entity.group)
            await asyncio.to_thread(self._deletions.end, deletion)
        except PPSError as error:
            kind = StoreUnavailable if error.retryable else StoreError
            raise kind(
                f"the deletion of {deletion.entity.name} is begun and not finished: {error.message}"
            ) from error
