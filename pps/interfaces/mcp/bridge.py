"""The tools over stdio: a bridge to the server, which it starts when it is away.

The bridge opens no file and loads no model, and imports nothing but the standard library: a client
gives up after some seconds, and on a busy machine the protocol's library alone takes longer to
import. It answers by itself what it knows, and forwards calls of tools over HTTP. A server that was
stopped or replaced between two calls is no more than a pause.

Each request says which era of the protocol it belongs to: one that carries its version in ``_meta``
is of the present protocol, any other of the one that begins with ``initialize``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from pps.core import json_bounds
from pps.core.errors import InvalidRequest, PPSError
from pps.core.ids import check_actor, check_name
from pps.core.log_context import unforeseen
from pps.core.user_files import parse_toml, read_text
from pps.interfaces.mcp import messages
from pps.interfaces.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    Message,
    Notification,
    Request,
    RequestId,
    Undecodable,
    error_response,
)
from pps.interfaces.mcp.offer import (
    CAPABILITIES,
    DEFAULT,
    HANDSHAKE_VERSIONS,
    INSTRUCTIONS,
    LIST_FRESH_MS,
    MODERN_VERSION,
    PROJECT_INSTRUCTIONS,
    SERVER_INFO,
    SKILL_METHODS,
    SKILLS_FRESH_MS,
    UNKNOWN_SKILL_URI,
    WITH_SKILLS,
    skills_result,
)
from pps.interfaces.mcp.readable_ids import IdScanner
from pps.interfaces.mcp.upstream import Call, CallCancelled, ServerLost, Upstream

_log = logging.getLogger(__name__)

_PIECE_BYTES = 256 * 1024
"""Bytes that are read at once of a line that is too long."""

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_UNSUPPORTED_VERSION = -32022
_MAX_WORKERS = 32
"""Most calls that the server works on at once."""
_MAX_CALLS = 1_000
"""Most calls in hand; those beyond are refused."""
_DRAIN_S = 120.0
"""How long calls in hand may still be answered after the end of the input."""
_MAX_ECHO = 200
"""Most characters of a request's own words in an error."""
_REPEATS_S = (0.0, 0.5, 2.0)
"""Pauses before a lost call is made again; the next server may still be starting."""


class Output:
    """Writes whole messages, one a line; any thread may call it.

    What the client no longer reads is dropped.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._is_closed = False

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        data = _encode(message) + b"\n"
        with self._lock:
            if self._is_closed:
                return
            try:
                self._stream.write(data)
                self._stream.flush()
            except OSError:
                self._is_closed = True


def _encode(message: dict[str, Any]) -> bytes:
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can express
        return json.dumps(message, separators=(",", ":")).encode()


def decoded_messages(stream: BinaryIO, output: Output) -> Iterator[Message]:
    """Yield the messages of a stream until it ends.

    Answer each line that is none with an error, and go on.

    Blank lines are passed over. A last line without an end is read as a whole one.
    """
    while line := stream.readline(json_bounds.MAX_BYTES + 1):
        if not line.strip():
            continue
        try:
            if len(line) > json_bounds.MAX_BYTES:
                raise messages.too_large(_scan_rest(stream, line))
            yield messages.decode(line)
        except Undecodable as error:
            _log.warning("a message of %d bytes was refused: %s", len(line), error.message)
            for answer in error.answers:
                output.send(answer)


def _scan_rest(stream: BinaryIO, line: bytes) -> IdScanner:
    """Read a line that is too long to its end, keeping nothing but what tells its id."""
    scanner = IdScanner()
    scanner.feed(line)
    while line and not line.endswith(b"\n"):
        line = stream.readline(_PIECE_BYTES)
        scanner.feed(line)
    return scanner


@contextlib.contextmanager
def claimed_streams() -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Yield this process's stdin and stdout for the protocol alone.

    Meanwhile fd 0 is the null device and fd 1 is stderr, so nothing else reads or writes the
    protocol's streams.
    """
    source = _aside(0, os.open(os.devnull, os.O_RDONLY))
    sink = _aside(1, os.dup(2))
    try:
        yield source, sink
    finally:
        sys.stdout.flush()
        os.dup2(source.fileno(), 0)
        os.dup2(sink.fileno(), 1)


def _aside(descriptor: int, instead: int) -> BinaryIO:
    """Return a standard stream under another descriptor, and put a different file in its place."""
    own = os.dup(descriptor)
    os.dup2(instead, descriptor)
    os.close(instead)
    # A thread may still use this descriptor at the end: it is never closed, so never given to
    # another file.
    return os.fdopen(own, "rb" if descriptor == 0 else "wb", closefd=False)


