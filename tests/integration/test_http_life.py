from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from pps.core.errors import ConfigError, StoreError
from pps.interfaces.http import life
from pps.interfaces.http.requests import Activity, ActivityMeter
from pps.server import runfile
from tests.waiting import PATIENCE_S


async def _quiet() -> bool:
    return False


async def _hello(_: Request) -> Response:
    return PlainTextResponse("hello")


async def _slow(_: Request) -> Response:
    await asyncio.sleep(0.6)
    return PlainTextResponse("done")


async def _listen(request: Request) -> Response:
    async def events() -> AsyncIterator[bytes]:
        yield b"listening\n"
        while not await request.is_disconnected():  # noqa: ASYNC110 - what any stream does
            await asyncio.sleep(0.02)

    return StreamingResponse(events())


@asynccontextmanager
async def _served(
    home: Path,
    *,
    auto: bool = False,
    idle_stop_s: float = 600,
    busy: Callable[[], Awaitable[bool]] = _quiet,
) -> AsyncGenerator[tuple[runfile.RunFile, Activity, asyncio.Task[None]]]:
    activity = Activity()
    app = Starlette(
        routes=[
            Route("/", _hello),
            Route("/slow", _slow, methods=["POST"]),
            Route("/listen", _listen),
        ],
        middleware=[Middleware(ActivityMeter, activity=activity)],
    )
    plan = life.ServerPlan(home, runfile.new_secret(), auto, idle_stop_s, busy)
    task = asyncio.create_task(life.run(app, life.bind("127.0.0.1", 0), activity, plan))
    while (run := runfile.read(home)) is None:
        assert not task.done()
        await asyncio.sleep(0.01)
    yield run, activity, task
    activity.stopping.set()
    await task


async def test_the_run_file_is_there_while_the_server_answers(tmp_path: Path) -> None:
    async with _served(tmp_path) as (run, activity, task), httpx.AsyncClient() as client:
        assert run.pid == os.getpid()
        assert (await client.get(run.url)).text == "hello"
        activity.stopping.set()
        await task
        assert runfile.read(tmp_path) is None


async def test_a_request_in_hand_is_answered_before_the_end(tmp_path: Path) -> None:
    async with _served(tmp_path) as (run, activity, task), httpx.AsyncClient() as client:
        slow = asyncio.create_task(client.post(f"{run.url}/slow"))
        while not activity.in_flight:  # noqa: ASYNC110 - a counter
            await asyncio.sleep(0.01)
        activity.stopping.set()
        assert (await slow).text == "done"
        await task


async def test_a_stream_that_only_listens_does_not_hold_the_end_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "_GRACE_S", 10 * PATIENCE_S)  # what is in hand would get so long
    async with _served(tmp_path) as (run, activity, task), httpx.AsyncClient() as client:
        async with client.stream("GET", f"{run.url}/listen") as response:
            pieces = response.aiter_bytes()
            assert await anext(pieces) == b"listening\n"
            activity.stopping.set()
            with pytest.raises(httpx.RemoteProtocolError):
                await asyncio.wait_for(anext(pieces), PATIENCE_S)
        await asyncio.wait_for(task, PATIENCE_S)


async def test_a_server_started_by_need_ends_when_idle(tmp_path: Path) -> None:
    async with _served(tmp_path, auto=True, idle_stop_s=0.3) as (run, _, task):
        assert run.auto
        await asyncio.wait_for(task, PATIENCE_S)
        assert runfile.read(tmp_path) is None


async def test_it_does_not_end_while_it_is_busy_or_in_use(tmp_path: Path) -> None:
    working = True

    async def busy() -> bool:
        return working

    async with (
        _served(tmp_path, auto=True, idle_stop_s=0.2, busy=busy) as (run, _, task),
        httpx.AsyncClient() as client,
    ):
        async with client.stream("GET", f"{run.url}/listen"):
            working = False
            await asyncio.sleep(0.6)
            assert not task.done()
        working = True
        await asyncio.sleep(0.6)
        assert not task.done()
        working = False
        await asyncio.wait_for(task, PATIENCE_S)


async def test_a_server_started_by_hand_stays(tmp_path: Path) -> None:
    async with _served(tmp_path, auto=False, idle_stop_s=0.1) as (_, _, task):
        await asyncio.sleep(0.5)
        assert not task.done()


async def test_a_signal_ends_it_in_order(tmp_path: Path) -> None:
    async with _served(tmp_path) as (_, _, task):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(task, PATIENCE_S)
        assert runfile.read(tmp_path) is None


def test_a_taken_port_gives_way_to_a_free_one_only_where_nobody_chose_it() -> None:
    with life.bind("127.0.0.1", 0) as first:
        taken = first.getsockname()[1]
        with life.bind("127.0.0.1", taken, or_free=True) as second:
            assert second.getsockname()[1] != taken
        with pytest.raises(ConfigError, match=f"{taken} is taken"):
            life.bind("127.0.0.1", taken)


async def test_a_server_that_cannot_be_found_ends_and_says_why(tmp_path: Path) -> None:
    plan = life.ServerPlan(
        tmp_path / "full", runfile.new_secret(), False, 60, _quiet
    )  # no file can be made there
    with (
        life.bind("127.0.0.1", 0) as listener,
        pytest.raises(StoreError, match=r"server\.json: cannot be written"),
    ):
        await asyncio.wait_for(life.run(Starlette(), listener, Activity(), plan), PATIENCE_S)


def test_an_address_of_another_machine_is_a_setting_gone_wrong() -> None:
    with pytest.raises(ConfigError, match=r"server\.host"):
        life.bind("192.0.2.1", 0)


def test_connections_send_at_once() -> None:
    """asyncio turns off Nagle's algorithm only where the socket names its protocol."""
    with life.bind("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
