"""A process that writes one group's rows: ``names N`` makes turns and nodes by name, ``hang`` stays in a transaction."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

from pps.core.ids import new_group, stable_id
from pps.core.sql import Connection
from pps.core.time import now
from pps.core.values import Node
from pps.journal import turns
from pps.journal.entries import JobPayload, TurnDraft
from pps.journal.journal import Journal
from pps.journal.postgresql import Database
from pps.store.graph_rows import StoredNode
from pps.store.sql_graph import put_nodes
from pps.store.sql_session import SqlSession

NAMES = 40


def put_named(db: Connection, group: str, name: str) -> None:
    """Make a node of a name unless there is one: what two writers must not both do."""
    session = SqlSession(db, group)
    if not session.rows("SELECT 1 FROM node WHERE name = :name AND grp = :grp", name=name):
        time.sleep(0.002)
        node = Node(stable_id(new_group(), name), name, now())
        put_nodes(session, [StoredNode.of(node, {})])


async def write_names(journal: Journal, count: int) -> None:
    chance = random.Random(1)  # noqa: S311 - of a test
    numbers = list(range(count))
    for number in numbers:
        await journal.append(
            TurnDraft(f"turn {number}", source_ref=f"ref-{number}"), JobPayload(extraction="none")
        )
        name = f"name {number if number < NAMES else chance.randrange(NAMES)}"
        await journal.write(lambda db, name=name: put_named(db, journal.group, name))


async def hang(journal: Journal) -> None:
    def work(db: Connection) -> None:
        turns.insert(db, turns.prepare(journal.group, TurnDraft("never acknowledged")))
        sys.stdout.write("written\n")
        sys.stdout.flush()
        time.sleep(600)

    await journal.write(work)


async def main() -> None:
    group, what, *rest = sys.argv[1:]
    database = await asyncio.to_thread(Database.open, os.environ["URL"], os.environ["OWNER_URL"])
    journal = await Journal.open_in(database, Path("memory.db"), group)
    if what == "names":
        await write_names(journal, int(rest[0]))
    else:
        await hang(journal)
    await journal.close()
    await asyncio.to_thread(database.close)


if __name__ == "__main__":
    asyncio.run(main())
