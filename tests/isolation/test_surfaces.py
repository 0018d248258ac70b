"""Nothing of one entity reaches another by any tool, route or command, and each of them has its attack here."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from starlette.routing import Route

from pps.interfaces.cli.main import build
from pps.interfaces.http.routes import HttpRoutes, ServerParts
from pps.operations.catalog import operations_for
from pps.server.runfile import new_secret
from tests.integration.interfaces.every_tool import done
from tests.integration.interfaces.every_tool import text as text_of
from tests.integration.interfaces.serving import ERAS, Served, pps, serving
from tests.sampling import sized
from tests.waiting import PATIENCE_S

CANARY = "4711-canary"
ANY_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}

TOOL_ATTACKS: dict[str, list[dict[str, Any]]] = {
    "why": [
        {"query": "vault 4711 canary", "expect": "<fact>"},
        {"query": "vault", "expect": "<turn>"},
    ],
    "ambient_recall": [{"context": "vault 4711 canary"}, {"context": "", "mode": "startup"}],
    "recall": [
        {"query": "vault 4711 canary", "limit": 100},
        {"query": "vault", "center": "<node>"},
        {
            "query": "vault",
            "session": "theirs",
            "filters": {"sessions": ["theirs"], "tags": ["vault"]},
        },
        {
            "query": "vault",
            "channels": ["nodes", "facts", "episodes", "anchors"],
            "as_of": "2026-06-01",
        },
    ],
    "remember": [
        {
            "content": "x",
            "facts": [{"subject": "x", "relation": "R", "object": "y", "invalidates": ["<fact>"]}],
        },
        {"content": "y", "session": "theirs", "source_ref": "theirs-1"},
    ],
    "timeline": [{}, {"id": "<node>"}, {"id": "vault"}, {"cursor": "<fact>"}],
    "get": [
        {"ids": ["<turn>"]},
        {"ids": ["<node>"]},
        {"ids": ["<fact>"]},
        {"ids": ["<turn>", "<fact>"], "cursor": "1.0.000000000000"},
    ],
    "forget": [
        {"ids": ["<turn>"], "dry_run": False},
        {"ids": ["<node>"], "dry_run": False},
        {"ids": ["<fact>"], "dry_run": False},
        {"ids": ["<slug>"], "dry_run": False},
    ],
    "forgotten": [{}, {"id": "<turn>"}],
    "fact_correct": [
        {"id": "<fact>", "verdict": "never_true"},
        {"id": "<fact>", "verdict": "no_longer_true", "object": "vault"},
    ],
    "edits": [{"limit": 200}],
    "undo": [{"id": "<turn>"}, {"id": "<turn>@2"}, {"id": "<slug>@2"}],
    "restore_forgotten": [{"id": "<turn>"}, {"id": "<node>"}],
    "forget_concept": [{"id": "<node>"}, {"id": "<node>", "soft_delete": False}],
    "search_graph": [
        {"query": "vault 4711 canary", "strategy": one}
        for one in ("e1_only", "multi_space", "pipeline")
    ]
    + [
        {
            "query": "vault 4711 canary",
            "weights": {"E5": 3, "E7": 3, "E9": 3, "E8": 3, "E12": 3, "E13": 3},
        }
    ],
    "search_by_intent": [{"query": "vault 4711 canary"}],
    "search_causes": [
        {"query": "vault 4711 canary", "direction": one} for one in ("cause", "effect")
    ],
    "search_connections": [
        {"query": "vault", "direction": one} for one in ("source", "target", "both")
    ],
    "store_memory": [{"content": "Mine, see vault.", "rationale": "Mine."}],
    "get_topic_portfolio": [{"format": "verbose"}],
    "get_topic_stability": [{"hours": 168}],
    "detect_topics": [{"force": True}],
    "get_perspectives": [{}],
    "calibrate_perspectives": [{"reset": True}],
    "get_divergence_alerts": [{"session": "theirs", "lookback_hours": 48}],
    "trigger_consolidation": [
        {"min_similarity": 0.0},
        {"strategy": "semantic", "min_similarity": 0.0},
    ],
    "trigger_dream": [{"max_duration_secs": 10}],
    "inject_context": [{"query": "vault 4711 canary", "session": "theirs"}],
    "merge_concepts": [
        {
            "source_ids": ["<node>", "<fact>"],
            "target_name": "vault",
            "rationale": "x",
            "dry_run": False,
        }
    ],
    "anchor_save": [
        {"title": "mine", "text": "mine", "slug": "<slug>"},
        {"title": "x", "text": "x", "slug": "../x"},
    ],
    "anchor_search": [{"query": "vault 4711 canary"}],
    "anchor_list": [{}],
    "anchor_delete": [{"slug": "nonesuch"}, {"slug": "../theirs/anchors/<slug>"}],
    "anchor_get": [
        {"slug": "<slug>"},
        {"slug": "../../theirs/anchors/<slug>"},
        {"slug": "<slug>", "cursor": "0.0.000000000000"},
    ],
    "anchor_history": [{"slug": "<slug>"}, {"slug": "../theirs/anchors/<slug>"}],
    "anchor_revert": [
        {"slug": "<slug>", "version": 1},
        {"slug": "../theirs/anchors/<slug>", "version": 1},
    ],
    "anchor_resync": [{}],
    "stats": [{}],
    "overview": [{}],
    "health": [{}],
    "add_event": [{"content": "Mine, see [[vault]].", "title": "Mine", "parent_node_id": "theirs"}],
    "update": [{"id": "<node>", "content": "Mine."}, {"id": "<turn>", "content": "Mine."}],
    "append": [{"id": "<node>", "content": "Mine."}, {"id": "<turn>", "content": "Mine."}],
    "history": [
        {"id": "<node>"},
        {"id": "<turn>", "with_content": True},
        {"id": "<turn>", "with_content": True, "cursor": "1.0"},
    ],
    "record_save": [{"records": [{"id": "<node>", "summary": "Mine."}]}],
    "record_get": [{"ids": ["<node>"]}, {"ids": ["<node>", "<node>"], "cursor": "1"}],
    "record_list": [{"where": [{"field": "title", "op": "=", "value": "vault"}]}],
    "record_move": [{"id": "<turn>", "to": "done"}],
    "record_delete": [{"ids": ["<turn>"], "dry_run": False}],
    "record_relate": [{"source": "<node>", "type": "SERVES", "target": "vault"}],
    "record_unrelate": [{"ids": ["<fact>"]}],
    "costs": [{}],
    "injected": [{"days": 30}, {"session": "default"}],
    "graph_rank": [
        {"algorithm": "pagerank"},
        {"algorithm": "shortest_path", "source": "<node>", "target": "<node>"},
    ],
    "record_ask": [{"query": "expand", "parameters": {"id": "<node>"}}],
    "graph_all": [{}],
    "graph_around": [
        {},
        {"as_of": "2026-06-01"},
        {"id": "<node>", "max_hops": 4, "limit": 999},
        {"id": "vault"},
        {"id": "<node>", "cursor": "1"},
    ],
    "nodes_list": [{}, {"query": "vault"}, {"cursor": "<node>"}],
    "changes": [
        {"since": "2000-01-01", "until": "2100-01-01", "limit": 1000},
        {"since": "2000-01-01", "until": "2100-01-01", "id": "<node>"},
    ],
    "fact_histogram": [{}, {"bins": 500}],
    "session_context": [{}, {"session": "theirs"}],
    "workload_assess": [{"include_task_details": True}],
    "context_usage": [{"session": "theirs"}],
    "record_search": [
        {"query": "vault 4711 canary"},
        {"query": "vault", "anchor_node_id": "<node>"},
    ],
    "drift": [{}],
    "index_status": [{}],
    "find_duplicates": [{}],
    "merge_nodes": [
        {"keep": "<node>", "drop": "<fact>", "dry_run": False},
        {"keep": "<node>", "drop": "<turn>"},
    ],
    "undo_merge": [{"id": "<turn>"}],
    "schema_inventory": [{}],
    "job_status": [{"id": "<turn>"}],
    "ingestion_stats": [{}],
    "last_proof": [{}],
    "turns_list": [
        {},
        {"session": "theirs"},
        {"query": "vault 4711"},
        {"near": "<turn>"},
        {"about": "<node>"},
        {"about": "vault"},
    ],
    "jobs_list": [{}, {"state": "done"}],
    "jobs_retry": [{"ids": [1]}, {"all": True}],
    "extract": [{"dry_run": True}],
}
"""What the entity ``mine`` tries with the ids of ``theirs`` in the places of the angle brackets."""

COMMAND_ATTACKS: dict[str, list[str]] = {
    "ambient": ["mine", "vault 4711 canary"],
    "anchors delete": ["mine", "theirs-secret"],
    "anchors get": ["mine", "theirs-secret"],
    "anchors history": ["mine", "theirs-secret"],
    "anchors revert": ["mine", "theirs-secret", "1"],
    "correct": ["mine", "<fact>", "--verdict", "never_true"],
    "edits": ["mine"],
    "undo": ["mine", "<turn>"],
    "anchors import": ["mine", "<home>/entities/mine/anchors"],
    "anchors list": ["mine"],
    "anchors resync": ["mine"],
    "anchors save": ["mine", "Title", "text"],
    "anchors search": ["mine", "vault 4711 canary"],
    "demo": ["--help"],
    "doctor": [],
    "entity archive": ["nobody"],
    "entity create": ["mine"],
    "entity delete": ["nobody", "--yes"],
    "entity list": ["--archived"],
    "entity show": ["mine"],
    "entity token": ["mine"],
    "forget": ["mine", "<turn>", "--yes"],
    "forgotten": ["mine"],
    "topics": ["mine", "--format", "verbose"],
    "perspectives": ["mine"],
    "calibrate": ["mine", "--reset"],
    "detect": ["mine", "--force"],
    "restore": ["mine", "<turn>"],
    "get": ["mine", "<fact>"],
    "hooks install": ["--scope", "project", "--project", "<home>", "--entity", "mine"],
    "hooks status": ["--project", "<home>"],
    "hooks uninstall": ["--scope", "project", "--project", "<home>"],
    "import": ["mine", "<home>/talk.jsonl"],
    "init": [],
    "append": ["mine", "<turn>", "Mine."],
    "costs": ["mine"],
    "extract": ["mine", "--dry-run"],
    "injected": ["mine", "--days", "30"],
    "session context": ["mine"],
    "session usage": ["mine", "theirs"],
    "workload": ["mine", "--details"],
    "drift": ["mine"],
    "indexes": ["mine"],
    "records search": ["mine", "vault 4711 canary"],
    "records delete": ["mine", "<turn>", "--yes"],
    "records get": ["mine", "<node>"],
    "records list": ["mine"],
    "records move": ["mine", "<node>", "done"],
    "records relate": ["mine", "<node>", "SERVES", "vault"],
    "records save": ["mine", "--file", "<home>/talk.jsonl"],
    "records unrelate": ["mine", "<fact>"],
    "rank": ["mine", "pagerank"],
    "ask": ["mine", "expand", "--with", '{"id": "<node>"}'],
    "graph-all": ["mine"],
    "merges apply": ["mine", "<node>", "<fact>", "--yes"],
    "merges list": ["mine"],
    "merges undo": ["mine", "<turn>"],
    "event": ["mine", "Mine, see [[vault]]."],
    "history": ["mine", "<turn>"],
    "update": ["mine", "<turn>", "--text", "Mine."],
    "jobs drop": ["mine", "1", "--yes"],
    "jobs list": ["mine", "--state", "done"],
    "jobs retry": ["mine", "--all"],
    "jobs show": ["mine", "<turn>"],
    "mcp": ["--entity", "mine"],
    "open": ["mine", "--print"],
    "haven": ["--close"],
    "around": ["mine", "<node>"],
    "changes": ["mine", "--since", "2000-01-01", "--until", "2100-01-01", "--about", "<node>"],
    "histogram": ["mine"],
    "pack check": ["<home>/talk.jsonl"],
    "pack enable": ["mine", "constitution"],
    "feature list": [],
    "feature enable": ["nobodys"],
    "feature disable": ["nobodys"],
    "pack list": [],
    "pack show": ["constitution"],
    "profiles": [],
    "schema": ["mine"],
    "recall": ["mine", "vault 4711 canary"],
    "why": ["mine", "vault 4711 canary", "--expect", "<fact>"],
    "reembed": ["mine"],
    "reindex": ["mine"],
    "rebuild": ["mine", "--yes"],
    "move": ["mine", "--drop-source"],
    "publish": ["mine", "neo4j", "--stop"],
    "upgrade": ["--all", "--drop-copy"],
    "remember": ["mine", "nothing"],
    "route add": ["<home>/entities/mine", "nobody"],
    "route list": [],
    "route remove": ["<home>/entities/theirs"],
    "router create": ["<home>/entities/mine", "--no-create"],
    "router list": [],
    "router revoke": ["theirs"],
    "serve": [],
    "stop": ["--help"],
    "status": [],
    "config": ["mine"],
    "help": ["recall"],
    "squad add": ["nonesuch", "mine"],
    "squad create": ["crew", "--from", "<home>/talk"],
    "squad delete": ["nonesuch", "--yes"],
    "squad import": ["nonesuch", "kublai", "<home>"],
    "squad list": [],
    "squad remove": ["nonesuch", "kublai", "--yes"],
    "squad show": ["theirs"],
    "squad token": ["nonesuch", "kublai"],
    "stats": ["mine"],
    "overview": ["mine"],
    "task claim": ["--project", "<home>/entities/theirs"],
    "task complete": ["<home>/entities/theirs", "<turn>", "guessed", "done"],
    "task extend": ["<home>/entities/theirs", "<turn>", "guessed"],
    "task fail": ["<home>/entities/theirs", "<turn>", "guessed", "why"],
    "task list": ["<home>/entities/theirs"],
    "timeline": ["mine", "--about", "vault"],
    "nodes": ["mine", "vault"],
    "turns": ["mine", "vault", "4711", "--session", "theirs"],
    "verify-isolation": ["--operations", "20"],
    "export": ["mine", "<home>/mine.jsonl"],
    "watch add": ["mine", "<home>/entities/theirs"],
    "watch list": ["mine"],
    "watch remove": ["mine", "<home>/entities/theirs", "--forget"],
}

ROUTE_ATTACKS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "/mcp": ("POST", INITIALIZE),
    "/health": ("GET", None),
    "/ready": ("GET", None),
    "/metrics": ("GET", None),
    "/v1/{operation}": ("POST", {"query": "vault"}),
    "/openapi.json": ("GET", None),
    "/owner/proof/{nonce}": ("GET", None),
    "/owner/status": ("GET", None),
    "/owner/stop": ("POST", {}),
    "/owner/tools": ("POST", {"method": "tools/call", "params": {"name": "stats"}}),
    "/page/{name}": ("GET", None),
    "/page/{name}/": ("GET", None),
    "/page/{name}/session": ("POST", {"link": "theirs"}),
    "/page/{name}/features": ("GET", None),
    "/page/_/{path:path}": ("GET", None),
    "/page/{name}/v1/{operation}": ("POST", {"query": "vault"}),
    "/haven": ("GET", None),
    "/haven/": ("GET", None),
    "/haven/session": ("POST", {"link": "theirs"}),
    "/haven/features": ("GET", None),
    "/haven/open": ("POST", {"name": "theirs"}),
    "/haven/{name}/v1/{operation}": ("POST", {"query": "vault"}),
    "/owner/hooks": ("POST", {"event": "Stop", "entity": "theirs", "text": "vault"}),
}
PARAMETERS = {
    "{nonce}": "0" * 32,
    "{operation}": "recall",
    "{name}": "theirs",
    "{path:path}": "../../entities/theirs/identity.md",
}
OPEN = {
    "/page/theirs": 308,
    "/page/theirs/": 200,
    "/haven": 308,
    "/haven/": 200,
    "/page/_/../../entities/theirs/identity.md": 404,
    f"/owner/proof/{'0' * 32}": 410,  # where the owner has a socket, nothing is proved over TCP
}
"""A page is the same document for everybody, as are its files; what it asks needs a session (test_page.py)."""


@dataclass(frozen=True)
class Neighbours:
    """Two entities on one server: what ``theirs`` holds must never be seen through ``mine``."""

    served: Served
    mine: str
    theirs: str
    known: dict[str, str]

    def filled(self, arguments: object, *, absent: bool = False) -> Any:
        text = json.dumps(arguments)
        for name, value in self.known.items():
            other = "nonesuch" if name == "slug" else str(uuid4())
            text = text.replace(f"<{name}>", other if absent else value)
        return json.loads(text)

    def untouched(self) -> None:
        data = self.served.link.call("stats", "theirs", {})["data"]
        held = cast("dict[str, Any]", data)
        assert (held["turns"], held["facts"], held["anchors"]) == (1, 1, 1)
        found = self.served.link.call(
            "get", "theirs", {"ids": [self.known["turn"], self.known["fact"]]}
        )
        assert CANARY in str(found["text"])


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    with serving(tmp_path_factory.mktemp("neighbours") / "home") as served:
        mine, theirs = served.create("mine"), served.create("theirs")
        given = {
            "content": f"The vault code is {CANARY}. #vault",
            "session": "theirs",
            "source_ref": "theirs-1",
            "nodes": [{"name": "vault"}],
            "facts": [
                {
                    "subject": "vault",
                    "relation": "OPENS_WITH",
                    "object": CANARY,
                    "valid_at": "2026-01-01",
                }
            ],
        }
        link = served.link
        turn = cast("Any", link.call("remember", "theirs", given)["data"])["turn_id"]
        link.call(
            "anchor_save", "theirs", {"title": "Secret", "text": CANARY, "slug": "theirs-secret"}
        )
        channels = cast("Any", link.call("recall", "theirs", {"query": "vault"})["data"])[
            "channels"
        ]
        node, fact = (channels[name]["hits"][0]["id"] for name in ("nodes", "facts"))
        known = {"turn": turn, "node": node, "fact": fact, "slug": "theirs-secret"}
        yield Neighbours(served, mine, theirs, known)


def _commands(command: Any, prefix: str = "") -> Iterator[str]:
    for name, below in getattr(command, "commands", {}).items():
        yield from (
            _commands(below, f"{prefix}{name} ")
            if hasattr(below, "commands")
            else (f"{prefix}{name}",)
        )


def test_every_tool_route_and_command_has_its_attack() -> None:
    assert set(TOOL_ATTACKS) == set(operations_for("entity")), "each tool has a row in TOOL_ATTACKS"
    assert set(COMMAND_ATTACKS) == set(_commands(build()))
    nothing = cast("Any", None)
    routes = HttpRoutes(ServerParts(*[nothing] * 10)).starlette().routes
    assert set(ROUTE_ATTACKS) == {route.path for route in routes if isinstance(route, Route)}


def masked(text: str, asked: dict[str, Any]) -> str:
    """Return a text with each id, and each name that was asked for as one, replaced by the same word."""
    names = [name for name in asked.get("ids", []) if not ANY_ID.fullmatch(name)]
    for name in names:
        text = text.replace(name, "id")
    return ANY_ID.sub("id", text)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tool", TOOL_ATTACKS)
async def test_no_tool_shows_or_changes_what_is_theirs(
    neighbours: Neighbours, era: str, tool: str
) -> None:
    async with neighbours.served.client(neighbours.mine, era) as client:
        for attack in TOOL_ATTACKS[tool]:
            asked = neighbours.filled(attack)
            theirs = await client.call_tool(tool, asked)
            said = json.dumps(theirs.model_dump(mode="json"))
            assert CANARY not in said.replace("vault 4711 canary", "")
            if tool in ("get", "forget", "job_status") or "<node>" in json.dumps(attack):
                absent = neighbours.filled(attack, absent=True)
                nobodys = await client.call_tool(tool, absent)
                assert theirs.is_error
                # Each is told the ids that it asked for itself, and nothing else differs.
                assert masked(text_of(theirs), asked) == masked(text_of(nobodys), absent)
    await asyncio.to_thread(neighbours.untouched)


@pytest.mark.parametrize("command", COMMAND_ATTACKS)
def test_no_command_shows_or_changes_what_is_theirs(neighbours: Neighbours, command: str) -> None:
    served = neighbours.served
    (served.home / "talk.jsonl").write_text(
        '{"content": "hello", "session": "theirs", "source_ref": "theirs-1"}\n'
    )
    arguments = [
        str(one).replace("<home>", str(served.home))
        for one in neighbours.filled(COMMAND_ATTACKS[command])
    ]
    ended = served.pps(*command.split(), *arguments)
    assert CANARY not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    neighbours.untouched()


def test_an_export_to_stdout_is_ones_own_alone_and_leaves_no_file(
    neighbours: Neighbours, tmp_path: Path
) -> None:
    served = neighbours.served
    served.pps("remember", "mine", "The kettle is red.")
    ended = pps({**served.env, "TMPDIR": str(tmp_path)}, "export", "mine", "-")
    assert "The kettle is red." in ended.stdout
    assert CANARY not in ended.stdout + ended.stderr
    assert list(tmp_path.iterdir()) == []
    for name in ("theirs/../mine", "*"):
        assert served.pps("export", name, "-").stdout == ""
    neighbours.untouched()


@pytest.mark.parametrize("path", ROUTE_ATTACKS)
async def test_no_route_answers_for_them_to_who_may_not_ask(
    neighbours: Neighbours, path: str
) -> None:
    method, body = ROUTE_ATTACKS[path]
    for name, value in PARAMETERS.items():
        path = path.replace(name, value)
    secret = new_secret()
    wrong = [
        None,
        "nonsense",
        neighbours.mine[:-1] + "?",
        f"{secret}x.theirs",
        f"{secret[:-1]}.theirs",
    ]
    if path not in ("/mcp", "/v1/recall", "/openapi.json"):
        wrong += [neighbours.mine, neighbours.theirs]
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        for token in wrong:
            headers = {**HEADERS, "Authorization": f"Bearer {token}"} if token else dict(HEADERS)
            answer = await http.request(
                method, f"{neighbours.served.run.url}{path}", json=body, headers=headers
            )
            opened = path.startswith(("/health", "/ready")) or (
                path == "/openapi.json" and not token
            )
            refused = 403 if path.startswith(("/page/", "/haven/")) else 401
            assert answer.status_code == (200 if opened else OPEN.get(path, refused))
            assert CANARY not in answer.text
            assert "theirs" not in answer.text
    await asyncio.to_thread(neighbours.untouched)


@pytest.mark.parametrize("era", ERAS)
async def test_calls_of_two_tokens_interleaved_never_mix(neighbours: Neighbours, era: str) -> None:
    async def many(token: str) -> set[str]:
        async with neighbours.served.client(token, era) as client:
            found = await asyncio.gather(*(done(client, "stats") for _ in range(sized(30, 100))))
        return {one["entity"] for one in found}

    mine, theirs = await asyncio.gather(many(neighbours.mine), many(neighbours.theirs))
    assert (mine, theirs) == ({"mine"}, {"theirs"})


async def _begin(http: httpx2.AsyncClient, url: str, token: str) -> dict[str, str]:
    headers = {**HEADERS, "Authorization": f"Bearer {token}"}
    answer = await http.post(url, json=INITIALIZE, headers=headers)
    assert answer.status_code == 200
    headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
    noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(url, json=noted, headers=headers)).status_code == 202
    return headers


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_the_token_of_b_on_the_session_of_a_finds_no_session(
    neighbours: Neighbours, method: str
) -> None:
    url = f"{neighbours.served.run.url}/mcp"
    asked = PING if method == "POST" else None
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        theirs = await _begin(http, url, neighbours.theirs)
        mine = {**theirs, "Authorization": f"Bearer {neighbours.mine}"}
        answer = await http.request(method, url, headers=mine, json=asked)
        assert answer.status_code == 404
        unknown = {**mine, "Mcp-Session-Id": "0" * 32}
        absent = await http.request(method, url, headers=unknown, json=asked)
        assert (absent.status_code, absent.text) == (answer.status_code, answer.text)
        wrong = {**theirs, "Authorization": "Bearer nonsense"}
        assert (await http.request(method, url, headers=wrong, json=asked)).status_code == 401
        assert (await http.post(url, headers=theirs, json=PING)).status_code == 200


async def test_a_bridge_reaches_the_entity_it_was_started_for_and_no_other(
    neighbours: Neighbours,
) -> None:
    async with neighbours.served.stdio("mine", "2026-07-28") as client:
        assert (await done(client, "stats"))["entity"] == "mine"
        refused = await client.call_tool("recall", {"query": "vault", "entity": "theirs"})
        assert refused.is_error
        found = await client.call_tool("get", {"ids": [neighbours.known["turn"]]})
        assert found.is_error
        assert CANARY not in json.dumps(found.model_dump(mode="json"))


async def test_nothing_that_a_client_sends_changes_for_whom_the_bridge_asks(
    neighbours: Neighbours,
) -> None:
    """The name of a tool and ``_meta`` become parts of the body of a request of the owner's."""
    names = [
        f"recall\r\nAuthorization: Bearer {neighbours.theirs}",
        "recall\r\nPPS-Entity: theirs\r\n\r\n",
        "recall\nMcp-Name: recall",
        "=?base64?cmVjYWxs?=",
        "recall\x00",
    ]
    for era in ERAS:
        async with neighbours.served.stdio("mine", era) as client:
            for name in names:
                with pytest.raises(MCPError):
                    await client.call_tool(name, {"query": "vault"})
            meta: Any = {"entity": "theirs", "PPS-Entity": "theirs", "Authorization": "theirs"}
            found = await client.call_tool("recall", {"query": "vault"}, meta=meta)
            assert CANARY not in json.dumps(found.model_dump(mode="json"))
            assert (await done(client, "stats"))["entity"] == "mine"


@pytest.mark.parametrize(
    "name", ["", "MINE!", "mine.theirs", "../theirs", "mine theirs", "theirs\n", "*"]
)
def test_a_bridge_for_what_is_no_name_is_refused(neighbours: Neighbours, name: str) -> None:
    ended: subprocess.CompletedProcess[str] = neighbours.served.pps("mcp", "--entity", name)
    assert ended.returncode == 2
    assert ended.stdout == ""


def test_logs_name_entities_and_never_quote_memory(neighbours: Neighbours) -> None:
    neighbours.untouched()
    log = Path(neighbours.served.home / "test-server.log").read_text()
    assert "entity=theirs operation=remember outcome=ok" in log
    assert CANARY not in log
