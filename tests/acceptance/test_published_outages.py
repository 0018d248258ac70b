"""Neo4j is killed, cut off and started again while a memory that publishes goes on; a home of an earlier PPS waits for it.

Turns, forgets and merges go on all the while, and the published graph ends with the same digest as the tables.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Neo4jSettings, Settings, load
from pps.core.errors import StoreUnavailable
from pps.core.values import FactDraft, NodeDraft
from pps.isolation.graph_digests import Digests, digests_of
from pps.isolation.neo4j import open_neo4j
from pps.isolation.publishing import Publisher
from pps.isolation.store_neo4j import Neo4jStore
from pps.memory import Memory
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import SqlGraphStore
from tests.neo4j_server import Neo4jServer, neo4j_script, start_neo4j
from tests.old_homes.making import FIXTURES, ON_NEO4J, environment, unpack
from tests.old_homes.neo4j_groups import delete_group, dump_group, load_group
from tests.sampling import sized
from tests.waiting import PATIENCE_S, settle_until, wait_until

pytestmark = [pytest.mark.neo4j, pytest.mark.timeout(900)]

TURNS = sized(240, 1_000)
PEOPLE = 100
"""More than the merges of the long form: a name that was merged stays a name of what it was merged into."""
HOME = "home_60bedfb"


class Gate:
    """A way to the server that can be closed: its connections break then, and new ones are refused."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._joined: set[asyncio.Task[None]] = set()
        self.port = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        await self.mend()
        try:
            yield
        finally:
            await self.cut()

    async def cut(self) -> None:
        """Break every connection and take no new one."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._joined:
            task.cancel()
        await asyncio.gather(*self._joined, return_exceptions=True)

    async def mend(self) -> None:
        """Take connections again, on the same port."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._joined.add(task)
        task.add_done_callback(self._joined.discard)
        writers = [writer]
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
            writers.append(server_writer)
            await asyncio.wait(
                [
                    asyncio.create_task(_copy(reader, server_writer)),
                    asyncio.create_task(_copy(server_reader, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        except OSError:
            pass  # the server is away: so is this
        finally:
            for one in writers:
                one.transport.abort()
            for one in writers:
                with suppress(OSError):
                    await one.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


def settings_of(server: Neo4jServer, home: Path, port: int = 0) -> Settings:
    at = Neo4jSettings(
        uri=f"bolt://127.0.0.1:{port or server.port}",
        user=server.user,
        password=server.password,
        database=server.database,
    )
    return Settings(home=home, embedder=EmbedderSettings(name="hash"), neo4j=at)


def publisher_of(memory: Memory) -> Publisher:
    publisher = memory.parts.indexer.publisher
    assert publisher is not None
    return publisher


async def on_server(server: Neo4jServer, group: str) -> dict[str, Digests]:
    pool = await open_neo4j(server.uri, server.user, server.password, server.database)
    try:
        return await digests_of(Neo4jStore(pool.driver(), group), vectors=True)
    finally:
        await pool.close()


async def in_tables(memory: Memory) -> dict[str, Digests]:
    tables = SqlGraphStore(GraphTables(memory.parts.journal, indexes=memory.parts.indexes))
    return await digests_of(tables, vectors=True)


async def work(memory: Memory, turns: int, chance: random.Random) -> None:
    """Tell a memory some turns; forget one now and then, and merge two nodes of it."""
    for number in range(turns):
        person, place = f"Person {chance.randrange(PEOPLE)}", f"Place {chance.randrange(40)}"
        text = f"{person} went to {place} on day {chance.randrange(10**6)}."
        told = await memory.remember(
            text,
            nodes=[NodeDraft(person, kind="Person"), NodeDraft(place, kind="Place")],
            facts=[FactDraft(person, "WENT_TO", place, text=text)],
        )
        if number % 11 == 10:
            await memory.forget([told.turn_id], dry_run=False)
        if number % 31 == 30:
            nodes = await memory.parts.client.scan_nodes("", 500)
            people = [node.uuid for node in nodes if node.name.startswith("Person ")]
            kept, gone = chance.sample(people, 2)
            await memory.records.merging.merge(kept, gone, dry_run=False)


async def test_what_is_published_catches_up_after_every_kind_of_outage(
    tmp_path: Path, neo4j_server: Neo4jServer
) -> None:
    """Killed, stopped, and cut off on the way; the memory waits for none of it."""
    server, chance = neo4j_server, random.Random(39)  # noqa: S311 - choices of a test
    share = TURNS // 4
    gate = Gate(server.port)
    async with gate.opened(), App.open(settings_of(server, tmp_path / "home", gate.port)) as app:
        await app.create("ana", store="neo4j")
        async with app.memory("ana") as memory:
            await work(memory, share, chance)
            try:
                working = asyncio.create_task(work(memory, share, chance))
                await asyncio.to_thread(_kill, server)
                await working
            finally:
                await asyncio.to_thread(
                    start_neo4j, server.data, port=server.port, password=server.password
                )
            await gate.cut()
            await work(memory, share, chance)
            state = await publisher_of(memory).state()
            assert state.behind is None or state.behind > 0
            await gate.mend()
            working = asyncio.create_task(work(memory, share, chance))
            await gate.cut()
            await gate.mend()
            await working
            assert await memory.settled(120)
            await publisher_of(memory).catch_up(300)
            expected = await in_tables(memory)
            assert expected["facts"]
            assert await on_server(server, memory.entity.group) == expected
            assert (await publisher_of(memory).state()).refused == {}
        await app.delete("ana")


def _kill(server: Neo4jServer) -> None:
    """Kill the server's process as a crash would."""
    status = neo4j_script("status", "--json", "--data", str(server.data))
    pid = json.loads(status.stdout)["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: (
            not json.loads(neo4j_script("status", "--json", "--data", str(server.data)).stdout)[
                "running"
            ]
        )
    )


async def test_what_is_published_no_more_is_removed_when_neo4j_is_back_after_a_restart(
    tmp_path: Path, neo4j_server: Neo4jServer
) -> None:
    server, home, groups = neo4j_server, tmp_path / "home", dict[str, str]()
    gate = Gate(server.port)
    async with gate.opened():
        settings = settings_of(server, home, gate.port)
        async with App.open(settings) as app:
            for name in ("stopped", "deleted"):
                await app.create(name)
                async with app.memory(name) as memory:
                    await memory.remember("Kim sails.", nodes=[NodeDraft("Kim"), NodeDraft("Boat")])
                await app.publish(name)
                async with app.memory(name) as memory:
                    await publisher_of(memory).catch_up(PATIENCE_S)
                    groups[name] = memory.entity.group
            await gate.cut()
            assert (await app.unpublish("stopped")).waits_for
            await app.delete("deleted")
            assert not (home / "entities" / "deleted").exists()
        for group in groups.values():
            assert any((await on_server(server, group)).values())
        async with App.open(settings) as app:  # it is away still
            assert (await app.unpublished_graphs())[0] == 2
            await gate.mend()

            async def removed() -> bool:
                return (await app.unpublished_graphs())[0] == 0

            await settle_until(removed)
            for group in groups.values():
                assert not any((await on_server(server, group)).values())
            async with app.memory("stopped") as memory:
                names = {node.name for node in await memory.parts.client.scan_nodes("", 10)}
                assert {"Kim", "Boat"} <= names


async def test_a_home_whose_graph_is_on_neo4j_alone_waits_for_it_and_changes_nothing_there(
    tmp_path: Path, neo4j_server: Neo4jServer
) -> None:
    home = unpack(HOME, tmp_path / "home")
    stored = json.loads((FIXTURES / HOME / "contents.json").read_text("utf-8"))
    group = stored["registry"]["entities"][ON_NEO4J]["group"]
    lines = (FIXTURES / HOME / "neo4j.jsonl").read_text().splitlines()
    gate = Gate(neo4j_server.port)
    async with gate.opened():
        settings = load(env=environment(home)).model_copy(
            update={"neo4j": settings_of(neo4j_server, home, gate.port).neo4j}
        )
        await gate.cut()
        async with App.open(settings) as app:
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="cannot be reached"):
                    async with app.memory(ON_NEO4J):
                        pytest.fail("it was opened without its graph")
            with pytest.raises(StoreUnavailable):
                await app.unpublish(ON_NEO4J)
        await load_group(neo4j_server, lines)
        try:
            before = await dump_group(neo4j_server, group)
            expected = await on_server(neo4j_server, group)
            await gate.mend()
            async with App.open(settings) as app, app.memory(ON_NEO4J) as memory:
                tables = await in_tables(memory)
                assert {uuid for kind in expected for uuid in expected[kind]} <= {
                    uuid for kind in tables for uuid in tables[kind]
                }
                await publisher_of(memory).catch_up(PATIENCE_S)
            after = await dump_group(neo4j_server, group)
            assert len(after) >= len(before)
        finally:
            await delete_group(neo4j_server, group)
