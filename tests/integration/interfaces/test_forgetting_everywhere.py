"""Forgetting says the same on the command line and to a calling model as on the page."""

from __future__ import annotations

import json

from tests.integration.interfaces.every_tool import done
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
