"""S2-11 at the surfaces: one `pps serve`, two entities, their tokens, sessions, routes, bridge and command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from pps.verbs.all import VERBS
from tests.integration.surfaces.serving import ERAS, Served, serving
from tests.isolation.test_memory import ARGUMENTS, One, filled

pytestmark = pytest.mark.timeout(300)

A, B = "ana", "ana_2"
MARKS = {A: "kanariequinceana", B: "kanariezwetschgeana"}


@dataclass
class Pair:
    """A server with two entities, what each was told, and their tokens."""

    served: Served
    tokens: dict[str, str]
    ones: dict[str, One]

    def dump(self, name: str) -> str:
        """Return everything that an entity shows of itself."""
        link, one = self.served.link, self.ones[name]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("timeline", {"limit": 1000}),
            ("get", {"ids": [one.turn, one.fact, one.node]}),
            ("anchor_list", {}),
        ]
        said = json.dumps([link.call(verb, name, arguments)["data"] for verb, arguments in calls], sort_keys=True)
        assert MARKS[name] in said
        return said


def tell(served: Served, name: str) -> One:
    """Tell an entity what both are told, and a word that is only its own."""
    link, mark = served.link, MARKS[name]
    facts = [
        {"subject": "Ana", "relation": "DRINKS", "object": "Coffee", "text": "Ana drinks coffee."},
        {"subject": "Ana", "relation": "KNOWS", "object": mark, "text": f"Ana knows {mark}."},
    ]
    nodes = [{"name": "Ana", "kind": "Person", "summary": mark}]
    text = f"Ana came into the kitchen. The word is {mark}."
    receipt = link.call("remember", name, {"content": text, "facts": facts, "nodes": nodes, "wait": "done"})["data"]
    slug = link.call("anchor_save", name, {"title": f"Kitchen {mark}", "text": f"# Kitchen\n\n{mark}"})["data"]["slug"]
    page = link.call("timeline", name, {"limit": 100})["data"]["facts"]
    fact = next(one for one in page if mark in one["text"])
    item = link.call("get", name, {"ids": [fact["id"]]})["data"]["items"][0]
    found = link.call("recall", name, {"query": "Ana", "profile": "nodes", "limit": 5})["data"]
    node = found["channels"]["nodes"]["hits"][0]["id"]
    assert item["id"] == fact["id"]
    return One(None, mark, receipt["turn_id"], fact["id"], node, slug)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with serving(tmp_path_factory.mktemp("isolated") / "home") as served:
        tokens = {name: served.create(name) for name in (A, B)}
        yield Pair(served, tokens, {name: tell(served, name) for name in (A, B)})


def foreign(pair: Pair, viewer: str, said: object, arguments: dict[str, Any]) -> bool:
    """Tell whether something shows what only the other entity has; a query's own echo is no news."""
    other = pair.ones[B if viewer == A else A]
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
    asked = str(arguments.get("query") or arguments.get("context") or "")
    return other.mark in text.replace(asked, "") if asked else other.mark in text


@pytest.mark.parametrize("era", ERAS)
async def test_a_token_opens_one_entity_for_every_tool(pair: Pair, era: str) -> None:
    before, other = pair.dump(B), pair.ones[B]
    async with pair.served.client(pair.tokens[A], era) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == set(VERBS) == set(ARGUMENTS)
        for tool in sorted(tools):
            for arguments in ARGUMENTS[tool]:
                given = filled(arguments, other)
                result = await client.call_tool(tool, given)
                said = result.model_dump_json()
                assert not foreign(pair, A, said, given), (tool, arguments)
    assert pair.dump(B) == before


@pytest.mark.parametrize("era", ERAS)
async def test_the_bridge_opens_the_entity_that_it_was_started_for(pair: Pair, era: str) -> None:
    before, other = pair.dump(B), pair.ones[B]
    async with pair.served.stdio(A, era) as client:
        for tool in ("recall", "get", "timeline", "forget", "anchor_search", "anchor_delete", "ambient_recall"):
            for arguments in ARGUMENTS[tool]:
                given = filled(arguments, other)
                result = await client.call_tool(tool, given)
                assert not foreign(pair, A, result.model_dump_json(), given), (tool, arguments)
    assert pair.dump(B) == before