def serve_stdio(home: Path, entity: str, toolset: str = "", actor: str = "") -> None:
    """Serve one entity's tools on stdin and stdout until stdin ends. Blocks.

    Args:
        home: The data folder.
        entity: The entity's name.
        toolset: Others than ``core``, with commas between.
        actor: Who writes; empty is the person.

    Raises:
        InvalidRequest: The name cannot be an entity's, the actor's cannot be one's, or there is no
            such toolset.
    """
    identity = f"{check_name(entity)}:{actor}" if check_actor(actor) else check_name(entity)
    pack_toolsets = _pack_toolsets(home, entity)
    names = {*toolset.split(",")}
    if names <= {"", "core"}:
        tools = packaged_tools("entity", toolset)
    elif _features_differ(home):
        tools = {}  # the server knows which features are on, and which toolsets they have
    else:
        tools = packaged_tools("entity", toolset, pack_toolsets)
        if "squad" in names or (pack_toolsets and (toolset == "all" or pack_toolsets & names)):
            tools = {}  # the server knows which packs and squad the entity has
    _serve(Upstream(home, identity, toolset), tools, INSTRUCTIONS, has_skills=True)


def serve_projects(home: Path, roots: Sequence[str]) -> None:
    """Serve the project tools of some roots on stdin and stdout until stdin ends. Blocks.

    Raises:
        InvalidRequest: A root is not an absolute path, or there are too many.
    """
    from pps.entities.installation_rows import any_switched_off  # imports SQLite
    from pps.entities.routing import owner

    identity = ",".join(quote(root) for root in owner(roots).roots)
    tools = {} if any_switched_off(home) else packaged_tools("router", "")
    _serve(Upstream(home, identity, ""), tools, PROJECT_INSTRUCTIONS, has_skills=False)


def _serve(
    upstream: Upstream, tools: dict[str, dict[str, Any]], instructions: str, *, has_skills: bool
) -> None:
    with claimed_streams() as (source, sink):
        output = Output(sink)
        bridge = _Bridge(upstream, tools, instructions, output, has_skills=has_skills)
        threading.Thread(target=_start_server, args=(upstream,), daemon=True).start()
        for message in decoded_messages(source, output):
            if isinstance(message, Request):
                bridge.answer(message)
            elif isinstance(message, Notification):
                bridge.notice(message)
            else:
                _log.warning("a response was dropped: the server asks for none")
        bridge.drain()


def _start_server(upstream: Upstream) -> None:
    """Start the server while the client is still shaking hands."""
    try:
        upstream.start()
    except PPSError as error:
        _log.warning("%s", error.message)


