"""One definition is all: an operation that is added to the table is offered by every interface, and wants an attack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from pps.app import App
from pps.config import Settings
from pps.core.errors import InvalidRequest
from pps.interfaces.http.problems import answered
from pps.interfaces.http.v1 import V1
from pps.interfaces.mcp.tools import tool
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import OPERATIONS, operations_for
from pps.operations.inputs import Input
from pps.operations.table import READS, operation
from tests.isolation.attacks import unattacked
from tests.reference import shown


class EchoInput(Input):
    """A word to say again."""

    word: str = Field(max_length=20, description="What is said again.")


@dataclass(frozen=True, slots=True)
class Echo:
    """What was said, and by whom."""

    said: str


@operation("Say it again", lambda echo: f"{echo.said}!", READS, toolset="upkeep", command="echo")
async def echo(memory: Memory, given: EchoInput) -> Echo:
    """Use it to hear a word again. Returns the word, and whose memory said it."""
    return Echo(f"{given.word} ({memory.entity.name})")


TABLE = (*OPERATIONS, echo)


@pytest.fixture
async def calls(tmp_path: Path) -> AsyncIterator[Calls]:
    async with App.open(Settings(home=tmp_path / "home")) as app:
        await app.create("ana")
        yield Calls(app, TABLE)


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
        assert (await http.post("/v1/echo", json={"word": "Rye"})).json() == {"said": "Rye (ana)"}
        words = await http.post("/v1/echo", json={"word": "Rye"}, headers={"Accept": "text/plain"})
        assert words.text == "Rye (ana)!"
        wrong = (await http.post("/v1/echo", json={"word": "Rye", "wrd": "Rye"})).json()
        assert (wrong["status"], wrong["field"]) == (400, "wrd")
        document = (await http.get("/openapi.json")).json()
    assert document["paths"]["/v1/echo"]["post"]["summary"] == "Say it again"
    assert "word" in document["components"]["schemas"]["echo.input"]["properties"]


async def test_it_is_a_tool_of_its_toolset_alone(calls: Calls) -> None:
    assert tool(echo).description == echo.description
    assert "echo" in await calls.operations(Caller.of_entity("ana", ["upkeep"]))
    assert "echo" not in await calls.operations(Caller.of_entity("ana", ["core"]))
    with pytest.raises(InvalidRequest, match="none of that name"):
        await calls.answer(Caller(("router",)), "echo", {"word": "Rye"})


def test_it_is_in_the_reference_and_fails_the_build_without_an_attack(tmp_path: Path) -> None:
    assert shown(echo).startswith("### `echo`\n\nUse it to hear a word again.")
    assert unattacked(TABLE, tmp_path) == {"entity echo"}
    assert operations_for("entity", table=TABLE)["echo"] is echo
