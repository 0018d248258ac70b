from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pps.core.errors import InvalidRequest
from pps.core.recalled import Channel, Hit, Pack, Recall
from pps.core.reports import (
    AttemptReport,
    CostDay,
    CostReport,
    Duplicate,
    Forgotten,
    Health,
    IngestionStats,
    Injected,
    JobReport,
    Merge,
    MergePlan,
    Restorable,
    Restored,
    SessionInjected,
    Stats,
    TimelinePage,
)
from pps.core.values import AnchorPassage, Episode, EventReceipt, Fact, Node, Receipt, Skipped, Turn
from pps.features.topics.calibration import PerspectiveState, PerspectiveStates
from pps.features.topics.proposals import Dream, Pair, Proposals
from pps.features.topics.session_topics import Alert, Divergence
from pps.features.topics.topic_values import Portfolio, Stability, Topic
from pps.operations.anchor_tools import AnchorDeleted
from pps.operations.catalog import operations_for
from pps.operations.forgetting import forgotten_text
from pps.operations.item_views import item_view
from pps.operations.memory_tools import receipt_text, timeline_view
from pps.operations.recall_tools import hit_view, pack_view, recall_text, recall_view
from pps.operations.table import AnyOperation
from pps.operations.titled_texts import Duplicates, HistoryView, VersionView

OPERATIONS = operations_for("entity", "router", "runner")
AT = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
ID = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"
NODE = Node(
    ID,
    "Mira",
    AT,
    kind="Person",
    summary="Bakes.",
    aliases=("M",),
    attributes={"age": 41, "likes": ["rye"]},
)
FACT = Fact(ID, ID, ID, "BAKES", "Mira bakes\nrye bread.", AT, valid_at=AT, invalid_at=AT)
TURN = Turn(ID, 1, "user", "Rye it is.", "s1", AT, AT, actor="Mira")
EPISODE = Episode(ID, "talk", "Rye it is.", AT, AT)
STATE = PerspectiveState(
    "E1", "dense", "what means the same", "semantic", 1.0, 1.0, 0.7, 0.3, 0.0, "here", 2
)
STATES = PerspectiveStates("all-MiniLM-L6-v2", (STATE,), 40)
TOPIC = Topic(ID, "rye", ("rye", "oven"), ("Mira",), 3, 0.5, "stable", 30.0, (ID,), 0.0)
PAIR = Pair(ID, ID, "E1", 0.95, ("Rye it is.", "It is rye."), "says the same")
PASSAGE = AnchorPassage("bread", 0, "Bread", "Flour.", AT)
RECALL = Recall(
    "rye",
    "default",
    {
        "nodes": Channel("nodes", (Hit(ID, 0.5, "Mira: Bakes.", NODE),)),
        "facts": Channel(
            "facts",
            (Hit(ID, 0.25, FACT.text, FACT, ranks={"dense": 1}, names=("Mira", "rye")),),
            notes=("slow",),
        ),
        "turns": Channel("turns", (Hit(ID, 0.1, TURN.content, TURN),)),
        "episodes": Channel("episodes", (Hit(ID, 0.1, EPISODE.content, EPISODE),)),
        "anchors": Channel("anchors", (), error="the index cannot be read"),
    },
    {"total": 3.14159},
)


def _data(verb: AnyOperation, value: object) -> dict[str, Any]:
    """Return a value as the verb sends it, checked against the schema that the verb promises."""
    data = verb.shown(value).data
    validator: Any = Draft202012Validator(verb.output_schema())
    validator.validate(data)
    return json.loads(json.dumps(data))


