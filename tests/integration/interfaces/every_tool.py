"""Every tool called once with sense, by a real client; the same for every transport, era and store."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from mcp.client.client import Client
from mcp_types import CallToolResult

from tests.waiting import settle_until

TOOLS = {
    "ambient_recall",
    "recall",
    "why",
    "remember",
    "timeline",
    "get",
    "forget",
    "forgotten",
    "restore_forgotten",
    "fact_correct",
    "edits",
    "undo",
    "forget_concept",
    "search_graph",
    "search_causes",
    "search_connections",
    "search_by_intent",
    "store_memory",
    "get_topic_portfolio",
    "get_topic_stability",
    "detect_topics",
    "get_perspectives",
    "calibrate_perspectives",
    "merge_concepts",
    "inject_context",
    "get_divergence_alerts",
    "trigger_consolidation",
    "trigger_dream",
    "anchor_save",
    "anchor_search",
    "anchor_list",
    "anchor_get",
    "anchor_delete",
    "anchor_resync",
    "anchor_history",
    "anchor_revert",
    "stats",
    "overview",
    "health",
    "add_event",
    "update",
    "append",
    "history",
    "costs",
    "extract",
    "injected",
    "session_context",
    "workload_assess",
    "context_usage",
    "find_duplicates",
    "merge_nodes",
    "undo_merge",
    "job_status",
    "jobs_list",
    "jobs_retry",
    "turns_list",
    "nodes_list",
    "last_proof",
    "ingestion_stats",
    "graph_rank",
    "record_ask",
    "graph_all",
    "graph_around",
    "changes",
    "fact_histogram",
    "drift",
    "index_status",
    "schema_inventory",
    *(
        f"record_{one}"
        for one in ("delete", "get", "list", "move", "relate", "save", "search", "unrelate")
    ),
}
OF_MANY = {"list_vaults"}
"""Tools whose answer is of several entities; every other one names its own."""
TIMED = {"remember", "add_event", "update", "append"}
"""Tools whose answer says how long it took."""
_OF_A_PROJECT = {"project", "project_path"}
"""Arguments of tools of projects; such a client is told nothing of jobs."""


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content)


async def done(client: Client, tool: str, /, **arguments: object) -> dict[str, Any]:
    began = time.perf_counter()
    result = await client.call_tool(tool, arguments)
    took_ms = (time.perf_counter() - began) * 1000
    assert not result.is_error, text(result)
    assert text(result)
    assert result.structured_content is not None
    if tool not in OF_MANY:
        assert result.structured_content["entity"]
    if tool in TIMED:
        assert 0 < result.structured_content["duration_ms"] <= took_ms
        if arguments.get("wait") != "journal" and not arguments.keys() & _OF_A_PROJECT:
            await _taken_in(client, result.structured_content)
    return result.structured_content


async def _taken_in(client: Client, receipt: dict[str, Any]) -> None:
    """Wait until what is on disk can be found, which may take longer than a call waits; tell what came of it."""

    async def is_done() -> bool:
        job = await done(client, "job_status", id=receipt["turn_id"])
        receipt["state"] = job["state"]
        return job["state"] not in ("queued", "running")

    if receipt["state"] == "accepted":
        await settle_until(is_done)


async def refused(client: Client, tool: str, /, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text(result)


async def use_every_tool(client: Client) -> None:
    """Remember, find, read, erase; the client checks each answer against the tool's own schema."""
    receipt = await done(
        client,
        "remember",
        content="Mira makes coffee in the kitchen every morning.",
        session="s1",
        occurred_at="2026-01-05T08:00:00Z",
        nodes=[{"name": "Mira", "kind": "Person", "summary": "Makes coffee."}],
        facts=[
            {
                "subject": "Mira",
                "relation": "MAKES",
                "object": "coffee",
                "text": "Mira makes coffee every morning.",
                "valid_at": "2026-01-05",
            }
        ],
    )
    assert receipt["state"] in ("done", "accepted")
    while (await done(client, "stats"))["unfinished_jobs"]:  # noqa: ASYNC110 - another process works
        await asyncio.sleep(0.05)
    job = await done(client, "job_status", id=receipt["turn_id"])
    assert (job["id"], job["state"]) == (receipt["job_id"], "done")
    assert (await done(client, "job_status", id=str(receipt["job_id"])))["tried"][-1][
        "outcome"
    ] == "done"
    assert (await done(client, "ingestion_stats"))["done"] == 1
    assert "Mira" in str(await done(client, "nodes_list", query="Mira"))
    [said] = (await done(client, "turns_list", session="s1"))["turns"]
    assert (said["turn"]["id"], said["job"], said["state"], said["facts_total"]) == (
        job["turn_id"],
        job["id"],
        "done",
        1,
    )
    assert [one["text"] for one in said["facts"]] == ["Mira makes coffee every morning."]
    assert "cursor" in await refused(client, "turns_list", cursor="yesterday")
    assert [one["id"] for one in (await done(client, "jobs_list", state="done"))["jobs"]] == [
        job["id"]
    ]
    assert "all=true" in await refused(client, "jobs_retry")
    assert (await done(client, "jobs_retry", all=True))["retried"] == []
    assert "proof" not in await done(client, "last_proof")
    found = await done(client, "recall", query="Who makes coffee?", limit=3)
    fact = found["channels"]["facts"]["hits"][0]
    assert "coffee" in fact["text"]
    assert found["channels"]["nodes"]["hits"]
    assert (await done(client, "why", query="Who makes coffee?", expect=fact["id"]))[
        "expected"
    ].startswith("facts: ")

    wide = await done(client, "search_graph", query="Who makes coffee?", excludeEmbedders=["E6"])
    assert "bm25" not in wide["channels"]["facts"]["hits"][0]["ranks"]
    assert "exclude" in await refused(client, "search_graph", query="coffee", exclude=["E14"])
    tied = await done(client, "search_connections", query="Mira", direction="source")
    assert [one["id"] for one in tied["channels"]["facts"]["hits"]] == [fact["id"]]
    assert not (await done(client, "search_connections", query="Mira", direction="target"))[
        "channels"
    ]["facts"]["hits"]
    assert (await done(client, "search_causes", query="Mira is awake", direction="cause"))[
        "channels"
    ].keys() >= {"facts"}
    assert (await done(client, "search_by_intent", query="to wake up", blendWithSemantic=0.5))[
        "channels"
    ]["episodes"]
    kept = await done(
        client, "store_memory", content="The mill is loud.", rationale="Neighbours complain."
    )
    assert (await done(client, "forget", ids=[kept["turn_id"]], dry_run=False))["turns"] == [
        kept["turn_id"]
    ]

    pack = await done(
        client, "ambient_recall", context="coffee in the kitchen", session="s2", budget_tokens=800
    )
    assert "Mira makes coffee" in pack["text"]
    assert 0 < pack["tokens"] <= 800
    startup = await done(client, "ambient_recall", context="", mode="startup")
    assert startup["text"]

    page = await done(client, "timeline", id="Mira")
    assert [one["id"] for one in page["facts"]] == [fact["id"]]
    items = (await done(client, "get", ids=[receipt["turn_id"], fact["id"]]))["items"]
    assert [item["type"] for item in items] == ["turn", "fact"]

    saved = await done(
        client, "anchor_save", title="Sourdough", text="# Bread\n\nFlour, water, salt, time."
    )
    assert [one["slug"] for one in (await done(client, "anchor_list"))["anchors"]] == [
        saved["slug"]
    ]
    hits = (await done(client, "anchor_search", query="flour and water"))["hits"]
    assert hits[0]["id"].startswith(saved["slug"])
    assert (await done(client, "anchor_resync"))["unchanged"] == 1
    bread = await done(client, "anchor_get", slug=saved["slug"])
    assert bread["text"] == "# Bread\n\nFlour, water, salt, time."
    edit = {
        "title": "Sourdough",
        "text": "Rye.",
        "slug": saved["slug"],
        "expected": bread["digest"],
    }
    await done(client, "anchor_save", **edit)
    assert "changed since" in await refused(client, "anchor_save", **edit)
    past = (await done(client, "anchor_history", slug=saved["slug"]))["versions"]
    assert [one["number"] for one in past] == [2, 1]
    await done(client, "anchor_revert", slug=saved["slug"], version=1)
    await done(client, "anchor_delete", slug=saved["slug"])
    assert (await done(client, "anchor_list"))["anchors"] == []

    assert (await done(client, "graph_rank", algorithm="pagerank"))["records"] == 0
    assert "why" in [one["name"] for one in (await done(client, "record_ask"))["queries"]]
    assert "no pack of this memory" in await refused(
        client, "record_ask", query="why", parameters={"id": "Mira"}
    )
    assert [one["id"] for one in (await done(client, "graph_all"))["facts"]] == [fact["id"]]
    around = await done(client, "graph_around", as_of="2100-01-01")
    assert around["hops"][around["node"]] == 0
    changed = await done(client, "changes", since="1900-01-01", until="2100-01-01")
    assert [one["id"] for one in changed["opened"]] == [fact["id"]]
    assert (await done(client, "fact_histogram", bins=4))["dated"] == 1
    note, goal = {"kind": "Goal", "title": "Rest", "summary": "Sleep well."}, {"ids": [fact["id"]]}
    assert "pack" in await refused(client, "record_save", records=[note])
    await refused(client, "record_relate", source="Mira", type="SERVES", target="coffee")
    for name in ("record_get", "record_delete", "record_unrelate"):
        assert "not found" in await refused(client, name, **goal)
    assert "not found" in await refused(client, "record_move", id=fact["id"], to="done")
    assert (await done(client, "record_list"))["items"] == []
    assert "pack" in await refused(client, "record_search", query="rest")
    await done(client, "drift")
    assert await done(client, "schema_inventory")
    assert await done(client, "index_status")
    assert (await done(client, "costs"))["tokens_today"] == 0
    given = await done(client, "injected")
    assert (given["sessions"], given["prompts"]) == (1, 1)
    assert [one["session"] for one in given["latest"]] == ["", "s2"]
    begun = await done(client, "session_context", session="s3")
    assert (begun["nodes"], begun["layers"], begun["total_tokens"] < 25_000) == (0, [], True)
    used = await done(client, "context_usage", session="s3")
    assert [one["part"] for one in used["parts"]] == ["workload", "frame"]
    assert (await done(client, "workload_assess", start_date="2026-03-02"))["hours_available"] == 70
    unread = await done(client, "extract")
    assert (unread["dry_run"], unread["turns"]) == (True, 0)
    assert (
        "pps hooks install --entity NAME --extract claude" in unread["why"]
    )  # no command is set here
    assert "extractor.mode" in await refused(client, "extract", dry_run=False)
    alike = await done(client, "find_duplicates")
    assert (alike["duplicates"], alike["merges"]) == ([], [])
    ends = (await done(client, "get", ids=[fact["id"]]))["items"][0]
    plan = await done(
        client, "merge_nodes", keep=ends["subject"], drop=ends["object"], dry_run=False
    )
    assert (await done(client, "undo_merge", id=plan["id"]))["state"] == "undone"
    both = {"source_ids": [ends["subject"], ends["object"]], "rationale": "One."}
    assert "target_name" in await refused(client, "merge_concepts", **both, target_name="Nobody")
    assert (await done(client, "detect_topics", force=True))["topics"] == []
    assert (await done(client, "get_topic_portfolio"))["consolidate"] is False
    assert "at least 40 turns" in await refused(client, "calibrate_perspectives")
    assert await done(client, "calibrate_perspectives", reset=True) == await done(
        client, "get_perspectives"
    )
    assert (await done(client, "get_topic_stability", hours=1))["topics"] == 0
    assert (await done(client, "inject_context", query="rye bread", max_tokens=500))[
        "tokens"
    ] <= 500
    assert (await done(client, "get_divergence_alerts"))["alerts"] == []
    assert (await done(client, "trigger_consolidation", min_similarity=0.9))["pairs"] == []
    assert (await done(client, "trigger_dream", dry_run=True))["ended"] == "dry_run"
    assert "skip_rem" in await refused(client, "trigger_dream", skip_nrem=True, skip_rem=True)
    note = await done(
        client, "add_event", content="Rye, see [[Oven]]. #bread", title="Loaves", source="editor"
    )
    assert (note["title"], note["tags_applied"]) == ("Loaves", ["bread"])
    await done(client, "update", id=note["turn_id"], content="Rye and wheat.")
    await done(client, "append", id=note["turn_id"], content="And spelt.", actor="Mira")
    versions = (await done(client, "history", id=note["turn_id"]))["versions"]
    assert [one["change"] for one in versions] == ["appended", "modified", "created"]
    assert "+And spelt." in versions[0]["diff"]
    soft = await done(client, "forget_concept", id=note["turn_id"], reason="Moot.", operator="Mira")
    [held] = (await done(client, "forgotten"))["forgotten"]
    assert (held["id"], held["by"], held["why"], held["turns"]) == (
        soft["restorable_as"],
        "Mira",
        "Moot.",
        1,
    )
    assert (await done(client, "restore_forgotten", id=held["id"]))["turns"] == [note["turn_id"]]
    wrong = await done(
        client,
        "remember",
        content="Rye fears wheat.",
        facts=[{"subject": "Rye", "relation": "FEARS", "object": "Wheat"}],
    )
    [fears] = (await done(client, "timeline", id="Wheat"))["facts"]
    corrected = await done(client, "fact_correct", id=fears["id"], verdict="never_true")
    listed = (await done(client, "edits"))["edits"]
    assert corrected["turn_id"] in [one["id"] for one in listed]
    assert (await done(client, "undo", id=corrected["turn_id"]))["item"] == fears["id"]
    await done(client, "forget", ids=[wrong["turn_id"]], dry_run=False)
    assert (await done(client, "forget", ids=[note["turn_id"]], dry_run=False))["turns"] == [
        note["turn_id"]
    ]

    stats = await done(client, "stats")
    assert (stats["turns"], stats["facts"]) == (1, 1)
    assert (await done(client, "health"))["ok"] is True
    assert (await done(client, "overview"))["holds"]["facts"] == 1

    dry = await done(client, "forget", ids=[receipt["turn_id"]])
    assert dry["dry_run"] is True
    assert dry["turns"] == [receipt["turn_id"]]
    assert (await done(client, "stats"))["turns"] == 1
    gone = await done(client, "forget", ids=[receipt["turn_id"]], dry_run=False)
    assert gone["turns"] == [receipt["turn_id"]]
    assert (await done(client, "stats"))["turns"] == 0