async def test_two_clients_at_once_stay_apart(pair: Pair) -> None:
    async def talk(name: str) -> list[str]:
        said: list[str] = []
        async with pair.served.client(pair.tokens[name], ERAS[-1]) as client:
            for number in range(12):
                await client.call_tool(
                    "remember", {"content": f"Again {number}. {MARKS[name]}", "source_ref": f"{number}"}
                )
                said.append((await client.call_tool("recall", {"query": "again Ana coffee"})).model_dump_json())
        return said

    for name, said in zip((A, B), await asyncio.gather(talk(A), talk(B)), strict=True):
        assert not any(foreign(pair, name, one, {}) for one in said)
        assert all(MARKS[name] in one for one in said)


async def test_a_session_of_one_is_closed_to_a_token_of_another(pair: Pair) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "timeline", "arguments": {}}}
    async with httpx.AsyncClient(base_url=pair.served.run.url, headers=headers, trust_env=False) as http:
        theirs = {"Authorization": f"Bearer {pair.tokens[B]}"}
        opened = await http.post("/mcp", json=hello, headers=theirs)
        session = opened.headers.get("mcp-session-id")
        mine = {"Authorization": f"Bearer {pair.tokens[A]}", **({"Mcp-Session-Id": session} if session else {})}
        answer = await http.post("/mcp", json=ask, headers=mine)
    assert session, "the older era has sessions"
    assert 400 <= answer.status_code < 500
    assert MARKS[B] not in answer.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/metrics"),
        ("GET", "/owner/status"),
        ("POST", "/owner/stop"),
        ("POST", "/owner/call/timeline"),
        ("POST", "/owner/work/reindex"),
        ("POST", "/registry/entity.list"),
        ("POST", "/registry/entity.show"),
        ("POST", "/registry/token.issue"),
        ("POST", "/registry/operator.issue"),
        ("GET", "/health"),
    ],
)
def test_an_entitys_token_opens_no_other_route(pair: Pair, method: str, path: str) -> None:
    with httpx.Client(base_url=pair.served.run.url, trust_env=False) as http:
        headers = {"Authorization": f"Bearer {pair.tokens[A]}"}
        answer = http.request(
            method, path, headers=headers, json={"entity": B, "name": B} if method == "POST" else None
        )
    if path == "/health":
        assert answer.json() == {"status": "ok"}, "whose memories are here is not said"
    else:
        assert answer.status_code == 401
    for secret in (MARKS[B], B, str(pair.served.home)):
        assert secret not in answer.text


def test_an_operators_token_reads_no_memory(pair: Pair) -> None:
    operator = str(pair.served.link.admin("operator.issue", {})["token"])
    with httpx.Client(base_url=pair.served.run.url, trust_env=False) as http:
        headers = {"Authorization": f"Bearer {operator}", "Accept": "application/json, text/event-stream"}
        for path in ("/owner/call/timeline", "/mcp"):
            answer = http.post(path, headers=headers, json={"entity": A, "arguments": {}})
            assert answer.status_code == 401
            assert MARKS[A] not in answer.text
        for path in ("/metrics", "/health"):
            said = http.get(path, headers=headers).text
            assert MARKS[A] not in said
            assert MARKS[B] not in said


@pytest.mark.parametrize("task", ["reindex", "reembed", "import", "anchors.import"])
def test_long_work_on_one_leaves_the_other_as_it_was(pair: Pair, tmp_path: Path, task: str) -> None:
    before = pair.dump(B)
    arguments: dict[str, Any] = {"entity": A}
    if task == "import":
        file = tmp_path / "talk.jsonl"
        file.write_text(json.dumps({"content": f"One more. {MARKS[A]}", "source_ref": "imported"}) + "\n")
        arguments["path"] = str(file)
    if task == "anchors.import":
        (tmp_path / "note.md").write_text("# Note\n\nBread.")
        arguments["path"] = str(tmp_path)
    reports = list(pair.served.link.work(task, arguments))
    assert not foreign(pair, A, reports, {})
    assert pair.dump(B) == before


