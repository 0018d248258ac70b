"""The tools over stdio: a bridge to the server, which it starts when it is away.

The bridge opens no file and loads no model. Each call goes to the server through a fresh client of
the present protocol on one shared HTTP connection, so a server that was stopped or replaced between two
calls is no more than a pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from pps.core.errors import InvalidRequest, PPSError, StoreUnavailable, UnknownEntity
from pps.core.file_lock import is_held
from pps.core.ids import check_actor, check_name
from pps.core.user_files import parse_toml, read_text
from pps.entities.routing import owner
from pps.interfaces.mcp.protocol import (
    DEFAULT,
    INSTRUCTIONS,
    PROJECT_INSTRUCTIONS,
    Context,
    make_server,
)
from pps.interfaces.mcp.stdio import bounded_stdio
from pps.server import Link, RunFile, connect, runfile

_log = logging.getLogger(__name__)

_ERA = "2026-07-28"
_CALL_S = 300.0
_PROOF_S = 5.0
_T = TypeVar("_T")


async def serve_stdio(home: Path, entity: str, toolset: str = "", actor: str = "") -> None:
    """Serve one entity's tools on stdin and stdout until stdin ends.

    Args:
        home: The data folder.
        entity: The entity's name.
        toolset: Others than ``core``, with commas between.
        actor: Who writes; empty is the person.

    Raises:
        InvalidRequest: The name cannot be an entity's, or the actor's cannot be one's.
    """
    whose = f"{check_name(entity)}:{actor}" if check_actor(actor) else check_name(entity)
    await _serve(home, whose, INSTRUCTIONS, toolset, _of_packs(home, entity))


async def serve_projects(home: Path, roots: Sequence[str]) -> None:
    """Serve the project tools on stdin and stdout until stdin ends, for projects at or below some roots.

    Raises:
        InvalidRequest: A root is not an absolute path, or there are too many.
    """
    await _serve(
        home, ",".join(quote(root) for root in owner(roots).roots), PROJECT_INSTRUCTIONS, ""
    )


async def _serve(
    home: Path, whose: str, instructions: str, toolset: str, of_packs: frozenset[str] = frozenset()
) -> None:
    tools = built("router" if whose.startswith("/") else "entity", toolset, of_packs)
    asked = {*toolset.split(",")}
    if "squad" in asked or (of_packs and (toolset == "all" or of_packs & asked)):
        tools = {}  # whose packs and squad they are the server knows
    timeout = httpx2.Timeout(10.0, read=_CALL_S)
    async with (
        httpx2.AsyncClient(timeout=timeout, trust_env=False) as http,
        bounded_stdio() as (source, sink),
    ):
        bridge = _Bridge(home, whose, toolset, tools, http)
        server = make_server(bridge.list_tools, bridge.call_tool, instructions)
        warming = asyncio.create_task(bridge.warm())
        try:
            await server.run(source, sink, server.create_initialization_options())
        finally:
            warming.cancel()


class _Bridge:
    """Forwards what a client asks to the server, for the entity or the roots that this bridge was started for."""

    def __init__(
        self,
        home: Path,
        whose: str,
        toolset: str,
        tools: dict[str, types.Tool],
        http: httpx2.AsyncClient,
    ) -> None:
        self._home = home
        self._whose = whose
        self._toolset = toolset
        self._tools = tools
        self._http = http
        self._asking: RunFile | None = None
        http.event_hooks = {"request": [self._watched]}

    async def warm(self) -> None:
        """Start the server while the client is still shaking hands."""
        try:
            await asyncio.to_thread(connect, self._home)
        except PPSError as error:
            _log.warning("%s", error.message)

    async def list_tools(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return the tools: the table's at once, while the server may still be starting; a pack's, as it says them."""

        async def ask(client: Client) -> types.ListToolsResult:
            return await client.list_tools()

        if not self._tools:
            self._tools = {one.name: one for one in (await self._forward(ask)).tools}
        return types.ListToolsResult(tools=list(self._tools.values()))

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Let the server do it; progress and cancelling are passed on."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            await context.session.report_progress(progress, total, message)

        async def ask(client: Client) -> types.CallToolResult:
            return await client.call_tool(params.name, params.arguments, progress_callback=report)

        try:
            return await self._forward(ask)
        except _Lost as lost:
            return await self._again(ask, params.name, lost)

    async def _again(self, ask: Callable[[Client], Awaitable[_T]], name: str, lost: _Lost) -> _T:
        """Ask once more what is safe to repeat; a few times, since the next server may still be starting."""
        for pause_s in (0.0, 0.5, 2.0):
            await asyncio.sleep(pause_s)
            with contextlib.suppress(_Lost):
                if not self._may_repeat(name):
                    break
                return await self._forward(ask)
        raise lost

    async def _forward(self, ask: Callable[[Client], Awaitable[_T]]) -> _T:
        """Ask the server; when it is away, start it and ask once more.

        A refused connection means that nothing was sent, so asking again cannot do a thing twice.
        """
        run = await asyncio.to_thread(self._running)
        for last in (False, True):
            if run is None or last:
                run = (await asyncio.to_thread(connect, self._home)).run
            try:
                return await self._asked(run, ask)
            except httpx2.ConnectError:
                if last:
                    break
            except MCPError as error:
                if error.code == types.INTERNAL_ERROR:
                    await asyncio.to_thread(self._check_entity, run)
                raise
        raise StoreUnavailable("the server cannot be reached; `pps doctor` says why")

    def _may_repeat(self, name: str) -> bool:
        """Tell whether asking twice is the same as once. A text that was stored just now is recognised."""
        hints = self._tools[name].annotations if name in self._tools else None
        return name == "remember" or bool(hints and (hints.read_only_hint or hints.idempotent_hint))

    def _running(self) -> RunFile | None:
        """Return where the server is; None when there is none, or only what a killed one left behind."""
        run = runfile.read(self._home)
        return run if run and is_held(runfile.lock_file(self._home)) else None

    def _check_entity(self, run: RunFile) -> None:
        """Say so when it is the entity that is missing: over HTTP that is a refusal without a reason."""
        if self._whose.startswith("/"):
            return
        name = self._whose.partition(":")[0]
        if Link(run).call("entity_show", "", {"name": name})["data"]["archived"]:
            raise UnknownEntity(
                f"entity {name!r} is archived; `pps entity archive {name} --undo` brings it back"
            )

    async def _watched(self, request: httpx2.Request) -> None:
        request.extensions["trace"] = self._traced

    async def _traced(self, event: str, info: dict[str, Any]) -> None:
        """Let the server prove itself on each new connection, before anything is sent on it."""
        if event != "connection.connect_tcp.complete" or self._asking is None:
            return
        run, stream, reply = self._asking, info["return_value"], b""
        nonce, asked = runfile.question(run)
        try:
            async with asyncio.timeout(
                _PROOF_S
            ):  # all in all: a stranger may send a byte now and then
                await stream.write(asked)
                while not runfile.is_whole(reply) and (piece := await stream.read(4_096)):
                    reply += piece
            runfile.check(run, nonce, reply)
        except (runfile.Stranger, TimeoutError) as stranger:
            await stream.aclose()
            raise httpx2.ConnectError(str(stranger)) from None

    async def _asked(self, run: RunFile, ask: Callable[[Client], Awaitable[_T]]) -> _T:
        self._asking = run
        self._http.headers["Authorization"] = f"Bearer {run.secret}.{self._whose}"
        transport = streamable_http_client(
            f"{run.url}/mcp?toolset={quote(self._toolset, safe=',')}", http_client=self._http
        )
        try:
            async with Client(transport, mode=_ERA) as client:
                return await ask(client)
        except BaseExceptionGroup as group:
            raise _cause(group) from None
        except httpx2.TransportError as error:
            raise _cause(BaseExceptionGroup("", [error])) from None


