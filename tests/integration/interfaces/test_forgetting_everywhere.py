"""Forgetting says the same on the command line and to a calling model as on the page."""

from __future__ import annotations

import json

from tests.integration.interfaces.every_tool import done, refused
from tests.integration.interfaces.serving import ERAS, Served

WREN = {
    "content": "Wren baked bread.",
    "facts": [
        {"subject": "Wren", "relation": "BAKED", "object": "Bread", "text": "Wren baked bread."}
    ],
}


def test_the_command_line_shows_what_still_mentions_and_takes_it_along(served: Served) -> None:
    served.create("cli_wren")
    served.link.call("remember", "cli_wren", WREN)
    served.link.call("remember", "cli_wren", {"content": "I saw Wren.", "extraction": "none"})
    shown = served.pps("forget", "cli_wren", "Wren", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "2 turns still mention Wren; recall finds what stays:" in shown.stdout
    assert "turn user: I saw Wren. [" in shown.stdout
    assert "--along KIND" in shown.stdout
    data = json.loads(served.pps("forget", "cli_wren", "Wren", "--json").stdout)
    assert data["mentions"]["turns"] == 2
    node = data["asked"][0]
    kept = served.pps("forget", "cli_wren", node, "--soft", "--yes")
    assert "2 turns still mention Wren" in kept.stdout
    entry = kept.stdout.split("restored as ")[1].split(".")[0]
    listed = served.pps("forgotten", "cli_wren", entry)
    assert "2 turns still mention Wren" in listed.stdout
    served.pps("restore", "cli_wren", entry)
    gone = served.pps("forget", "cli_wren", node, "--along", "turns", "--yes")
    assert gone.returncode == 0, gone.stderr
    assert "still mention" not in gone.stdout
    assert "Wren" not in served.pps("turns", "cli_wren").stdout


async def test_a_calling_model_is_shown_what_still_mentions(served: Served) -> None:
    token = served.create("mcp_wren")
    async with served.client(token, ERAS[1]) as client:
        await client.call_tool("remember", WREN)
        shown = await done(client, "forget", ids=["Wren"])
        assert shown["mentions"]["turns"] == 1
        assert shown["mentions"]["items"][0]["text"] == "user: Wren baked bread."
        answer = await client.call_tool("forget", {"ids": ["Wren"]})
        assert "1 turn still mentions Wren" in str(answer.content)
        taken = await done(client, "forget", ids=shown["asked"], dry_run=False, along=["turns"])
        assert taken["mentions"]["turns"] == 0


def test_the_command_line_corrects_lists_and_undoes(served: Served) -> None:
    served.create("cli_fixes")
    fact = {"subject": "Ana", "relation": "LIVES_IN", "object": "Lisbon", "text": "Ana in Lisbon."}
    served.link.call("remember", "cli_fixes", {"content": "I am in Lisbon.", "facts": [fact]})
    facts = json.loads(served.pps("facts", "cli_fixes", "--json").stdout)["facts"]
    fixed = ("correct", "cli_fixes", facts[0]["id"], "--verdict", "never_true")
    refused = served.pps(*fixed, "--text", "Ana in Porto.")
    assert refused.returncode == 2
    assert "does not name the object 'Lisbon'" in refused.stderr
    done = served.pps(*fixed, "--object", "Porto")
    assert done.returncode == 0, done.stderr
    assert "1 turn still mentions" in done.stdout
    assert "Ana in Porto." in served.pps("facts", "cli_fixes").stdout
    served.pps("anchors", "save", "cli_fixes", "Bread", "Rye.")
    served.pps("anchors", "save", "cli_fixes", "Bread", "Oats.", "--slug", "bread")
    past = served.pps("anchors", "history", "cli_fixes", "bread").stdout
    assert past.index("version 2") < past.index("version 1")
    edits = json.loads(served.pps("edits", "cli_fixes", "--json").stdout)["edits"]
    assert [(one["kind"], one["id"]) for one in edits] == [
        ("anchor", "bread@2"),
        ("correction", edits[1]["id"]),
    ]
    for edit in edits:
        undone = served.pps("undo", "cli_fixes", edit["id"])
        assert undone.returncode == 0, undone.stderr
        assert undone.stdout.startswith(f"Undone: {edit['kind']}")
    again = served.pps("undo", "cli_fixes", edits[1]["id"])
    assert (again.returncode, "not found" in again.stderr) == (3, True)
    now = json.loads(served.pps("facts", "cli_fixes", "--json").stdout)["facts"]
    assert [(one["text"], "invalid_at" in one) for one in now] == [("Ana in Lisbon.", False)]
    assert "Rye." in served.pps("anchors", "get", "cli_fixes", "bread").stdout
    assert served.pps("anchors", "revert", "cli_fixes", "bread", "2").returncode == 0
    assert "Oats." in served.pps("anchors", "get", "cli_fixes", "bread").stdout


async def test_a_calling_model_corrects_and_undoes(served: Served) -> None:
    token = served.create("mcp_fixes")
    fact = {"subject": "Ana", "relation": "LIVES_IN", "object": "Lisbon", "text": "Ana in Lisbon."}
    async with served.client(token, ERAS[1]) as client:
        await done(client, "remember", content="I am in Lisbon.", facts=[fact])
        [told] = (await done(client, "timeline"))["facts"]
        wrong = {"id": told["id"], "verdict": "never_true", "text": "Ana in Porto."}
        assert "text" in await refused(client, "fact_correct", **wrong)
        fixed = await done(client, "fact_correct", **wrong, object="Porto")
        assert fixed["mentions"]["turns"] == 1
        [edit] = (await done(client, "edits"))["edits"]
        assert edit["id"] == fixed["turn_id"]
        undone = await done(client, "undo", id=fixed["turn_id"])
        assert undone["item"] == told["id"]
        [told] = (await done(client, "timeline"))["facts"]
        assert "ended" not in str(told)
        assert told["text"] == "Ana in Lisbon."
