"""The commands of records, versions, costs and merges: what they print, as text and as JSON, and how they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.integration.interfaces.serving import Served


def told(served: Served, *arguments: str, given: str = "") -> str:
    """Return what a command that ends well says."""
    ended = served.pps(*arguments, given=given)
    assert (ended.returncode, ended.stderr) == (0, ""), arguments
    return ended.stdout


def data(served: Served, *arguments: str, given: str = "") -> dict[str, Any]:
    """Return what a command that ends well says as JSON."""
    return json.loads(told(served, *arguments, "--json", given=given))


def refused(served: Served, *arguments: str, code: int) -> str:
    """Return the one line of a command that is refused, which is the same beside JSON."""
    ended = served.pps(*arguments)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (code, "", 1), ended.stderr
    as_json = served.pps(*arguments, "--json")
    error = json.loads(as_json.stdout)["error"]
    assert (as_json.returncode, as_json.stderr) == (code, ended.stderr)
    assert error["code"] == {2: "invalid_request", 3: "not_found"}[code]
    return ended.stderr


def test_a_record_is_kept_changed_added_to_and_its_history_is_shown(served: Served) -> None:
    served.create("ana")
    harbour = data(served, "event", "ana", "All about the harbour.", "--title", "Harbour")
    assert (harbour["state"], harbour["title"], harbour["version"]) == ("done", "Harbour", 1)
    given = (
        "--title",
        "The light",
        "--source",
        "whisper",
        "--ref",
        "w1",
        "--at",
        "2026-03-07T08:30:00Z",
    )
    more = (
        "--kind",
        "Task",
        "--parent",
        "Harbour",
        "--tag",
        "pier",
        "--metadata",
        '{"place": "pier 3"}',
    )
    light = data(
        served, "event", "ana", "-", *given, *more, given="It is out, see [[Harbour]]. #maintenance"
    )
    assert (light["tags_applied"], light["edges_created"], light["redacted"]) == (
        ["pier", "maintenance"],
        2,
        0,
    )
    assert light["duration_ms"] > 0
    record = data(served, "get", "ana", light["node_id"])["items"][0]
    assert (record["name"], record["kind"], record["attributes"]["place"]) == (
        "The light",
        "Task",
        "pier 3",
    )
    again = told(served, "event", "ana", "Other words.", "--source", "whisper", "--ref", "w1")
    assert again.startswith(
        "Known already; nothing was stored twice. “The light” Tags: pier, maintenance."
    )
    assert again.endswith(f" [{light['node_id'][:8]}]\n")
    kept = told(served, "event", "ana", "A note. #tea")
    assert kept.startswith("Kept as version 1. “A note. #tea” Tags: tea. [")

    changed = data(
        served,
        "update",
        "ana",
        light["node_id"],
        "--text",
        "-",
        "--actor",
        "Ben",
        given="It is on again.",
    )
    assert (changed["version"], changed["state"], changed["node_id"]) == (
        2,
        "done",
        light["node_id"],
    )
    renamed = told(
        served,
        "update",
        "ana",
        light["node_id"],
        "--title",
        "Lamp",
        "--tag",
        "done",
        "--kind",
        "Note",
    )
    assert renamed.startswith("Kept as version 3. “Lamp” Tags: done.")
    added = told(
        served, "append", "ana", light["turn_id"], "It was repaired at noon.", "--actor", "Cara"
    )
    assert added.startswith("Kept as version 4. “Lamp”")
    assert data(served, "append", "ana", light["node_id"], "-", given="Twice.")["version"] == 5

    shown = told(served, "history", "ana", light["node_id"])
    heads = [line for line in shown.splitlines() if line.startswith("version ")]
    assert [head.split(":")[0] for head in heads] == [f"version {n}" for n in (5, 4, 3, 2, 1)]
    assert "appended by Cara" in heads[1]
    assert "modified by Ben" in heads[3]
    assert {"+It was repaired at noon.", "-It is out, see [[Harbour]]. #maintenance"} < set(
        shown.splitlines()
    )
    versions = data(served, "history", "ana", light["turn_id"], "--limit", "2", "--whole")[
        "versions"
    ]
    assert [(one["version"], one["change"]) for one in versions] == [
        (5, "appended"),
        (4, "appended"),
    ]
    assert versions[0]["content"] == "It is on again.\n\nIt was repaired at noon.\n\nTwice."
    assert "content" not in data(served, "history", "ana", light["turn_id"])["versions"][0]


def test_a_wrong_call_of_a_records_command_is_one_line_and_changes_nothing(served: Served) -> None:
    served.create("ben")
    note = data(served, "event", "ben", "A note.")
    id, foreign = note["turn_id"], str(uuid4())
    assert "--metadata: is not JSON" in refused(
        served, "event", "ben", "x", "--metadata", "{", code=2
    )
    assert "TEXT ' '" in refused(served, "event", "ben", "  ", code=2)
    assert "--at 'soon'" in refused(served, "event", "ben", "x", "--at", "soon", code=2)
    assert "--text: give a" in refused(served, "update", "ben", id, code=2)
    assert "--metadata" in refused(served, "update", "ben", id, "--metadata", "[]", code=2)
    assert "ID 'no-id'" in refused(served, "append", "ben", "no-id", "x", code=3)
    assert "--days" in refused(served, "costs", "ben", "--days", "0", code=2)
    for command, *more in (("update", "--text", "x"), ("append", "x"), ("history",)):
        assert f"ID {foreign!r}: not found" in refused(
            served, command, "ben", foreign, *more, code=3
        )
    assert "nobody" in served.pps("history", "nobody", id).stderr
    assert len(data(served, "history", "ben", id)["versions"]) == 1
    assert data(served, "stats", "ben")["turns"] == 1


def test_costs_of_a_memory_that_no_model_reads_are_nothing(served: Served) -> None:
    served.create("cleo")
    assert told(served, "costs", "cleo", "--days", "7").startswith(
        "today 0 tokens\nNo language model"
    )
    found = data(served, "costs", "cleo")
    assert (found["days"], found["tokens_today"], found["tokens_per_day"]) == ([], 0, 0)


def test_two_nodes_of_one_name_are_proposed_merged_and_made_two_again(
    served: Served, tmp_path: Path
) -> None:
    served.create("dana")
    assert told(served, "merges", "list", "dana").startswith("No duplicates found. ")
    given = tmp_path / "given.json"
    facts = [{"subject": "Priya", "relation": "LIKES", "object": "tea"}]
    given.write_text(json.dumps({"nodes": [{"name": "Priya", "kind": "Person"}], "facts": facts}))
    told(served, "remember", "dana", "Priya likes tea.", "--given", str(given))
    record = data(served, "event", "dana", "She bakes rye.", "--title", "Priya")["node_id"]
    (pair,) = data(served, "merges", "list", "dana")["duplicates"]
    assert (pair["keep"], pair["keep_name"], pair["drop_kind"]) == (record, "Priya", "Person")
    listed = told(served, "merges", "list", "dana", "--limit", "5")
    assert f"{pair['keep_name']} ({pair['keep_kind']}) [{pair['keep'][:8]}] · " in listed
    ids = (pair["keep"], pair["drop"])
    before = [data(served, "get", "dana", one)["items"] for one in ids]
    dry = told(served, "merges", "apply", "dana", *ids)
    assert dry.startswith("Would make one node: ")
    assert dry.endswith("Add --yes to do it.\n")
    plan = data(served, "merges", "apply", "dana", *ids)
    assert (plan["dry_run"], plan["id"]) == (True, "")
    assert [data(served, "get", "dana", one)["items"] for one in ids] == before

    done = data(served, "merges", "apply", "dana", *ids, "--yes")
    assert (done["dry_run"], done["keep"], done["drop"]) == (False, *ids)
    assert f"ID {pair['drop']!r}: not found" in refused(served, "get", "dana", pair["drop"], code=3)
    (merge,) = data(served, "merges", "list", "dana")["merges"]
    assert (merge["id"], merge["state"]) == (done["id"], "applied")
    assert f"applied [{done['id'][:8]}]" in told(served, "merges", "list", "dana")
    assert f"undone [{done['id'][:8]}]" in told(served, "merges", "undo", "dana", done["id"][:8])
    assert [data(served, "get", "dana", one)["items"] for one in ids] == before
    assert data(served, "merges", "list", "dana")["merges"][0]["state"] == "undone"

    assert refused(served, "merges", "undo", "dana", str(uuid4()), code=3)
    assert refused(served, "merges", "apply", "dana", ids[0], str(uuid4()), "--yes", code=3)
    assert refused(served, "merges", "apply", "dana", ids[0], ids[0], "--yes", code=2)
    assert refused(served, "merges", "undo", "dana", "no-id", code=2)