class _Lost(StoreUnavailable):
    """The server went away in the middle of a call: it may or may not have been done."""

    def __init__(self) -> None:
        super().__init__(
            "the server went away in the middle of the call; look whether it was done, then call again"
        )


def built(
    audience: str, toolset: str, of_packs: frozenset[str] = frozenset()
) -> dict[str, types.Tool]:
    """Return the tools of some toolsets as the package has them: to import the table takes longer than a client waits.

    Those of packs, which are none of the package's, are passed over.

    Raises:
        InvalidRequest: There is no such toolset.
    """
    table: dict[str, list[dict[str, Any]]] = json.loads(
        Path(__file__).with_name("tools.json").read_text()
    )[audience]
    wanted = (
        [one for one in table if one != "squad"]
        if toolset == "all"
        else (toolset or DEFAULT[audience]).split(",")
    )
    if unknown := [one for one in wanted if one not in table and one not in of_packs]:
        raise InvalidRequest(
            "--toolset", f"{unknown[0]!r} is none of {', '.join([*table, *sorted(of_packs)])}, all"
        )
    return {
        str(one["name"]): types.Tool.model_validate(one)
        for name in wanted
        for one in table.get(name, ())
    }


def _of_packs(home: Path, entity: str) -> frozenset[str]:
    """Return the toolsets of an entity's packs, as its card names these; what is wrong with it the server says."""
    try:
        card = parse_toml(read_text(home / "entities" / entity / "entity.toml"))
    except (OSError, ValueError):
        return frozenset()
    return frozenset(f"{name}{rest}" for name in card.get("packs", ()) for rest in ("", "-typed"))


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return what really went wrong: the SDK's errors come in groups of groups."""
    found = _leaves(group)
    for kind in (MCPError, httpx2.ConnectError):
        first = next((one for one in found if isinstance(one, kind)), None)
        if first is not None:
            return first
    if any(isinstance(one, httpx2.TransportError) for one in found):
        return _Lost()
    return found[0]


def _leaves(error: BaseException) -> list[BaseException]:
    within: Sequence[BaseException] = getattr(error, "exceptions", ())  # of a group
    return [leaf for one in within for leaf in _leaves(one)] or [error]