SAMPLES: dict[str, object] = {
    "recall": recall_view(RECALL),
    "ambient_recall": pack_view(
        Pack("text", 3, "estimate", {"nodes": 1}, {"facts": 2}, "m", RECALL, 1.234)
    ),
    "remember": Receipt(ID, 7, "done", 1, 2, 3, ("a",), (Skipped("a fact", "its node is gone"),)),
    "timeline": timeline_view(TimelinePage((FACT,), {ID: "Mira"}, "next")),
    "get": tuple(item_view(item) for item in (NODE, FACT, TURN, EPISODE)),
    "forget": Forgotten(True, (ID,), (ID,), (ID,), (), ("bread",)),
    "forgotten": (Restorable(ID, ("Rye it is.",), AT, AT, "Mira", "moot", 1, 1, 2, 0),),
    "restore_forgotten": Restored(ID, (ID,), (ID,), (), ("bread",)),
    "search_graph": recall_view(RECALL),
    "search_causes": recall_view(RECALL),
    "search_connections": recall_view(RECALL),
    "search_by_intent": recall_view(RECALL),
    "store_memory": Receipt(ID, 7, "done", 1, 2, 3, (), ()),
    "get_topic_portfolio": Portfolio((TOPIC,), AT, 0.5, 0.8, consolidate=True),
    "detect_topics": Portfolio(()),
    "get_perspectives": STATES,
    "calibrate_perspectives": STATES,
    "get_topic_stability": Stability(6, 2, 1, {"stable": 1}, consolidate=False, at=AT, churn=0.5),
    "get_divergence_alerts": Divergence((Alert("E1", "high", 0.05, 0.3, ID, "Rye it is."),), 4, 1),
    "trigger_consolidation": Proposals((PAIR,), 2, more=True),
    "trigger_dream": Dream(2, (PAIR,), (PAIR,), 1),
    "inject_context": pack_view(Pack("text", 3, "estimate", {"topics": 1}, {}, "m", RECALL, 1.234)),
    "merge_concepts": (MergePlan("", ID, ID, "Sam", "Person", ("Samuel",), (), 2, 1, True),),
    "forget_concept": Forgotten(False, (ID,), restorable_as=ID, restorable_until=AT),
    "anchor_search": (hit_view(Hit("bread#0", 0.5, "Flour.", PASSAGE)),),
    "anchor_list": (),
    "anchor_delete": AnchorDeleted("bread"),
    "stats": Stats("mira", "embedded", 1, 2, 3, 4, 6, 7, 8, {"facts": 1}, {"facts": 1}, "{}"),
    "add_event": EventReceipt(
        ID, "Rye", 1, ("bread",), 1.5, (Skipped("[[Oven]]", "not yet"),), ID, 7, "done", 2
    ),
    "history": HistoryView(
        ID, (VersionView(2, "modified", AT, ("a",), "Rye", "Mira", "-a\n+b", "b"),)
    ),
    "costs": CostReport(
        (CostDay(AT.date(), "m", 1, 2, 1, 3, 4, 0.5), CostDay(AT.date(), "", 1, 2, 0, 3, 4)),
        7,
        5,
        AT,
    ),
    "injected": Injected(7, 1, 4, 3, 210, (SessionInjected("s", 4, 3, 210, AT),), 0.75, 210.0),
    "find_duplicates": Duplicates(
        (Duplicate(ID, "Sam", "Person", ID, "sam", "Thing", "the same name"),),
        (Merge(ID, ID, "Sam", ID, "Samuel", AT, "applied"),),
    ),
    "merge_nodes": MergePlan("", ID, ID, "Sam", "Person", ("Samuel",), (), 2, 1, True),
    "undo_merge": Merge(ID, ID, "Sam", ID, "Samuel", AT, "undone"),
    "job_status": JobReport(
        3,
        ID,
        "failed",
        "save",
        "Rye it is.",
        2,
        1,
        "store",
        "refused",
        0,
        0,
        AT,
        tried=(AttemptReport("save", "failed", AT, AT, "store", "refused", 10, 2, 0.001),),
    ),
    "ingestion_stats": IngestionStats(
        1, 1, 5, 1, 0, 2, 3.0, 2.0, 600, 7, 1, 10, 2, 0.1, 100, 6, 1, ("the store failed",)
    ),
    "health": Health(False, ("the model is away; start it",), ("no embedder",)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_answer_keeps_its_promised_schema_and_reads_as_text(name: str) -> None:
    data = _data(OPERATIONS[name], SAMPLES[name])
    assert data
    text = OPERATIONS[name].shown(SAMPLES[name]).text
    assert text.strip()
    assert "None" not in text


def test_what_does_not_apply_is_left_out() -> None:
    data = _data(OPERATIONS["recall"], SAMPLES["recall"])
    node, fact = (data["channels"][name]["hits"][0] for name in ("nodes", "facts"))
    assert "valid_at" not in node
    assert fact["valid_at"] == "2026-01-05T08:30:00Z"
    assert fact["between"] == ["Mira", "rye"]
    assert data["channels"]["anchors"] == {
        "hits": [],
        "error": "the index cannot be read",
        "notes": [],
    }
    assert data["took_ms"] == {"total": 3.14}


def test_each_list_says_how_much_it_holds_and_one_that_failed_does_not() -> None:
    channels = _data(OPERATIONS["recall"], SAMPLES["recall"])["channels"]
    assert channels["facts"]["stats"] == {
        "total_results": 1,
        "avg_score": 0.25,
        "token_estimate": 6,
    }
    assert "stats" not in channels["anchors"]
    empty = recall_view(Recall("x", "default", {"facts": Channel("facts")}))
    assert _data(OPERATIONS["recall"], empty)["channels"]["facts"]["stats"] == {
        "total_results": 0,
        "avg_score": None,
        "token_estimate": 0,
    }


def test_the_mean_score_is_read_where_scores_are_sums_of_signals() -> None:
    hits = tuple(
        Hit(ID, score, "Mira: Bakes.", NODE, signals={"dense": score}) for score in (0.9, 0.8)
    )
    text = recall_text(recall_view(Recall("rye", "semantic", {"nodes": Channel("nodes", hits)})))
    assert text.splitlines()[0] == "nodes (2 results, average score 0.850, about 7 tokens):"


def test_a_failed_channel_is_said_and_a_hit_is_one_line() -> None:
    text = recall_text(recall_view(RECALL))
    assert "anchors: could not be searched (the index cannot be read)" in text
    assert f"1. Mira bakes rye bread. (2026-01-05 to 2026-01-05) [{ID}]" in text
    assert "note: slow" in text
    assert f"Mira: Rye it is. (2026-01-05 08:30) [{ID}]" in text
    assert recall_text(recall_view(Recall("x", "default", {}))).startswith(
        "Nothing found. Keep a text with"
    )


def test_a_long_text_is_cut_on_its_line() -> None:
    long = Hit(ID, 1.0, "word " * 500, TURN)
    view = recall_view(Recall("x", "default", {"turns": Channel("turns", (long,))}))
    assert max(len(line) for line in recall_text(view).splitlines()) < 500


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("done", "Remembered."),
        ("accepted", "Safe on disk"),
        ("duplicate", "Known already"),
        ("failed", "journal"),
    ],
)
def test_a_receipt_says_what_became_of_the_text(state: Any, words: str) -> None:
    assert words in receipt_text(Receipt(ID, 1, state))


