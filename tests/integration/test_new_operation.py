"""One definition is all: an operation that is added to the table is offered by every interface, and wants an attack."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from pps.app import App
from pps.config import Settings
from pps.core.errors import InvalidRequest, NotFound
from pps.ingest.drafts import FactDraft
from pps.ingest.indexer import Progress
from pps.interfaces.http.problems import answered
from pps.interfaces.http.v1 import V1
from pps.interfaces.mcp.endpoint import Endpoint
from pps.interfaces.mcp.tools import tool
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import OPERATIONS, operations_for
from pps.operations.inputs import Input
from pps.operations.table import READS, UPKEEP
from tests.isolation.attacks import unattacked
from tests.reference import shown


class EchoInput(Input):
    """A word to say again."""

    word: str = Field(max_length=20, description="What is said again.")


@dataclass(frozen=True, slots=True)
class Echo:
    """What was said, and by whom."""

    said: str


@UPKEEP.operation("Say it again", lambda echo: f"{echo.said}!", READS, command="echo")
async def echo(memory: Memory, given: EchoInput) -> Echo:
    """Use it to hear a word again. Returns the word, and whose memory said it."""
    return Echo(f"{given.word} ({memory.entity.name})")


@UPKEEP.operation("Count", lambda done: f"{done.said}.", READS, command="count")
async def count(memory: Memory, given: EchoInput, progress: Progress | None) -> Echo:
    """Use it to hear a word letter by letter. Returns the word."""
    for done, letter in enumerate(given.word, 1):
        if progress is not None:
            progress(letter, done, len(given.word))
        await asyncio.sleep(0.11)  # more often nobody is told
    return Echo(given.word)


TABLE = (*OPERATIONS, echo, count)
CONTRIBUTING = Path(__file__).parents[2] / "docs" / "contributing.md"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with App.open(Settings(home=tmp_path / "home")) as opened:
        await opened.create("ana")
        yield opened


@pytest.fixture
def calls(app: App) -> Calls:
    return Calls(app, TABLE)


async def test_it_is_asked_for_over_http_and_is_in_the_document(calls: Calls) -> None:
    async def caller_of(_: Request) -> Caller:
        return Caller.of_entity("ana")

    v1 = V1(calls, cast(Any, SimpleNamespace(caller_of=caller_of)))
    routes = [
        Route("/v1/{operation}", answered(v1.call), methods=["POST"]),
        Route("/openapi.json", answered(v1.openapi)),
    ]
    transport = httpx.ASGITransport(Starlette(routes=routes))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://x", headers={"Authorization": "Bearer x"}
    ) as http:
        assert (await http.post("/v1/echo", json={"word": "Rye"})).json() == {
            "said": "Rye (ana)",
            "entity": "ana",
        }
        words = await http.post("/v1/echo", json={"word": "Rye"}, headers={"Accept": "text/plain"})
        assert words.text == "Rye (ana)!"
        wrong = (await http.post("/v1/echo", json={"word": "Rye", "wrd": "Rye"})).json()
        assert (wrong["status"], wrong["field"]) == (400, "wrd")
        document = (await http.get("/openapi.json")).json()
    assert document["paths"]["/v1/echo"]["post"]["summary"] == "Say it again"
    assert "word" in document["components"]["schemas"]["echo.input"]["properties"]


async def test_it_is_a_tool_of_its_toolset_alone(calls: Calls) -> None:
    assert tool(echo)["description"] == echo.description
    assert "echo" in await calls.operations(Caller.of_entity("ana", ["upkeep"]))
    assert "echo" not in await calls.operations(Caller.of_entity("ana", ["core"]))
    with pytest.raises(InvalidRequest, match="none of that name"):
        await calls.answer(Caller(("router",)), "echo", {"word": "Rye"})


async def test_over_mcp_a_long_one_tells_how_far_it_is_whoever_asks_to_be_told(
    app: App, calls: Calls
) -> None:
    ana = app.registry.get("ana").entity

    async def whose(_: str) -> Caller:
        return Caller.of_entity(ana)

    told: list[tuple[float, float | None, str | None]] = []

    async def tell(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    endpoint = Endpoint(calls, whose, hosts=["x"], origins=[])
    headers = {"Authorization": "Bearer x"}
    async with (
        endpoint.running(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(endpoint), headers=headers) as http,
        Client(
            streamable_http_client("http://x/mcp?toolset=all", http_client=http), mode="2026-07-28"
        ) as client,
    ):
        answer = await client.call_tool("count", {"word": "rye"}, progress_callback=tell)
        assert answer.structured_content == {"said": "rye", "entity": "ana"}
        assert told == [(1, 3, "r"), (2, 3, "y"), (3, 3, "e")]
        assert (await client.call_tool("count", {"word": "rye"})).structured_content == {
            "said": "rye",
            "entity": "ana",
        }


async def test_what_is_not_found_is_told_with_the_id_that_was_asked_for(calls: Calls) -> None:
    caller = Caller.of_entity("ana")
    for id_ in ("1b4e28ba", "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"):
        with pytest.raises(NotFound) as caught:
            await calls.answer(caller, "get", {"ids": [id_]})
        assert caught.value.message.startswith(f"id not found: '{id_}'; recall and timeline show")


def test_it_is_in_the_reference_and_fails_the_build_without_an_attack(tmp_path: Path) -> None:
    assert shown(echo).startswith("### `echo`\n\nUse it to hear a word again.")
    assert unattacked(TABLE, tmp_path) == {"entity echo", "entity count"}
    assert operations_for("entity", table=TABLE)["echo"] is echo


async def test_the_example_of_the_contributors_page_works_as_it_stands(app: App) -> None:
    page = CONTRIBUTING.read_text(encoding="utf-8")
    block = page.split("<!-- example: an operation -->")[1].split("<!-- /example -->")[0]
    code = textwrap.dedent(block).strip().removeprefix("```python").removesuffix("```")
    example = ModuleType("example_of_contributing")
    sys.modules[example.__name__] = example
    try:
        exec(code, example.__dict__)  # noqa: S102 (our own page)
        async with app.memory("ana") as memory:
            await memory.remember(
                "Ana moved to Lisbon.", facts=[FactDraft("Ana", "LIVES_IN", "Lisbon")]
            )
        calls = Calls(app, (*OPERATIONS, example.turn_shares))
        answer = await calls.answer(Caller.of_entity("ana"), "turn_shares", {})
        assert answer.data["facts_per_turn"] == 1.0
        assert answer.text == "1.0 facts for each turn."
        with pytest.raises(InvalidRequest, match="digits"):
            await calls.answer(Caller.of_entity("ana"), "turn_shares", {"digits": 5})
    finally:
        del sys.modules[example.__name__]
