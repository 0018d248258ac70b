from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from pps.entities.registry import Registry
from pps.entities.routing import Router
from pps.interfaces.http.auth import HostGuard, Names, Trust, bearer
from pps.interfaces.http.problems import Refused
from pps.server.runfile import new_secret

NAMES = Names(
    "127.0.0.1", ("memory.example.org", "lan.example:8377"), ("https://memory.example.org",)
)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8377",
        "localhost:1",
        "LOCALHOST",
        "[::1]:8377",
        "memory.example.org",
        "Memory.Example.Org",
        "lan.example:8377",
    ],
)
def test_our_own_names_are_let_in(host: str) -> None:
    assert NAMES.is_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8377",
        "evil.example:8377",
        "127.0.0.1:8377.evil.example",
        "127.0.0.1:",
        "localhost:abc",
        "memory.example.org:9999",
        "lan.example",
        "127.0.0.1@evil.example",
        "0.0.0.0",  # noqa: S104 - never bound
    ],
)
def test_other_names_are_refused(host: str) -> None:
    assert not NAMES.is_host(host)


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "http://127.0.0.1", "https://memory.example.org"]
)
def test_our_own_pages_may_ask(origin: str) -> None:
    assert NAMES.is_origin(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://memory.example.org",
        "https://memory.example.org.evil.example",
        "https://memory.example.org:444",
        "file://",
    ],
)
def test_other_pages_may_not(origin: str) -> None:
    assert not NAMES.is_origin(origin)


def test_a_server_on_every_interface_does_not_go_by_every_name() -> None:
    names = Names("0.0.0.0", (), ())  # noqa: S104 - not bound
    assert not names.is_host("0.0.0.0:8377")
    assert not names.is_host("192.168.1.7:8377")
    assert Names("192.168.1.7", (), ()).is_host("192.168.1.7:8377")


def _client(peer: str = "127.0.0.1") -> httpx.AsyncClient:
    async def ok(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    async def socket(socket: WebSocket) -> None:
        await socket.accept()

    app = Starlette(
        routes=[Route("/anything", ok), WebSocketRoute("/live", socket)],
        middleware=[Middleware(HostGuard, names=NAMES)],
    )
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, client=(peer, 1)), base_url="http://localhost"
    )


async def test_every_route_checks_host_and_origin() -> None:
    async with _client() as client:
        for path in ("/anything", "/nothing"):
            assert (await client.get(path, headers={"Host": "evil.example"})).status_code == 421
            assert (
                await client.get(path, headers={"Origin": "https://evil.example"})
            ).status_code == 403
        assert (
            await client.get("/anything", headers={"Origin": "http://localhost:5"})
        ).text == "ok"
        assert (await client.get("/nothing")).status_code == 404


async def test_a_websocket_of_another_origin_is_closed() -> None:
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(str(message["type"]))

    headers = [(b"host", b"localhost"), (b"origin", b"https://evil.example")]
    scope = {"type": "websocket", "path": "/live", "headers": headers, "client": ("127.0.0.1", 1)}

    async def never(*_: object) -> None:
        sent.append("reached")

    await HostGuard(never, NAMES)(scope, receive, send)
    assert sent == ["websocket.close"]


async def test_the_owners_secret_is_refused_from_another_machine() -> None:
    headers = {"Authorization": f"Bearer {new_secret()}"}
    async with _client("192.168.1.9") as stranger:
        assert (await stranger.get("/anything", headers=headers)).status_code == 401
        assert (
            await stranger.get("/anything", headers={"Authorization": "Bearer pps_e_x"})
        ).status_code == 200
    for peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        async with _client(peer) as owner:
            assert (await owner.get("/anything", headers=headers)).status_code == 200


def _asking(token: str, peer: str = "127.0.0.1") -> HTTPConnection:
    headers = [(b"authorization", f"Bearer {token}".encode())]
    return HTTPConnection({"type": "http", "headers": headers, "client": (peer, 1)})


async def test_trust_knows_entity_operator_and_owner_apart(tmp_path: Path) -> None:
    registry = await asyncio.to_thread(Registry, tmp_path / "home")
    made = registry.create("ana")
    assert made.token
    secret = new_secret()
    trust = Trust(registry, secret)
    operator = registry.operator_token()

    for token in (made.token, f"{secret}.ana"):
        caller = await trust.caller(token)
        assert caller is not None
        assert caller.entity == made.entity
    for wrong in (
        secret,
        f"{secret}.bob",
        f"{secret}.ANA",
        f"{secret}.",
        f"{new_secret()}.ana",
        operator,
        "",
        "x",
    ):
        assert await trust.caller(wrong) is None

    assert trust.is_owner(_asking(secret))
    assert not trust.is_owner(_asking(secret, "192.168.1.9"))
    for wrong in (made.token, operator, "", secret[:-1], f"{secret}.ana"):
        assert not trust.is_owner(_asking(wrong))

    assert await trust.is_operator(_asking(operator))
    assert await trust.is_operator(_asking(secret))
    assert not await trust.is_operator(_asking(made.token))

    registry.archive("ana")
    assert await trust.caller(f"{secret}.ana") is None


async def test_trust_knows_routers_by_token_and_the_owner_by_roots(tmp_path: Path) -> None:
    registry = await asyncio.to_thread(Registry, tmp_path / "home")
    made = registry.routers.create(["/work"], may_create=False)
    secret = new_secret()
    trust = Trust(registry, secret)

    caller = await trust.caller(made.token)
    assert caller is not None
    assert caller.router == (await trust.caller_of(_asking(made.token))).router == made.entry.router
    owner = await trust.caller(f"{secret}./work/a%20b,/x/../y")
    assert owner is not None
    assert owner.router == Router("owner:/work/a b,/y", ("/work/a b", "/y"), may_create=True)
    everywhere = (await trust.caller_of(_asking(secret))).router
    assert everywhere is not None
    assert everywhere.roots == ("/",)

    for wrong in (
        f"{secret}./work,relative",
        f"{secret}./%00",
        f"{new_secret()}./work",
        f"{secret}.,/work",
    ):
        assert await trust.caller(wrong) is None
    for others in (registry.create("ana").token or "", registry.operator_token()):
        assert (await trust.caller_of(_asking(others))).router is None
        assert not trust.is_owner(_asking(others))
    for wrong, host in ((secret, "192.168.1.9"), (f"{secret}./", "127.0.0.1"), ("", "127.0.0.1")):
        with pytest.raises(Refused):
            await trust.caller_of(_asking(wrong, host))
        assert not trust.is_owner(_asking(wrong, host))
    assert not await trust.is_operator(_asking(made.token))


def test_only_a_bearer_token_is_one() -> None:
    for header in (b"", b"Basic abc", b"Bearer", b"token abc"):
        connection = HTTPConnection(
            {"type": "http", "headers": [(b"authorization", header)], "client": None}
        )
        assert bearer(connection) == ""
    assert bearer(_asking("abc")) == "abc"