def test_what_would_be_forgotten_is_told_apart_from_what_was() -> None:
    assert "Nothing was changed" in forgotten_text(Forgotten(True, turns=(ID,)))
    assert forgotten_text(Forgotten(False, turns=(ID,), facts_kept=(ID,))) == (
        "Erased 1 turn for good. 1 fact kept: others support them."
    )
    assert forgotten_text(
        Forgotten(False, turns=(ID,), restorable_as=ID, restorable_until=AT)
    ).startswith("Forgot 1 turn.")


@pytest.mark.parametrize("verb", OPERATIONS.values(), ids=list(OPERATIONS))
def test_schemas_are_valid_and_describe_what_they_take(verb: AnyOperation) -> None:
    for schema in (verb.input_schema(), verb.output_schema()):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert verb.input_schema()["additionalProperties"] is False
    assert len(verb.description) > 30
    assert not {"entity", "group", "group_id"} & set(verb.input_schema().get("properties", {}))


def test_a_null_for_what_may_be_left_out_counts_as_left_out() -> None:
    given = OPERATIONS["recall"].parse(
        {"query": "x", "limit": None, "filters": None, "as_of": None}
    )
    assert given.limit is None
    fact = {"subject": "a", "relation": "R", "object": "b", "valid_at": None, "invalidates": None}
    assert (
        OPERATIONS["remember"]
        .parse({"content": "x", "facts": [fact], "tags": None})
        .facts[0]
        .invalidates
        == ()
    )
    with pytest.raises(InvalidRequest, match="query"):
        OPERATIONS["recall"].parse({"query": None})
    with pytest.raises(InvalidRequest, match="unknown argument"):
        OPERATIONS["recall"].parse({"query": "x", "entity": None})


