"""S2-11 above the graph, on both stores: every verb with everything of another memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from pps.core.errors import PPSError, UnknownEntity
from pps.core.ids import EntityId
from pps.operations.calls import Caller
from pps.operations.catalog import operations_for
from tests.isolation.house import House, One, everything, outcome

pytestmark = pytest.mark.timeout(300)

ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "ambient_recall": [{"context": "{mark}"}, {"context": "", "mode": "startup"}],
    "recall": [
        {"query": "{mark}"},
        {"query": "Ana coffee", "center": "{node}", "profile": "nodes"},
        {"query": "Ana", "channels": "auto"},
    ],
    "why": [{"query": "{mark}", "expect": "{fact}"}, {"query": "coffee", "expect": "{node}"}],
    "remember": [
        {
            "content": "A look.",
            "facts": [
                {"subject": "Ana", "relation": "IS", "object": "x", "invalidates": ["{fact}"]}
            ],
        },
    ],
    "timeline": [{"id": "{node}"}, {"id": "Ana"}, {"cursor": ":{fact}"}],
    "get": [
        {"ids": ["{turn}"]},
        {"ids": ["{fact}", "{node}"]},
        {"ids": ["{turn}", "{fact}"], "cursor": "1.0.000000000000"},
    ],
    "forget": [
        {"ids": ["{turn}"]},
        {"ids": ["{fact}"], "dry_run": False},
        {"ids": ["{slug}"], "dry_run": False},
        {"ids": ["{binned}"], "dry_run": False},
        {"ids": ["{node}"], "along": ["turns", "facts", "nodes", "anchors", "copies"]},
        {"ids": ["Coffee"], "along": ["turns", "facts", "nodes", "anchors", "copies"]},
        {"ids": ["{mark}"], "along": ["turns"]},
    ],
    "fact_correct": [
        {"id": "{fact}", "verdict": "never_true"},
        {"id": "{fact}", "verdict": "no_longer_true", "object": "{mark}"},
        {"id": "{node}", "verdict": "never_true", "object": "x", "text": "x"},
    ],
    "edits": [{}, {"limit": 200}, {"limit": 1}],
    "undo": [
        *({"id": one} for one in ("{turn}", "{binned}", "{fact}", "{slug}@2", "{edited}@2")),
        {"id": "{turn}@2"},
        {"id": "{corrected}"},
    ],
    "forgotten": [{}, {"id": "{binned}"}, {"id": "{turn}"}],
    "restore_forgotten": [{"id": "{binned}"}, {"id": "{turn}"}],
    "forget_concept": [
        {"id": "{binned}", "soft_delete": False},
        {"id": "{node}"},
        {"id": "{turn}", "soft_delete": False},
    ],
    "search_graph": [{"query": "{mark}"}, {"query": "Ana coffee", "strategy": "pipeline"}],
    "search_causes": [{"query": "{mark}", "direction": "effect"}],
    "search_connections": [{"query": "Ana"}, {"query": "{mark}"}],
    "search_by_intent": [{"query": "{mark}"}],
    "store_memory": [{"content": "Mine.", "rationale": "Mine."}],
    "get_topic_portfolio": [{"format": "verbose"}, {"format": "brief"}],
    "get_topic_stability": [{}],
    "detect_topics": [{"force": True}],
    "get_perspectives": [{}],
    "calibrate_perspectives": [{"reset": True}],
    "get_divergence_alerts": [{}, {"session": "s", "lookback_hours": 48}],
    "trigger_consolidation": [
        {"min_similarity": 0.0},
        {"strategy": "temporal", "min_similarity": 0.0},
    ],
    "trigger_dream": [{}, {"dry_run": True}],
    "inject_context": [{"query": "{mark}", "session": "s"}],
    "merge_concepts": [
        {
            "source_ids": ["{node}", "{fact}"],
            "target_name": "Ana",
            "rationale": "One.",
            "dry_run": False,
        }
    ],
    "anchor_save": [{"title": "Kitchen", "text": "Mine.", "slug": "mine"}],
    "anchor_search": [{"query": "{mark}"}, {"query": "coffee"}],
    "anchor_list": [{}],
    "anchor_delete": [{"slug": "{slug}"}],
    "anchor_get": [{"slug": "{slug}"}, {"slug": "{slug}", "cursor": "0.0.000000000000"}],
    "anchor_history": [{"slug": "{slug}"}, {"slug": "{edited}"}],
    "anchor_revert": [{"slug": "{slug}", "version": 1}, {"slug": "{edited}", "version": 1}],
    "anchor_resync": [{}],
    "stats": [{}],
    "overview": [{}],
    "record_search": [{"query": "{mark}"}, {"query": "coffee", "anchor_node_id": "{node}"}],
    "index_status": [{}],
    "drift": [{}, {"priorities": ["P2"]}],
    "health": [{}],
    "add_event": [
        {
            "content": "Mine, see [[{node}]] and [[Kitchen]].",
            "parent_node_id": "{node}",
            "source_ref": "secret",
        },
        {"content": "Mine too.", "title": "Coffee", "parent_node_id": "Ana"},
    ],
    "update": [
        {"id": "{turn}", "content": "Mine."},
        {"id": "{node}", "title": "Mine"},
        {"id": "{fact}", "tags": []},
    ],
    "append": [{"id": "{turn}", "content": "Mine."}, {"id": "{node}", "content": "Mine."}],
    "history": [
        {"id": "{turn}", "with_content": True},
        {"id": "{node}"},
        {"id": "{turn}", "with_content": True, "cursor": "1.0"},
    ],
    "record_save": [
        {"records": [{"id": "{record}", "summary": "Mine."}]},
        {
            "records": [
                {"kind": "Goal", "title": "Mine", "summary": "Mine.", "cites": [cited]}
                for cited in ["{fact}"]
            ]
        },
        {
            "records": [
                {
                    "kind": "Goal",
                    "title": "Mine",
                    "summary": "Mine.",
                    "cites": ["{record}", "{turn}"],
                }
            ]
        },
        {
            "records": [
                {
                    "kind": "Task",
                    "title": "Mine",
                    "summary": "Mine.",
                    "relations": [{"type": "SERVES", "target": "{record}"}],
                }
            ]
        },
        {
            "records": [
                {
                    "kind": "Note",
                    "title": "{record}",
                    "summary": "Mine.",
                    "fields": {"actor": "{record}"},
                }
            ]
        },
    ],
    "record_get": [
        {"ids": ["{record}"]},
        {"ids": ["{node}", "{turn}"]},
        {"ids": ["{record}", "{record}"], "cursor": "1"},
    ],
    "record_list": [
        {"include_relationships": True},
        {"kinds": ["manual"], "where": [{"field": "place", "op": "=", "value": "{node}"}]},
        {"where": [{"field": "title", "op": "=", "value": "{record}"}], "cursor": "1:{record}"},
    ],
    "record_move": [
        {"id": "{record}", "to": "done"},
        {"id": "{record}", "to": "done", "expected": "{record}"},
    ],
    "record_delete": [{"ids": ["{record}"], "dry_run": False}, {"ids": ["{node}", "{turn}"]}],
    "record_relate": [
        {"source": "{record}", "type": "SERVES", "target": "Drink less coffee"},
        {"source": "Buy tea", "type": "SERVES", "target": "{record}"},
    ],
    "record_unrelate": [{"ids": ["{relation}"]}, {"ids": ["{fact}"]}],
    "costs": [{}, {"days": 3660}],
    "injected": [{}, {"days": 30}, {"session": "morning"}],
    "session_context": [{}, {"session": "morning"}],
    "workload_assess": [
        {"include_task_details": True},
        {"start_date": "2026-03-01", "end_date": "2026-04-01"},
    ],
    "context_usage": [{"session": "morning"}, {"session": "{turn}"}],
    "find_duplicates": [{}],
    "schema_inventory": [{}],
    "graph_around": [
        {},
        {"as_of": "2030-01-01"},
        {"id": "{node}", "max_hops": 4},
        {"id": "{node}", "cursor": "1"},
        {"max_hops": 4, "cursor": "1", "limit": 999},
    ],
    "nodes_list": [
        {},
        {"kind": "Person"},
        {"query": "{mark}"},
        {"cursor": "{node}"},
        {"cursor": "{record}", "limit": 500},
    ],
    "changes": [
        {"since": "2000-01-01", "until": "2100-01-01", **about} for about in ({}, {"id": "{node}"})
    ],
    "fact_histogram": [{}, {"bins": 3}],
    "graph_rank": [
        {"algorithm": "pagerank"},
        {"algorithm": "communities"},
        {"algorithm": "betweenness"},
        {"algorithm": "shortest_path", "source": "{node}", "target": "{turn}"},
    ],
    "record_ask": [
        {},
        {"query": "expand", "parameters": {"id": "{node}"}},
        {"query": "bridge", "parameters": {"id": "{node}", "target": "{turn}"}},
        {"query": "evolution", "parameters": {"id": "{turn}"}},
        {"query": "analogy", "parameters": {"id": "{node}"}},
        {"query": "contradictions"},
        {"query": "drift_alerts"},
    ],
    "graph_all": [{}, {"limit": 1000}, {"cursor": "nodes:{node}"}, {"cursor": "facts:{fact}"}],
    "merge_nodes": [
        {"keep": "{node}", "drop": "{fact}", "dry_run": False},
        {"keep": "{turn}", "drop": "{node}"},
    ],
    "undo_merge": [{"id": "{node}"}],
    "job_status": [{"id": "{turn}"}, {"id": "1"}, {"id": "999999"}],
    "ingestion_stats": [{}],
    "last_proof": [{}],
    "turns_list": [
        {},
        {"session": "morning"},
        {"session": "{turn}"},
        {"cursor": "1772872200000000.{turn}"},
        {"query": "{mark}"},
        {"near": "{turn}"},
        {"near": "{node}"},
        {"about": "{node}"},
        {"about": "{mark}"},
    ],
    "jobs_list": [{}, {"state": "done"}],
    "jobs_retry": [{"ids": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, {"all": True}],
    "extract": [{}, {"dry_run": True}],
}


def filled(value: Any, other: One) -> Any:
    if isinstance(value, dict):
        return {key: filled(item, other) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [filled(item, other) for item in cast("list[Any]", value)]
    if isinstance(value, str):
        named = {
            "record": other.record,
            "relation": other.relation,
            "node": other.node,
            "slug": other.slug,
        }
        named |= {"binned": other.binned, "edited": other.edited, "corrected": other.corrected}
        return value.format(mark=other.mark, turn=other.turn, fact=other.fact, **named)
    return value


async def test_every_verb_of_every_surface_is_attacked_here() -> None:
    assert set(ARGUMENTS) == set(operations_for("entity"))


def without_own_words(error: str, arguments: Mapping[str, object]) -> str:
    """Return an error without the ids that the caller gave: it names what was asked for, and no more."""
    for value in arguments.values():
        for text in cast("list[object]", value) if isinstance(value, list) else [value]:
            error = error.replace(repr(text), "")
    return error


async def test_a_verb_with_everything_of_another_shows_and_changes_nothing_of_it(
    house: House,
) -> None:
    one, other, _ = house.all
    before = await everything(other)
    for verb, attacks in ARGUMENTS.items():
        for arguments in attacks:
            given = filled(arguments, other)
            for owner in (one.memory.entity, one.memory.entity.name):
                answer = await outcome(house.calls.answer(Caller.of_entity(owner), verb, given))
                asked = "query" in arguments or "context" in arguments
                said = str(answer).replace(other.mark, "") if asked else answer
                if isinstance(answer, str) and answer.startswith("NotFound: "):
                    said = without_own_words(answer, given)
                known = (
                    other.binned,
                    other.turn,
                    other.fact,
                    other.node,
                    other.record,
                    other.relation,
                    other.corrected,
                )
                assert house.seen(one, said, *known) == [], (verb, arguments)
        assert await everything(other) == before, verb


async def test_no_verb_takes_an_entity_or_a_group() -> None:
    for verb in operations_for("entity").values():
        fields = set(verb.input.model_fields)
        assert not fields & {
            "entity",
            "group",
            "group_id",
            "group_ids",
            "name",
            "vault",
            "project",
        }, verb.name


@pytest.mark.beside_the_graph
async def test_an_unknown_entity_is_nobody(house: House) -> None:
    for name in ("nobody", "ana_", "ana2", "ana_22"):
        with pytest.raises(UnknownEntity):
            await house.calls.answer(Caller.of_entity(name), "stats", {})
    stranger = EntityId("ana", house.all[1].memory.entity.group)
    with pytest.raises(PPSError):
        await house.calls.answer(Caller.of_entity(stranger), "stats", {})
