"""A router's view of the registry: the projects inside its roots and no trace of others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from pps.app import App
from pps.app.opening import self_node_id
from pps.core.errors import InvalidRequest, NotFound, PPSError, UnknownEntity
from pps.core.ids import EntityId
from pps.entities.paths import is_inside, name_of, plain_path, real_path
from pps.entities.routing import MappedFolder, Router
from pps.entities.tasks import AgentTask, Tasks
from pps.ingest.redact import Redactor
from pps.journal.db import tally, tally_rows
from pps.journal.postgresql import Database
from pps.memory import Memory


@dataclass(frozen=True, slots=True)
class Vault:
    """A project and the size of its memory.

    If the memory cannot be opened, ``error`` is set and the counts are None.
    """

    id: str
    name: str
    project: str
    created_at: datetime
    nodes: int | None = None
    edges: int | None = None
    tags: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A task that a runner holds, and the project that it belongs to."""

    project: str
    task: AgentTask


class Projects:
    """The projects that one router reaches.

    A project outside its roots gives the same errors as one that does not exist.

    Attributes:
        named: Name of the entity that was acted on, as the router knows it; empty for none or
            several.
    """

    def __init__(self, app: App, router: Router) -> None:
        self._app = app
        self._router = router
        self.named = ""
        self.redacts = app.settings.redaction == "on"

    def redacted(self, text: str) -> str:
        return Redactor(on=self.redacts).text(text)

    @contextlib.asynccontextmanager
    async def memory(self, project: str, *, create: bool = False) -> AsyncGenerator[Memory]:
        """Open the memory of a project; with ``create``, make it if the router may.

        Raises:
            InvalidRequest: The path is not absolute.
            NotFound: The project is outside the roots, has no memory, or is archived.
        """
        entity = await asyncio.to_thread(self._find_entity, project, create)
        self.named = self._with_folder_name(entity.name, entity, project)
        try:
            async with self._app.memory(entity) as memory:
                yield memory
        except UnknownEntity:
            raise NotFound("project") from None
        except PPSError as error:
            error.map_texts(lambda text: self._with_folder_name(text, entity, project))
            raise

    @contextlib.asynccontextmanager
    async def memory_of(self, path: str) -> AsyncGenerator[Memory]:
        """Open the memory of the longest mapped folder inside the roots that contains a path.

        No memory is made. Raises as ``memory``.
        """
        async with self.memory(await asyncio.to_thread(self._mapped_folder, path)) as memory:
            yield memory

    async def tasks(self, project: str, *, create: bool = False) -> Tasks:
        """Return the tasks of a project; raises as ``memory``."""
        entity = await asyncio.to_thread(self._find_entity, project, create)
        self.named = self._with_folder_name(entity.name, entity, project)
        return Tasks(await asyncio.to_thread(self._folder, entity))

    async def vaults(self) -> list[Vault]:
        """Return all projects inside the roots that have a memory, the newest first."""
        on_server = any(entry.store == "postgresql" for entry in self._app.registry.list())
        database = await self._app.database() if on_server else None
        return await asyncio.to_thread(self._count_vaults, database)

    def _count_vaults(self, database: Database | None) -> list[Vault]:
        """Count without opening the memories, which would close others that are in use."""
        routes = self._app.registry.routes.list(self._router.roots)
        newest = sorted(routes, key=lambda route: route.created_at, reverse=True)
        return [self._vault(route, database) for route in newest if not route.archived]

    async def claim(
        self, project: str | None, runner: str, lease_s: int, agent: str
    ) -> Claimed | None:
        """Claim the task that has waited longest, of one project or of all inside the roots."""
        entity = None
        if project is not None:
            entity = await asyncio.to_thread(self._find_entity, project, False)
        return await asyncio.to_thread(self._claim_first, entity, runner, lease_s, agent)

    def _claim_first(
        self, entity: EntityId | None, runner: str, lease_s: int, agent: str
    ) -> Claimed | None:
        for path, tasks in self._waiting_tasks(entity, agent):
            task = tasks.claim(runner, lease_s, agent)
            if task is not None:
                return Claimed(path, task)
        return None

    def _waiting_tasks(self, entity: EntityId | None, agent: str) -> Sequence[tuple[str, Tasks]]:
        """Return path and tasks of projects with a task for the agent, longest waiting first."""
        routes = self._app.registry.routes.list(self._router.roots)
        paths = {route.entity: route.path for route in reversed(routes) if not route.archived}
        wanted = paths if entity is None else {entity: paths[entity]}
        waiting: list[tuple[datetime, str, Tasks]] = []
        for owner, path in wanted.items():
            tasks = Tasks(self._folder(owner))
            since = tasks.waits_since(agent)
            if since is not None:
                waiting.append((since, path, tasks))
        return [(path, tasks) for _, path, tasks in sorted(waiting, key=lambda entry: entry[:2])]

    def _find_entity(self, project: str, create: bool) -> EntityId:
        path = self._reachable_path(project, "project")
        registry = self._app.registry
        entity_id = registry.routes.exactly(path)
        if entity_id is not None:
            return entity_id
        if not (create and self._router.may_create):
            raise NotFound("project")
        try:
            return registry.create_for(
                path, store=self._app.settings.store, time_zone=self._app.new_zone
            ).entity
        except UnknownEntity:
            raise NotFound("project") from None

    def _reachable_path(self, path: str, field: str) -> str:
        """Return the real path of a path inside the roots.

        Outside them NotFound reveals nothing, not even whether links there are circular.
        """
        plain = plain_path(path, field)
        try:
            real = real_path(path, field)
        except InvalidRequest:  # a circle of links
            if not self._router.reaches(os.path.normpath(plain)):
                raise NotFound("project") from None
            raise
        if not self._router.reaches(real):
            raise NotFound("project")
        return real

    def _with_folder_name(self, text: str, entity: EntityId, project: str) -> str:
        """Replace an entity's name in a text by its folder's name.

        The name ``shop_2`` would reveal that there is another project ``shop``.
        """
        if self._router.is_owner:
            return text
        return re.sub(rf"\b{entity.name}\b", name_of(project), text)

    def _mapped_folder(self, path: str) -> str:
        """Return the longest mapped folder within this router's reach that contains a path."""
        real = self._reachable_path(path, "project_path")
        routes = self._app.registry.routes.list(self._router.roots)
        folders = [route.path for route in routes if is_inside(real, route.path)]
        if not folders:
            raise NotFound("project")
        return max(folders, key=len)

    def _folder(self, entity: EntityId) -> Path:
        return self._app.registry.by_group(entity.group).folder

    def _vault(self, route: MappedFolder, database: Database | None) -> Vault:
        entity = route.entity
        name = self._with_folder_name(entity.name, entity, route.path)
        vault = Vault(entity.group, name, route.path, route.created_at)
        try:
            entry = self._app.registry.by_group(entity.group)
            own = self_node_id(entity)
            if entry.store == "postgresql" and database is not None:
                held = database.read(entity.group, partial(tally_rows, own=own))
            else:
                held = tally(entry.folder / "data" / "memory.db", entity.group, own)
        except PPSError as error:
            return replace(vault, error=self._with_folder_name(error.message, entity, route.path))
        return replace(vault, nodes=held.nodes, edges=held.edges, tags=held.tags)
