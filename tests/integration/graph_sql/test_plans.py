"""SQLite's plans of the statements that are asked most: by index, without statistics, on an empty file as on a full one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pps.core.ids import new_group
from pps.core.reports import timeline_cursor
from pps.store.graphiti_reads import GraphitiReads
from pps.store.sql_graph import SqlGraphStore
from pps.store.sql_session import SqlSession
from tests.graph_file import open_graph_file
from tests.integration.graph_items import DAY, T0, a_fact, an_episode, new_id, two_nodes


class Plans:
    """The plans of every statement that ran since they were last taken."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def taken(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Plans:
    run, found = vars(SqlSession)["_execute"], Plans()

    def explained(session: SqlSession, statement: str, values: Any) -> Any:
        if statement.startswith("SELECT"):
            rows = run(session, f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            found.lines += [row[3] for row in rows]
        return run(session, statement, values)

    monkeypatch.setattr(SqlSession, "_execute", explained)
    return found


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlGraphStore]:
    file = await open_graph_file(tmp_path / "graph.db", new_group())
    yield SqlGraphStore(file)
    await file.close()


async def test_reads_go_by_index(store: SqlGraphStore, plans: Plans) -> None:
    ana, ben = await two_nodes(store)
    episode = an_episode()
    fact = a_fact(ana, ben, valid_at=T0, episodes=(episode.uuid,))
    await store.save_episodes([episode])
    await store.save_facts([fact], {})
    await store.save_mentions([(episode.uuid, ana.uuid)])
    reads = GraphitiReads(store._file)  # noqa: SLF001 - the file under the store
    plans.taken()
    asked = {
        "nodes": store.nodes([ana.uuid, new_id()]),
        "facts": store.facts([fact.uuid]),
        "episodes": store.episodes([episode.uuid]),
        "facts of nodes": store.facts_of_nodes([ana.uuid], 10),
        "facts of episodes": store.facts_of_episodes([episode.uuid]),
        "facts between": store.facts_between([(ana.uuid, ben.uuid)]),
        "mentions": store.mentioned_nodes([episode.uuid]),
        "distances": store.distances(ana.uuid, 2),
        "timeline": store.timeline(),
        "timeline, next page": store.timeline(cursor=timeline_cursor(fact.valid_at, fact.uuid)),
        "timeline of a node": store.timeline(node=ana.uuid),
        "timeline of a span": store.timeline(after=T0 - DAY, before=T0 + DAY),
        "scan of facts": store.scan_facts(fact.uuid, 10),
        "nodes by name": reads.nodes_named(["Ana"]),
        "latest episodes": reads.latest_episodes(T0 + timedelta(days=1), 3),
        "episodes of nodes": reads.episodes_of_nodes([ana.uuid]),
    }
    for name, read in asked.items():
        await read
        whole = [
            line
            for line in plans.taken()
            if line.startswith("SCAN")
            and not line.startswith(
                ("SCAN json_each", "SCAN (subquery", "SCAN stating", "SCAN CONSTANT")
            )
            and "USING" not in line
        ]
        assert whole == [], name


async def test_a_page_of_the_timeline_is_read_in_the_order_of_its_index(
    store: SqlGraphStore, plans: Plans
) -> None:
    for options in ({}, {"as_of": T0}, {"relation": "KNOWS"}, {"after": T0}):
        await store.timeline(**options)  # type: ignore[arg-type]
        first, *_ = plans.taken()
        assert "fact_by_time" in first
        assert not any("ORDER BY" in line for line in (first,)), "no sort"
