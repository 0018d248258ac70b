"""A process is killed after each step of a save: record, relations, index and history agree once it is taken up.

Each round changes one record and makes another that is related to it, in a process that dies by SIGKILL. On each store.
"""

from __future__ import annotations

from pps.app import App
from pps.config import Settings
from pps.core.record_values import Condition, RecordQuery
from pps.core.values import Node
from pps.records.saving import RecordGiven
from tests.acceptance.killed_records import STEPS, killed_at
from tests.acceptance.killed_steps import killed, taken_up


async def test_a_kill_after_any_step_of_a_save_leaves_journal_graph_and_indexes_agreeing(
    settings: Settings,
) -> None:
    async with App.open(settings) as app:
        await app.create("ana", packs=["constitution"])
        async with app.memory("ana") as memory:
            goal = (
                (await memory.records.save([RecordGiven("Goal", "Run a marathon", "Finish it.")]))
                .records[0]
                .record
            )
    rounds = killed(STEPS, killed_at, settings)
    async with taken_up(settings) as memory:
        [now] = await memory.records.get([goal.id])
        assert (now.version, now.fields["target"]) == (len(rounds) + 1, f"Round {rounds[-1]}")
        assert [one.summary for one in await memory.records.versions(goal.id)][-1] == now.summary
        assert len(await memory.records.history(goal.id)) == len(rounds) + 1
        (kept,) = await memory.get([goal.id])
        assert isinstance(kept, Node)
        assert (kept.summary, kept.attributes["target"]) == (now.summary, now.fields["target"])
        graph = await memory.records.graph()
        assert {graph.records[one.source].title for one in graph.relations} == {
            f"Task {number}" for number in rounds
        }
        facts = await memory.parts.client.facts_of_nodes([goal.id], 100)
        assert {fact.uuid for fact in facts} == {one.id for one in graph.relations}
        assert await memory.parts.journal.records.pending(10) == []
        found = await memory.records.list(
            RecordQuery(where=(Condition("title", "=", "Run a marathon"),))
        )
        assert [one.id for one in found.records] == [goal.id]
