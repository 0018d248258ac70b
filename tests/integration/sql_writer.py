"""A process that saves and deletes in SQL tables until it is killed, and says on stdout what is acknowledged.

Run as ``python -m tests.integration.sql_writer PATH GROUP``. Each transaction writes an episode, two nodes, the fact that
joins them, its vector and two mentions; every third deletes all of an older one.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path

from pps.core.values import Episode, Fact, Node
from pps.graph.mapping import mention_id
from pps.store.graph_rows import StoredEpisode, StoredFact, StoredNode
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import delete, put_episodes, put_facts, put_mentions, put_nodes
from pps.store.sql_session import SqlSession
from tests.graph_file import open_graph_file

_AT = datetime(2026, 1, 1, tzinfo=UTC)


class Written:
    """What one transaction writes."""

    def __init__(self, group: str) -> None:
        self.nodes = [Node(str(uuid.uuid4()), "n" * 200, _AT) for _ in range(2)]
        self.episode = Episode(str(uuid.uuid4()), "turn", "e" * 500, _AT, _AT)
        ends = [node.uuid for node in self.nodes]
        self.fact = Fact(
            str(uuid.uuid4()), *ends, "KNOWS", "f" * 300, _AT, episodes=(self.episode.uuid,)
        )
        self.mentions = [
            (self.episode.uuid, end, mention_id(group, self.episode.uuid, end), _AT) for end in ends
        ]

    def save(self, session: SqlSession) -> None:
        put_episodes(session, [StoredEpisode(self.episode, "message")])
        put_nodes(session, [StoredNode.of(node, {}) for node in self.nodes])
        put_facts(session, [StoredFact(self.fact)])
        put_mentions(session, self.mentions)

    def take_away(self, session: SqlSession) -> None:
        delete(session, "node", [node.uuid for node in self.nodes])
        delete(session, "episode", [self.episode.uuid])


async def write_for_ever(file: GraphTables) -> None:
    kept: list[Written] = []
    number = 0
    while True:
        number += 1
        written = Written(file.group)
        await file.write(written.save)
        kept.append(written)
        _say("+", written.fact)
        if number % 3 == 0:
            older = kept.pop(0)
            _say("?", older.fact)  # it may be gone from here on
            await file.write(older.take_away, secure=True)
            _say("-", older.fact)


def _say(what: str, fact: Fact) -> None:
    sys.stdout.write(f"{what}{fact.uuid}\n")
    sys.stdout.flush()


async def _main() -> None:
    await write_for_ever(await open_graph_file(Path(sys.argv[1]), sys.argv[2]))


if __name__ == "__main__":
    asyncio.run(_main())