COMMANDS: dict[str, list[list[str]]] = {
    "recall": [["recall", A, "{mark}", "--json"], ["recall", A, "Ana coffee", "--profile", "nodes", "--json"]],
    "ambient": [["ambient", A, "Ana in the kitchen"], ["ambient", A, "--startup"]],
    "remember": [["remember", A, "A look at the kitchen."]],
    "timeline": [["timeline", A, "--about", "{node}"], ["timeline", A]],
    "get": [["get", A, "{turn}"], ["get", A, "{fact}", "{node}", "--json"]],
    "forget": [["forget", A, "{turn}", "--yes"], ["forget", A, "{fact}"]],
    "stats": [["stats", A, "--json"]],
    "reindex": [["reindex", A]],
    "reembed": [["reembed", A]],
    "import": [["import", A, "{file}"]],
    "anchors list": [["anchors", "list", A]],
    "anchors search": [["anchors", "search", A, "{mark}", "--json"]],
    "anchors save": [["anchors", "save", A, "Kitchen", "Mine."]],
    "anchors delete": [["anchors", "delete", A, "{slug}"]],
    "anchors resync": [["anchors", "resync", A]],
    "anchors import": [["anchors", "import", A, "{folder}"]],
    "entity show": [["entity", "show", A, "--json"]],
    "entity create": [["entity", "create", A]],
    "entity token": [["entity", "token", A]],
}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_for_one_shows_and_changes_nothing_of_the_other(pair: Pair, tmp_path: Path, command: str) -> None:
    before, other = pair.dump(B), pair.ones[B]
    file, folder = tmp_path / "talk.jsonl", tmp_path / "notes"
    file.write_text(json.dumps({"content": "One line more.", "source_ref": "cli"}) + "\n")
    folder.mkdir()
    (folder / "note.md").write_text("# Note\n\nBread.")
    for words in COMMANDS[command]:
        given = [
            word.format(
                mark=other.mark,
                node=other.node,
                turn=other.turn,
                fact=other.fact,
                slug=other.slug,
                file=file,
                folder=folder,
            )
            for word in words
        ]
        done = pair.served.pps(*given)
        asked = other.mark if "{mark}" in words else ""
        assert not foreign(pair, A, done.stdout + done.stderr, {"query": asked}), words
        if {"{turn}", "{fact}", "{node}", "{slug}"} & set(words):
            assert done.returncode == 3, (words, done.stderr)
    assert pair.dump(B) == before


@pytest.mark.parametrize("words", [["entity", "list"], ["profiles"], ["doctor"], ["init"], ["demo"]], ids=" ".join)
def test_commands_that_open_no_memory_by_name_show_none(pair: Pair, words: list[str]) -> None:
    before = [pair.dump(name) for name in (A, B)]
    done = pair.served.pps(*words)
    for name in (A, B):
        assert MARKS[name] not in done.stdout + done.stderr
    assert [pair.dump(name) for name in (A, B)] == before


def test_verify_isolation_runs_from_the_command_line_and_says_what_it_did(pair: Pair) -> None:
    before = [pair.dump(name) for name in (A, B)]
    done = pair.served.pps("verify-isolation", "--operations", "60", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is True
    assert sum(report["operations"].values()) == 60
    assert (report["leaks"], report["told_apart"], report["broken"]) == ([], [], [])
    assert [pair.dump(name) for name in (A, B)] == before
    assert not list((pair.served.home).glob("verify-*"))


def test_deleting_one_leaves_the_other(pair: Pair) -> None:
    pair.served.create("gone")
    tell_gone = pair.served.link.call("remember", "gone", {"content": f"Gone soon. {MARKS[A][::-1]}"})
    assert tell_gone["data"]["turn_id"]
    before = pair.dump(B)
    assert pair.served.pps("entity", "archive", "gone").returncode == 0
    assert pair.served.pps("recall", "gone", "soon").returncode != 0
    assert pair.served.pps("entity", "delete", "gone", "--yes").returncode == 0
    assert not (pair.served.home / "entities" / "gone").exists()
    assert pair.dump(B) == before
