"""Ranks, named queries and the whole graph over records that were saved, on both stores; nothing of another entity."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest, NotFound
from pps.core.values import FactDraft
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.records.asks import QUERIES
from pps.records.finding import RecordSearch
from pps.records.ranks import RankRequest
from pps.records.saving import RecordGiven, RelationGiven

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Two:
    app: App
    ana: Memory
    ben: Memory


def saved(mark: str) -> list[RecordGiven]:
    """Return a value, a goal that it aligns with, a strategy, tasks and a decision; titles carry a mark."""
    aligned = RelationGiven("ALIGNS_WITH", f"Learning {mark}", {"weight": 0.8})
    serves = RelationGiven("SERVES", f"Thesis {mark}", {"weight": 0.9})
    return [
        RecordGiven("Value", f"Learning {mark}", "To know more each year."),
        RecordGiven("Goal", f"Thesis {mark}", "The thesis is handed in.", relations=(aligned,)),
        RecordGiven("Strategy", f"Mornings {mark}", "Write each morning.", relations=(serves,)),
        RecordGiven(
            "Task",
            f"Chapter {mark}",
            "Write chapter two.",
            fields={"due_date": "2026-03-03", "priority": "p1", "effort_hours": 4},
            relations=(RelationGiven("SERVES", f"Thesis {mark}"),),
        ),
        RecordGiven(
            "Decision", f"Desk {mark}", "Rent a desk by the river.", fields={"roi": {"total": 0.7}}
        ),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(module_settings: Settings) -> AsyncIterator[Two]:
    """Two memories with the same shapes; titles say whose they are."""
    settings = module_settings.model_copy(update={"embedder": EmbedderSettings(name="hash")})
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            await app.create(name, packs=["constitution"])
        await app.create("plain")
        async with app.memory("ana") as ana, app.memory("ben") as ben:
            for memory, mark in ((ana, "of Ana"), (ben, "of Ben")):
                await memory.records.save(saved(mark))
                fact = FactDraft(
                    "Ana", "LIVES_IN", f"Lisbon {mark}", text=f"She lives in Lisbon {mark}."
                )
                await memory.remember(f"She lives in Lisbon {mark}.", facts=[fact])
            yield Two(app, ana, ben)


async def ids(memory: Memory) -> dict[str, str]:
    return {one.title.split()[0]: one.id for one in (await memory.records.graph()).records.values()}


async def test_every_operation_answers_from_its_own_records_alone(two: Two) -> None:
    ana, ben = two.ana, two.ben
    calls, own, foreign = Calls(two.app), await ids(ana), await ids(ben)

    async def ask(operation: str, **arguments: Any) -> Any:
        answer = await calls.answer(Caller.of_entity("ana"), operation, arguments)
        assert "of Ben" not in answer.text
        assert not any(one in str(answer.data) for one in foreign.values())
        return answer.data

    ranked = await ask("graph_rank", algorithm="pagerank")
    assert (ranked["records"], ranked["relations"]) == (5, 3)
    assert ranked["ranked"][0]["id"] == own["Learning"]
    between = await ask("graph_rank", algorithm="betweenness")
    assert between["ranked"][0]["id"] == own["Thesis"]
    parts = await ask("graph_rank", algorithm="communities")
    assert sorted(part["size"] for part in parts["communities"]) == [1, 4]
    path = await ask(
        "graph_rank", algorithm="shortest_path", source=own["Chapter"], target="learning of ana"
    )
    assert [(one["relation"], one["id"]) for one in path["path"]] == [
        ("SERVES", own["Thesis"]),
        ("ALIGNS_WITH", own["Learning"]),
    ]
    assert path["length"] == 1 + 1 / 0.8

    listed = await ask("record_ask")
    assert [one["name"] for one in listed["queries"]] == [one.name for one in QUERIES]
    why = await ask("record_ask", query="why", parameters={"id": own["Chapter"]})
    assert [one["id"] for one in why["found"]] == [own["Learning"]]
    about = {"about": "Rent a desk by the river", "min_similarity": -1}
    near = await ask("record_ask", query="related_decisions", parameters=about)
    assert own["Desk"] in {one["id"] for one in near["found"]}
    for one in QUERIES:
        given = {name: own["Thesis"] for name in ("id", "target") if name in one.given.model_fields}
        about = {"about": "a desk"} if "about" in one.given.model_fields else {}
        await ask("record_ask", query=one.name, parameters=given | about)


async def test_a_foreign_record_is_an_absent_one_in_every_query(two: Two) -> None:
    ana, ben = two.ana, two.ben
    own, foreign = await ids(ana), await ids(ben)
    for theirs in (foreign["Thesis"], foreign["Thesis"][:8], "Thesis of Ben"):
        for one in QUERIES:
            named = [name for name in ("id", "target") if name in one.given.model_fields]
            for name in named:
                given = dict.fromkeys(named, own["Thesis"]) | {name: theirs}
                with pytest.raises(NotFound, match=rf"^{name} not found$"):
                    await ana.asks.ask(one.name, given)
    with pytest.raises(NotFound, match=r"^ids not found$"):
        await ana.asks.ask("metrics", {"ids": [foreign["Thesis"]]})


async def test_everything_is_read_page_by_page_each_once(two: Two) -> None:
    ana = two.ana
    for limit in (1, 3, 1_000):
        seen: list[str] = []
        cursor = ""
        while True:
            page = await ana.asks.page(cursor, limit)
            assert sum(map(len, (page.records, page.nodes, page.relations, page.facts))) <= limit
            seen += [one.title for one in page.records] + [one.name for one in page.nodes]
            seen += [one.type for one in page.relations] + [one.relation for one in page.facts]
            cursor = page.next_cursor
            if not cursor:
                break
        titles = [f"{one} of Ana" for one in ("Chapter", "Desk", "Learning", "Mornings", "Thesis")]
        expected = [*titles, "Ana", "Lisbon of Ana", "ALIGNS_WITH", "SERVES", "SERVES", "LIVES_IN"]
        assert sorted(seen) == sorted(expected)
    for wrong in ("cellar:", "nodes:' OR 1", "x"):
        with pytest.raises(InvalidRequest, match="cursor"):
            await ana.asks.page(wrong, 10)


async def test_a_write_is_seen_by_the_next_ranking_and_query(two: Two) -> None:
    ana = two.ana
    before = await ana.asks.rank(RankRequest("pagerank"))
    serves = RelationGiven("SERVES", "Thesis of Ana")
    await ana.records.save([RecordGiven("Task", "Figures", "Draw them.", relations=(serves,))])
    after = await ana.asks.rank(RankRequest("pagerank"))
    assert (after.records, after.relations) == (before.records + 1, before.relations + 1)
    assert [one.title for one in (await ana.asks.ask("why", {"id": "Figures"})).found] == [
        "Learning of Ana"
    ]


async def test_evolution_reads_the_versions_that_were_kept(two: Two) -> None:
    ana = two.ana
    await ana.records.by("discuss").save(
        [RecordGiven("Goal", "Thesis of Ana", fields={"deadline": "2026-06-30"})]
    )
    asked = await ana.asks.ask("evolution", {"id": "Thesis of Ana"})
    assert asked.total == 2
    assert "by discuss: deadline none → 2026-06-30" in asked.found[1].said


async def test_an_entity_without_the_kinds_is_told_so(two: Two) -> None:
    async with two.app.memory("plain") as memory:
        with pytest.raises(
            InvalidRequest, match="'goal_ladder' is about Goal; no pack of this memory has them"
        ):
            await memory.asks.ask("goal_ladder", {"id": "x"})
        assert (await memory.asks.page("", 10)).records == ()


async def test_what_a_session_begins_with_and_what_is_found_is_ones_own_alone(two: Two) -> None:
    foreign = (await ids(two.ben))["Thesis"]
    for _ in range(2):  # the second time it is kept
        said = str(await two.ana.layers.context("s"))
        assert "Learning of Ana" in said
        assert "of Ben" not in said
    found = await two.ana.finding.search(RecordSearch("Thesis of Ben", min_similarity=-1))
    assert found.results
    assert "of Ben" not in str(found)
    with pytest.raises(NotFound):
        await two.ana.finding.search(RecordSearch("Thesis", anchor_node_id=foreign))
