"""A process is killed at each step of a deletion: the next start finishes it, and nothing of the entity is found.

Nowhere in the data folder, by name or content, on Neo4j in no property of any node or relationship, and in no row of
PostgreSQL. The long form kills at every step, archived and not.
"""

from __future__ import annotations

import signal
from functools import partial

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import StoreError, UnknownEntity
from tests.acceptance.killed_deletions import MARK, NAME, STEPS, killed_at, steps, told
from tests.acceptance.killed_steps import process
from tests.erasing import left_in
from tests.on_neo4j import anything_of
from tests.postgresql_server import PostgresqlServer
from tests.sampling import sample
from tests.waiting import settle_until


def chosen(store: str) -> list[tuple[int, bool]]:
    every = [(number, archived) for number in steps(store) for archived in (False, True)]
    every = [one for one in every if one != (0, True)]  # an archived one is closed already
    return sample(every, 2, store)


@pytest.mark.timeout(900)
async def test_a_kill_at_any_step_of_a_deletion_leaves_nothing_once_the_next_start_is_through(
    settings: Settings, request: pytest.FixtureRequest
) -> None:
    for number, archived in chosen(settings.store):
        child = process(killed_at, settings, archived, number)
        child.join(60)
        assert child.exitcode == -signal.SIGKILL, f"{STEPS[number][1]}: was not reached"
        async with App.open(settings) as app:
            if number < 2:  # nothing was noted yet, so nothing was changed
                assert app.registry.get(NAME).archived == archived
                await app.delete(NAME)
            with pytest.raises(UnknownEntity):
                await app.delete(NAME)
            assert app.registry.deletions.pending() == []
            assert left_in(settings.home, (MARK, NAME)) == []
            await settle_until(partial(is_unpublished, app))
            await none_on_neo4j(settings)
            await none_in_database(settings, request)
            assert (await app.create(NAME)).is_new
            await app.delete(NAME)


async def is_unpublished(app: App) -> bool:
    """What is published goes last, beside everything else: the registry has noted its group alone."""
    return await app.unpublished_graphs() == (0, "")


async def none_on_neo4j(settings: Settings) -> None:
    if settings.store == "neo4j":
        assert await anything_of(settings, MARK) == []


async def none_in_database(settings: Settings, request: pytest.FixtureRequest) -> None:
    if settings.store == "postgresql":
        server: PostgresqlServer = request.getfixturevalue("postgresql_server")
        assert await server.rows_with(MARK) == []


@pytest.mark.parametrize("archived", [False, True])
async def test_a_deletion_stops_the_work_first_and_leaves_nothing_archived_or_not(
    settings: Settings, archived: bool, request: pytest.FixtureRequest
) -> None:
    async with App.open(settings) as app:
        await told(app)
        group = app.registry.get(NAME).entity.group
        if archived:
            await app.archive(NAME)
        gone = await app.delete(NAME)
        assert gone.entity.group == group
        assert left_in(settings.home, (MARK, NAME, group)) == []
        await none_on_neo4j(settings)
        await none_in_database(settings, request)


async def test_what_cannot_be_erased_is_said_and_the_next_deletion_goes_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App.open(settings) as app:
        await told(app)
        with monkeypatch.context() as broken:
            broken.setattr("pps.entities.deletions.shutil.rmtree", refused)
            with pytest.raises(StoreError, match=r"begun and not finished.*could not be erased"):
                await app.delete(NAME)
            with pytest.raises(StoreError, match="begun and not finished"):
                await app.create(NAME)
            assert list(await app.resume_pending()) == [NAME]
        await app.delete(NAME)
        assert left_in(settings.home, (MARK, NAME)) == []


def refused(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")
