"""A secret in what a text is known by is kept by no surface, and each knows again what another has told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.hooks.acting import Session
from tests.integration.interfaces.every_tool import done, refused
from tests.integration.interfaces.serving import ERAS, Served
from tests.sampling import sample
from tests.secrets import SECRETS, holding

KINDS = (
    "GitHub Token",
    "AWS Access Key",
    "Google API Key",
    "API Key",
    "Password",
    "Basic Auth Credentials",
)
TOKEN, _ = SECRETS["GitHub Token"]


def names(kind: str) -> dict[str, str]:
    text, _ = SECRETS[kind]
    return {"session": f"chat {text}", "source": "app", "source_ref": f"letter {text}"}


@pytest.mark.parametrize("era", sample(ERAS, 1, "names"))  # every tool in each era: test_mcp_http
async def test_tools_and_routes_and_commands_know_it_again_and_none_keeps_it(
    either: Served, era: str
) -> None:
    entity = f"names_{ERAS.index(era)}"
    async with either.client(either.create(entity), era) as client:
        for kind in KINDS:
            first = await done(client, "remember", content="The gate is shut.", **names(kind))
            assert (first["state"], first["redacted"]) == ("done", 2)
            again = either.link.call("remember", entity, {"content": "Said again.", **names(kind)})[
                "data"
            ]
            assert (again["state"], again["turn_id"]) == ("duplicate", first["turn_id"])
            (turn,) = (await done(client, "get", ids=[first["turn_id"]]))["items"]
            assert f"[redacted: {kind} " in turn["session"]
            sessions = {"sessions": [names(kind)["session"]]}
            found = await done(
                client, "recall", query="gate", session=names(kind)["session"], filters=sessions
            )
            assert [one["id"] for one in found["channels"]["episodes"]["hits"]] == [
                first["turn_id"]
            ]
            pack = await done(
                client, "ambient_recall", context="gate", session=names(kind)["session"]
            )
            assert "The gate is shut." in pack["text"]
            happened = (
                "event",
                entity,
                "It rang.",
                "--source",
                "bell",
                "--ref",
                names(kind)["source_ref"],
                "--json",
            )
            told = [json.loads(either.pps(*happened).stdout) for _ in range(2)]
            assert [one["state"] for one in told] == ["done", "duplicate"]
        label = await refused(
            client, "remember", content="A label.", nodes=[{"name": "Ana", "kind": TOKEN}]
        )
        fact = {"subject": "Ana", "relation": TOKEN, "object": "Tea"}
        relation = await refused(client, "remember", content="A label.", facts=[fact])
        for said, field in ((label, "nodes[0].kind"), (relation, "facts[0].relation")):
            assert f"{field}: holds what looks like a secret" in said
            assert TOKEN not in said
    assert holding(either.home) == {}


def test_imports_and_hooks_know_it_again_and_keep_none(either: Served, tmp_path: Path) -> None:
    either.create("told")
    talk = tmp_path / f"{TOKEN}.jsonl"
    lines = [{"content": "Hello.", **names(kind)} for kind in KINDS]
    talk.write_text(
        "\n".join(json.dumps(line) for line in (*lines, {"content": "Known by its file and line."}))
    )
    for stored in (len(KINDS) + 1, 0):
        done = json.loads(either.pps("import", "told", str(talk), "--json").stdout)
        assert done["stored"] == stored
    session = Session(either.home, tmp_path, id=f"of {TOKEN}", options=("--entity", "told"))
    session.says("It is warm.")
    for _ in range(2):
        session.run("UserPromptSubmit", prompt="Is it warm?", prompt_id=f"p {TOKEN}")
        session.run("PostToolUse", tool_use_id=f"t {TOKEN}", agent_type=TOKEN)
        session.run("Stop", last_assistant_message="It is warm.")
    filters = {"sessions": [session.id]}
    found = either.link.call("recall", "told", {"query": "warm", "limit": 50, "filters": filters})[
        "data"
    ]
    assert len(found["channels"]["episodes"]["hits"]) == 3
    assert holding(either.home) == {}
