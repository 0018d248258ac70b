"""The file of SQL tables: private, whole after a close, empty of what was deleted, and an error where it is damaged."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from pps.core.errors import StoreError, StoreUnavailable
from pps.core.ids import new_group
from pps.core.values import GraphCounts
from pps.store.graph_rows import StoredEpisode, StoredFact, StoredNode
from pps.store.sql_graph import SqlGraphStore, put_episodes, put_facts, put_nodes
from pps.store.sql_session import SqlSession
from tests.graph_file import open_graph_file
from tests.integration.graph_items import T0, a_fact, a_node, an_episode, two_nodes, vector
from tests.waiting import PATIENCE_S

CANARY = "kanarienvogel"


def bytes_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_a_file_is_the_owners_alone_and_has_no_log_when_it_is_closed(tmp_path: Path) -> None:
    file = await open_graph_file(tmp_path / "graph.db", new_group())
    await two_nodes(SqlGraphStore(file))
    modes = {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()}  # noqa: ASYNC240
    await file.close()
    await file.close()
    assert modes == {0o600}
    assert [one.name for one in tmp_path.iterdir()] == ["graph.db"]  # noqa: ASYNC240
    with pytest.raises(StoreUnavailable, match="closed"):
        await SqlGraphStore(file).counts()


async def test_nothing_of_what_was_deleted_stays_in_the_file_or_its_log(tmp_path: Path) -> None:
    file = await open_graph_file(tmp_path / "graph.db", new_group())
    store = SqlGraphStore(file)
    others = [a_node(f"stays {number} " * 20) for number in range(400)]
    await store.save_nodes(others[:200], {})
    node = a_node(CANARY, summary=CANARY, aliases=(CANARY,), attributes={CANARY: CANARY})
    episode = an_episode(f"{CANARY} " * 200, description=CANARY)
    fact = a_fact(node, others[0], f"{CANARY} sings", episodes=(episode.uuid,))
    await store.save_nodes([node], {node.uuid: vector(1)})
    await store.save_episodes([episode])
    await store.save_facts([fact], {fact.uuid: vector(2)})
    await store.save_mentions([(episode.uuid, node.uuid)])
    for turn in range(20):  # rows move between pages, and leave copies
        grown = replace(node, summary=f"{CANARY} {turn} " * (turn * 20 + 1))
        await store.save_nodes([grown, *others[200 + turn * 10 : 210 + turn * 10]], {})
    assert CANARY.encode() in bytes_in(tmp_path)
    assert await store.delete_nodes([node.uuid]) == 1
    assert await store.delete_episodes([episode.uuid]) == 1
    assert await store.counts() == GraphCounts(400, 0, 0, 0)
    await file.close()
    for trace in (CANARY, node.uuid, episode.uuid, fact.uuid):
        assert trace.encode() not in bytes_in(tmp_path), trace


async def test_clearing_leaves_no_word(tmp_path: Path) -> None:
    file = await open_graph_file(tmp_path / "graph.db", new_group())
    store = SqlGraphStore(file)
    await store.save_nodes([a_node(f"{CANARY} {number}") for number in range(500)], {})
    await store.clear()
    await file.close()
    assert CANARY.encode() not in bytes_in(tmp_path)


async def test_an_acknowledged_write_is_in_the_file_system_before_the_call_returns(
    tmp_path: Path,
) -> None:
    """Copied as it lies, log and all, as after a loss of power: what was acknowledged is in the copy."""
    group = new_group()
    (tmp_path / "there").mkdir()
    (tmp_path / "copy").mkdir()
    file = await open_graph_file(tmp_path / "there" / "graph.db", group)
    ana, ben = await two_nodes(SqlGraphStore(file))
    for one in ("graph.db", "graph.db-wal"):
        (tmp_path / "copy" / one).write_bytes((tmp_path / "there" / one).read_bytes())
    await file.close()
    copy = await open_graph_file(tmp_path / "copy" / "graph.db", group)
    assert await SqlGraphStore(copy).nodes([ana.uuid, ben.uuid]) == [ana, ben]
    await copy.close()
    with closing(sqlite3.connect(tmp_path / "copy" / "graph.db")) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_of_writes_at_once_a_bad_one_is_undone_alone(tmp_path: Path) -> None:
    file = await open_graph_file(tmp_path / "graph.db", new_group())
    store = SqlGraphStore(file)
    ana, ben = await two_nodes(store)
    good = [a_fact(ana, ben, str(number)) for number in range(20)]
    bad = a_fact(ana, a_node("nobody"))
    outcomes = await asyncio.gather(
        *(store.save_facts([fact], {}) for fact in good[:10]),
        store.save_facts([good[10], bad], {}),
        *(store.save_facts([fact], {}) for fact in good[11:]),
        return_exceptions=True,
    )
    assert [type(one).__name__ for one in outcomes if one] == ["NotFound"]
    assert (await store.counts()).facts == 19
    await file.close()


@pytest.mark.parametrize(
    ("column", "value"), [("tags", "no JSON"), ("tags", "{}"), ("attributes", "[]")]
)
async def test_a_damaged_value_is_an_error_that_names_what_mends_it(
    tmp_path: Path, column: str, value: str
) -> None:
    path, group = tmp_path / "graph.db", new_group()
    file = await open_graph_file(path, group)
    ana, _ = await two_nodes(SqlGraphStore(file))
    await file.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE node SET {column} = ?", (value,))  # noqa: S608 - a column's name
    file = await open_graph_file(path, group, "`pps rebuild ana` makes it anew")
    with pytest.raises(StoreError, match=r"damaged.*`pps rebuild ana`"):
        await SqlGraphStore(file).nodes([ana.uuid])
    await file.close()


async def test_a_support_of_an_absent_fact_is_counted_by_the_audit(tmp_path: Path) -> None:
    path, group = tmp_path / "graph.db", new_group()
    file = await open_graph_file(path, group)
    store = SqlGraphStore(file)
    ana, ben = await two_nodes(store)
    fact = a_fact(ana, ben)
    await store.save_facts([fact], {})
    assert await store.foreign_edges() == 0
    with closing(sqlite3.connect(path)) as db, db:  # another program: foreign keys are off
        db.execute(
            "INSERT INTO support (fact, place, grp, episode) VALUES (?, 0, ?, ?)",
            (str(uuid4()), group, str(uuid4())),
        )
    assert await store.foreign_edges() == 1
    await file.close()


async def test_what_graphiti_keeps_on_a_row_stays_when_pps_saves_it(tmp_path: Path) -> None:
    file = await open_graph_file(tmp_path / "graph.db", new_group())
    store = SqlGraphStore(file)
    ana, ben = await two_nodes(store)
    fact, episode = a_fact(ana, ben), an_episode()
    await store.save_facts([fact], {})
    await store.save_episodes([episode])
    with closing(sqlite3.connect(file.path)) as db, db:
        db.execute('UPDATE fact SET reference_time = 1, graphiti = \'{"mood": "good"}\'')
        db.execute("UPDATE episode SET metadata = '{\"a\": 1}'")
    await store.save_facts([replace(fact, text="new", valid_at=T0)], {})
    await store.save_episodes([replace(episode, content="new")])
    (stored,) = await store.stored_facts([fact.uuid])
    assert (stored.fact.text, stored.graphiti) == ("new", {"mood": "good"})
    assert stored.reference_time is not None
    (kept,) = await store.stored_episodes([episode.uuid])
    assert (kept.episode.content, kept.metadata) == ("new", '{"a": 1}')
    await file.close()


async def test_of_two_rows_with_one_id_in_a_bulk_the_last_counts(tmp_path: Path) -> None:
    """Graphiti's bulk may hold a thing twice."""
    file = await open_graph_file(tmp_path / "graph.db", new_group())
    store = SqlGraphStore(file)
    ana, ben = await two_nodes(store)
    episode = an_episode("first")
    fact = a_fact(ana, ben, "first", episodes=(episode.uuid,))

    def save(session: SqlSession) -> None:
        put_nodes(session, [StoredNode.of(replace(ana, name=name), {}) for name in "ab"])
        put_facts(session, [StoredFact(fact), StoredFact(replace(fact, text="last"))])
        put_episodes(
            session,
            [StoredEpisode(replace(episode, content=text), "text") for text in ("first", "last")],
        )

    await file.write(save)
    assert [node.name for node in await store.nodes([ana.uuid])] == ["b"]
    assert await store.facts([fact.uuid]) == [replace(fact, text="last")]
    assert [one.content for one in await store.episodes([episode.uuid])] == ["last"]
    await file.close()


async def test_who_looks_again_and_again_keeps_nobody_waiting(tmp_path: Path) -> None:
    file = await open_graph_file(tmp_path / "graph.db", new_group())
    store = SqlGraphStore(file)
    saved: asyncio.Task[object] = asyncio.create_task(two_nodes(store))
    async with asyncio.timeout(PATIENCE_S):
        while not await store.scan_nodes("", 1):
            pass
    await saved
    await file.close()