class _Refused(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class _Bridge:
    """Answers requests: handshake and lists at once, calls of tools by the server in threads."""

    def __init__(
        self,
        upstream: Upstream,
        tools: dict[str, dict[str, Any]],
        instructions: str,
        output: Output,
        *,
        has_skills: bool,
    ) -> None:
        self._has_skills = has_skills
        self._capabilities = WITH_SKILLS if has_skills else CAPABILITIES
        self._upstream = upstream
        self._tools = tools
        self._instructions = instructions
        self._output = output
        self._lock = threading.Lock()
        self._calls: dict[str, list[Call]] = {}
        self._pending: queue.SimpleQueue[tuple[Request, Call]] = queue.SimpleQueue()
        self._in_hand = 0
        self._workers = 0

    def answer(self, request: Request) -> None:
        """Answer a request, or hand it to a thread that will."""
        is_modern = _is_modern(request)
        try:
            if is_modern:
                _check_envelope(request.params["_meta"])
            if request.method == "tools/call":
                _check_call(request.params)
                self._hand_over(request)
            elif request.method == "tools/list":
                _check_list(request.params)
                self._list_tools(request)
            else:
                self._send_result(request, self._result(request, is_modern=is_modern))
        except _Refused as error:
            self._output.send(error_response(request.id, error.code, error.message, error.data))

    def notice(self, notification: Notification) -> None:
        """Take a notification: one that cancels a call does so; nothing depends on any other."""
        if notification.method != "notifications/cancelled":
            return
        request_id = notification.params.get("requestId")
        with self._lock:
            calls = list(self._calls.get(_key(request_id), ()))
        for call in calls:
            call.cancel()

    def drain(self) -> None:
        """Wait until each call in hand is answered, for a bounded time."""
        until = time.monotonic() + _DRAIN_S
        while self._in_hand and time.monotonic() < until:
            time.sleep(0.01)

    def _result(self, request: Request, *, is_modern: bool) -> dict[str, Any]:
        if request.method == "initialize":
            return self._initialize(request.params)
        if request.method == "ping" and not is_modern:
            return {}
        if request.method == "server/discover" and is_modern:
            return self._discover()
        if request.method in SKILL_METHODS and self._has_skills:
            return _skills(request, is_modern=is_modern)
        raise _Refused(METHOD_NOT_FOUND, "Method not found", request.method[:_MAX_ECHO])

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        version = params.get("protocolVersion")
        client = params.get("clientInfo")
        is_sound = (
            isinstance(version, str)
            and isinstance(params.get("capabilities"), dict)
            and isinstance(client, dict)
        )
        if not is_sound:
            problem = (
                "initialize needs protocolVersion (a string), capabilities and clientInfo (objects)"
            )
            raise _Refused(INVALID_PARAMS, problem)
        return {
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": {
                name: value for name, value in self._capabilities.items() if name != "extensions"
            },
            "serverInfo": SERVER_INFO,
            "instructions": self._instructions,
        }

    def _discover(self) -> dict[str, Any]:
        return {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self._capabilities,
            "instructions": self._instructions,
            "ttlMs": 0,
            "cacheScope": "private",
        }

    def _list_tools(self, request: Request) -> None:
        """List the tools: the package's at once, while the server may still be starting.

        A pack's as it says them.
        """
        if self._tools:
            self._send_result(request, {"tools": list(self._tools.values())})
        else:
            self._hand_over(request)

    def _send_result(self, request: Request, result: dict[str, Any]) -> None:
        self._output.send(self._response(request, result))

    def _response(self, request: Request, result: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a request, in the form of its era of the protocol."""
        if _is_modern(request):
            meta = {**result.get("_meta", {}), _SERVER_KEY: SERVER_INFO}
            result = {**result, "resultType": "complete", "_meta": meta}
            if request.method == "tools/list":
                result |= {"ttlMs": LIST_FRESH_MS, "cacheScope": "private"}
        return {"jsonrpc": "2.0", "id": request.id, "result": result}

    def _hand_over(self, request: Request) -> None:
        """Let a thread forward a request; refuse it where too many are in hand."""
        call = Call()
        with self._lock:
            if self._in_hand >= _MAX_CALLS:
                raise _Refused(SERVER_ERROR, f"more than {_MAX_CALLS:,} calls are in hand; wait")
            self._in_hand += 1
            self._calls.setdefault(_key(request.id), []).append(call)
            is_new_worker = self._workers < min(self._in_hand, _MAX_WORKERS)
            self._workers += is_new_worker
        self._pending.put((request, call))
        if is_new_worker:
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            request, call = self._pending.get()
            try:
                self._output.send(self._forwarded(request, call))
            except CallCancelled:
                pass
            finally:
                with self._lock:
                    self._in_hand -= 1
                    self._forget(request.id, call)

    def _forget(self, request_id: RequestId, call: Call) -> None:
        calls = self._calls[_key(request_id)]
        calls.remove(call)
        if not calls:
            del self._calls[_key(request_id)]

    def _forwarded(self, request: Request, call: Call) -> dict[str, Any]:
        """Return the response to a request that the server answers; raises CallCancelled."""
        try:
            response = self._ask_again_if_lost(request, call)
        except PPSError as error:
            return self._failure(request, error)
        except CallCancelled:
            raise
        except Exception as error:  # noqa: BLE001 - the interface's outermost call
            unforeseen(_log, f"{request.method} failed", error)
            text = "something went wrong inside PPS; its log has the details"
            return error_response(request.id, INTERNAL_ERROR, text)
        if "error" in response:
            return {"jsonrpc": "2.0", "id": request.id, "error": response["error"]}
        result = cast("dict[str, Any]", response["result"])
        if request.method == "tools/list":
            self._tools = {tool["name"]: tool for tool in result["tools"]}
        return self._response(request, result)

    def _failure(self, request: Request, error: PPSError) -> dict[str, Any]:
        """Return an error: of a tool as a result for the model, else as JSON-RPC's."""
        from pps.core.model_text import shown_error  # not at the top: the bridge starts without it

        if request.method != "tools/call":
            return error_response(request.id, INTERNAL_ERROR, shown_error(error.message))
        again = ", try again later" if error.retryable else ""
        text = shown_error(f"{error.message} ({error.code}{again})")
        return self._response(
            request, {"content": [{"type": "text", "text": text}], "isError": True}
        )

    def _ask_again_if_lost(self, request: Request, call: Call) -> dict[str, Any]:
        """Ask the server; if it is lost meanwhile, ask again if the request is safe to repeat."""
        try:
            return self._ask(request, call)
        except ServerLost as error:
            lost = error
        for pause_s in _REPEATS_S if self._may_repeat(request) else ():
            time.sleep(pause_s)
            with contextlib.suppress(ServerLost):
                return self._ask(request, call)
        raise lost

    def _ask(self, request: Request, call: Call) -> dict[str, Any]:
        call.check()
        meta = cast("dict[str, Any]", request.params.get("_meta") or {})

        def notify(progress: dict[str, Any]) -> None:
            params = {"progressToken": meta.get("progressToken"), **progress}
            self._output.send(
                {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            )

        return self._upstream.ask(request.method, request.params, call, notify)

    def _may_repeat(self, request: Request) -> bool:
        """Tell whether asking twice is the same as once.

        A text that was stored just now is recognised.
        """
        if request.method != "tools/call":
            return True
        name = request.params["name"]
        hints = self._tools.get(name, {}).get("annotations", {})
        is_safe = hints.get("readOnlyHint") or hints.get("idempotentHint")
        return name == "remember" or bool(is_safe)


def _skills(request: Request, *, is_modern: bool) -> dict[str, Any]:
    uri = request.params.get("uri")
    result = skills_result(request.method, uri)
    if result is None:
        raise _Refused(INVALID_PARAMS, UNKNOWN_SKILL_URI, {"uri": str(uri)[:_MAX_ECHO]})
    fresh = {"ttlMs": SKILLS_FRESH_MS, "cacheScope": "public"} if is_modern else {}
    return {**result, **fresh}


def _key(request_id: object) -> str:
    return json.dumps(request_id, default=str)


def _is_modern(request: Request) -> bool:
    """Tell whether a request carries its protocol version.

    ``initialize`` is of the older era in any case.
    """
    meta = request.params.get("_meta")
    return request.method != "initialize" and isinstance(meta, dict) and _VERSION_KEY in meta


def _check_envelope(meta: dict[str, Any]) -> None:
    """Raise _Refused if required fields of the present protocol are missing or wrong."""
    if _CAPABILITIES_KEY not in meta:
        raise _Refused(
            INVALID_PARAMS,
            f"params._meta is missing the required envelope key(s): {_CAPABILITIES_KEY}",
        )
    version = meta[_VERSION_KEY]
    if not isinstance(version, str):
        raise _Refused(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version != MODERN_VERSION:
        data = {"supported": [MODERN_VERSION], "requested": version[:_MAX_ECHO]}
        raise _Refused(_UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _check_call(params: dict[str, Any]) -> None:
    if not isinstance(params.get("name"), str):
        raise _Refused(INVALID_PARAMS, "tools/call: name must be a string")
    if not isinstance(params.get("arguments") or {}, dict):
        raise _Refused(INVALID_PARAMS, "tools/call: arguments must be an object")
    meta: Any = params.get("_meta") or {}
    if not isinstance(meta, dict):
        raise _Refused(INVALID_PARAMS, "tools/call: _meta must be an object")
    token = cast("dict[str, Any]", meta).get("progressToken", "")
    if isinstance(token, bool) or not isinstance(token, str | int):
        raise _Refused(
            INVALID_PARAMS, "tools/call: _meta.progressToken must be a text or a whole number"
        )


def _check_list(params: dict[str, Any]) -> None:
    if not isinstance(params.get("cursor") or "", str):
        raise _Refused(INVALID_PARAMS, "tools/list: cursor must be a string")


def packaged_tools(
    audience: str, toolset: str, pack_toolsets: frozenset[str] = frozenset()
) -> dict[str, dict[str, Any]]:
    """Return the tools of some toolsets as the package has them, by name.

    To import the table of operations takes longer than a client waits. Toolsets of packs are passed
    over.

    Raises:
        InvalidRequest: There is no such toolset.
    """
    table: dict[str, list[dict[str, Any]]] = json.loads(
        Path(__file__).with_name("tools.json").read_text()
    )[audience]
    if toolset == "all":
        wanted = [name for name in table if name != "squad"]
    else:
        wanted = (toolset or DEFAULT[audience]).split(",")
    unknown = [name for name in wanted if name not in table and name not in pack_toolsets]
    if unknown:
        known = ", ".join([*table, *sorted(pack_toolsets), "all"])
        raise InvalidRequest("--toolset", f"{unknown[0]!r} is none of {known}")
    return {tool["name"]: tool for name in wanted for tool in table.get(name, ())}


def _features_differ(home: Path) -> bool:
    """Tell whether the enabled features differ from those of the packaged tools."""
    from pps.config.feature_points import other_feature_points
    from pps.entities.installation_rows import any_switched_off  # imports SQLite

    return bool(other_feature_points()) or any_switched_off(home)


def _pack_toolsets(home: Path, entity: str) -> frozenset[str]:
    """Return the toolsets of an entity's packs, as its entity.toml names them.

    The server reports errors of that file.
    """
    try:
        card = parse_toml(read_text(home / "entities" / entity / "entity.toml"))
    except (OSError, ValueError):
        return frozenset()
    return frozenset(f"{name}{form}" for name in card.get("packs", ()) for form in ("", "-typed"))
