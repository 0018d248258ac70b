"""The server's life: a port, a run file while it answers, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from pps.core.errors import ConfigError
from pps.core.version import __version__
from pps.interfaces.http.auth import OWNER_STATE, is_loopback
from pps.interfaces.http.requests import Activity
from pps.server import RunFile, runfile
from pps.server.owner_socket import peer_uid

MAX_FRAME = 512 * 1024
"""Most bytes of one message from a client; one text of the longest length in JSON takes less."""
PING_S = 20.0
_socket_log = logging.getLogger(f"{__name__}.sockets")
# It would log each connection's path, and at debug what is said and both halves of the session.
_socket_log.setLevel(logging.WARNING)

MAX_HEAD = 64 * 1024
"""Most bytes of a request's first line and headers, and of what a body has beside its content."""
HEAD_S = 30.0
"""Longest time from a connection's begin, or a next request's first byte, to complete headers."""
_log = logging.getLogger(__name__)
_GRACE_S = 10
_KEEP_ALIVE_S = 120
_LOOK_S = 1.0
_PAUSE_S = 0.01


class QuietSocket(WebSocketsSansIOProtocol):
    """A socket of a page: uvicorn's, without its logs or waits for a slow reader.

    Its logs would hold paths, headers and frames.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _socket_log
        self.conn.logger = _socket_log
        self.conn.debug = False

    async def send(self, message: Any) -> None:
        """Send a message; at a close, a client that has not read the earlier ones is dropped."""
        if message["type"] == "websocket.close" and not self.writable.is_set():
            self.transport.abort()
            return
        await super().send(message)


class BoundedHead(HttpToolsProtocol):
    """uvicorn's protocol, which would gather headers for as long as they come."""

    _read = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        link: socket.socket = transport.get_extra_info("socket")
        if link.family == socket.AF_UNIX:
            if not _is_own(link):
                transport.abort()
                return
            # Each request's scope gets a copy; no client can write into it.
            self.app_state = {**self.app_state, OWNER_STATE: True}
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._read += len(data)
        super().data_received(data)
        if self._read > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response(f"Headers of more than {MAX_HEAD} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._head_is_here()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._read -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._read = 0
        super().on_message_complete()

    def _await_head(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.close)

    def _head_is_here(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _is_own(link: Any) -> bool:
    """Tell whether the process at the other end of a Unix socket is of the server's own user."""
    try:
        return peer_uid(link) == os.getuid()
    except OSError:
        return False


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """How a server is to live.

    Attributes:
        secret: The owner's, for the run file where there is no socket.
        socket: Where the owner's clients come; None where none could be made.
        on_serving: Called once the run file is there.
        on_lost_socket: Called when the socket's file is gone: the owner comes with the secret from
            then on.
        auto: Started by need: it ends after ``idle_stop_s`` without a request, when ``busy`` says
            no.
        busy: Tells whether work goes on that no request waits for.
    """

    home: Path
    secret: str
    auto: bool
    idle_stop_s: float
    busy: Callable[[], Awaitable[bool]]
    socket: socket.socket | None = None
    on_lost_socket: Callable[[], None] = _nothing
    on_serving: Callable[[], None] = _nothing


def bind(host: str, port: int, *, or_free: bool = False) -> socket.socket:
    """Return a listening socket on the port; with ``or_free`` on a free one when it is taken.

    Raises:
        ConfigError: The host is not an address of this machine, or its ports may not be used, or
            this one is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for chosen in (port, 0):
        # The protocol is named, or asyncio does not turn off Nagle's algorithm: 40 ms a streamed
        # answer.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, chosen))
            listener.listen(2048)
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRINUSE and not or_free:
                raise ConfigError(
                    f"server.port: {port} is taken by another program, and clients would send it "
                    "their tokens; "
                    "end that program, or choose another port (`pps serve --port N`; 0 takes any)"
                ) from None
            if error.errno != errno.EADDRINUSE or chosen == 0:
                raise ConfigError(
                    f"server.host, server.port: cannot listen there ({error.strerror})"
                ) from None
            _log.warning("port %s is taken; a free one is used", port)
        else:
            return listener
    raise AssertionError("unreachable")


async def run(app: ASGIApp, listener: socket.socket, activity: Activity, plan: ServerPlan) -> None:
    """Serve until a signal, the owner or idleness ends it. Requests in hand get ten seconds to end.

    Raises StoreError when the run file cannot be written: a server that nobody finds must not hold
    the memories. The run file is there exactly while new requests are welcome.
    """
    server = _Server(
        uvicorn.Config(
            app,
            http=BoundedHead,
            ws=QuietSocket,
            ws_max_size=MAX_FRAME,
            ws_ping_interval=PING_S,
            ws_ping_timeout=PING_S,
            # Compression would take memory for each socket, and reveal lengths of secrets.
            ws_per_message_deflate=False,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )
    host, port = listener.getsockname()[:2]
    run_file = RunFile(os.getpid(), host, port, __version__, plan.auto)
    if plan.socket is None:
        run_file = replace(run_file, secret=plan.secret)
    else:
        run_file = replace(run_file, socket=plan.socket.getsockname())
    with _signals(activity):
        watch = asyncio.create_task(_watch(server, run_file, activity, plan))
        watch.add_done_callback(
            lambda _: server.let_go(activity)
        )  # however it ends: nobody else would end the server
        try:
            await server.serve(sockets=[listener, plan.socket] if plan.socket else [listener])
        finally:
            watch.cancel()
            runfile.remove(plan.home, run_file.pid)
            listener.close()
            _remove(run_file.socket)
        if watch.done() and not watch.cancelled():
            watch.result()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which end the process before the memories close."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def let_go(self, activity: Activity) -> None:
        """End the server, and release the requests that only listen."""
        activity.stopping.set()
        self.should_exit = True


async def _watch(
    server: uvicorn.Server, run_file: RunFile, activity: Activity, plan: ServerPlan
) -> None:
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(_PAUSE_S)
    runfile.write(plan.home, run_file)
    plan.on_serving()
    _log.info(
        "serving at http://%s:%d",
        f"[{run_file.host}]" if ":" in run_file.host else run_file.host,
        run_file.port,
    )
    if not is_loopback(run_file.host):
        _log.warning(
            "%s is reached from other machines: tokens travel in plain text, so put a proxy with "
            "TLS before it; "
            "a client is answered only under a name of server.allowed_hosts",
            run_file.host,
        )
    while not activity.stopping.is_set():
        if run_file.socket and not _is_there(run_file.socket):
            _log.warning(
                "%s was removed: the owner's clients go by server.json's secret", run_file.socket
            )
            run_file = replace(run_file, socket="", secret=plan.secret)
            plan.on_lost_socket()
            runfile.write(plan.home, run_file)
        if plan.auto and activity.idle_s > plan.idle_stop_s and not await plan.busy():
            _log.info("idle for %.0f s: ending", plan.idle_stop_s)
            activity.stopping.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(activity.stopping.wait(), min(_LOOK_S, plan.idle_stop_s))
    runfile.remove(plan.home, run_file.pid)
    server.should_exit = True


def _is_there(path: str) -> bool:
    """Tell whether a socket's file is there: what cleans temporary folders may have removed it."""
    return Path(path).is_socket()


def _remove(path: str) -> None:
    if path:
        Path(path).unlink(missing_ok=True)


@contextlib.contextmanager
def _signals(activity: Activity) -> Generator[None]:
    loop = asyncio.get_running_loop()
    ends = (signal.SIGINT, signal.SIGTERM)
    for number in ends:
        loop.add_signal_handler(number, activity.stopping.set)
    try:
        yield
    finally:
        for number in ends:
            loop.remove_signal_handler(number)