def test_lists_and_times_are_taken_as_json_has_them() -> None:
    given = OPERATIONS["remember"].parse(
        {
            "content": "x",
            "occurred_at": "2026-01-05",
            "tags": ["a"],
            "nodes": [
                {
                    "name": "Mira",
                    "aliases": ["M"],
                    "attributes": {"age": 41, "likes": ["rye", None]},
                }
            ],
        }
    )
    assert given.occurred_at == datetime(2026, 1, 5, tzinfo=UTC)
    assert given.nodes[0].attributes == {"age": 41, "likes": ["rye", None]}
    assert OPERATIONS["recall"].parse({"query": "x", "channels": ["facts"]}).channels == ("facts",)
    assert OPERATIONS["recall"].parse({"query": "x", "channels": "auto"}).channels == ("auto",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": "x", "limit": "four"}, "limit"),
        ({"query": "x", "limit": True}, "limit"),
        ({"query": "x", "limit": 4.5}, "limit"),
        ({"query": 4}, "query"),
        ({"query": "x", "as_of": "2026-13-05T08:00:00"}, "as_of"),
        ({"query": "x", "as_of": "yesterday"}, "as_of: must be ISO 8601"),
        ({"query": "x", "channels": ["factz"]}, "channels"),
        ({"query": "x", "channels": ["facts", "auto"]}, "channels: 'auto' stands alone"),
        ({"query": "x", "filter": {}}, "filter: unknown argument, did you mean 'filters'"),
    ],
)
def test_what_cannot_be_read_as_the_schema_has_it_is_refused(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        OPERATIONS["recall"].parse(arguments)


def test_arguments_nested_without_end_are_refused() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        OPERATIONS["recall"].parse({"query": deep})


@pytest.mark.parametrize(
    ("verb", "needed", "defaults"),
    [
        ("ambient_recall", {"context"}, {"limit_per_layer": 12}),
        ("create_graph", {"project", "nodes"}, {"edges": []}),
        ("search_nodes", {"project", "query"}, {"limit": 10, "anchor_node_id": None}),
        ("get_graph", {"project", "node_id", "operation"}, {"target_node_id": None, "max_hops": 2}),
        ("list_vaults", set[str](), {}),
    ],
)
def test_a_tool_needs_what_was_promised_and_no_more(
    verb: str, needed: set[str], defaults: dict[str, Any]
) -> None:
    schema: dict[str, Any] = OPERATIONS[verb].input_schema()
    assert set(schema.get("required", [])) == needed
    assert {name: schema["properties"][name].get("default") for name in defaults} == defaults


@pytest.mark.parametrize(
    ("verb", "arguments", "said"),
    [
        (
            "record_unrelate",
            {"ids": ["kitchen"]},
            f"ids.0: must be an id as answers give it, such as {ID}",
        ),
        ("get", {"ids": []}, "ids: give at least 1"),
        (
            "recall",
            {"query": "x", "channels": ["factz"]},
            "channels.0: input should be 'nodes', 'facts', 'episodes', 'anchors', 'turns' or 'auto'",
        ),
    ],
)
def test_a_refusal_names_the_field_and_what_it_takes(
    verb: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        OPERATIONS[verb].parse(arguments)
    assert refused.value.message == said


def test_a_search_takes_the_names_that_a_list_has_for_the_same() -> None:
    found = operations_for("entity")["record_search"].parse(
        {"query": "x", "types": ["Goal"], "topK": 3}
    )
    assert (found.kinds, found.limit) == (("Goal",), 3)
