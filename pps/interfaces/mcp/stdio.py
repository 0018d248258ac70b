"""The standard streams of the bridge: lines of bounded size, each answer written whole.

The protocol's library takes a line of any length and validates it on the event loop. Here a line that breaks a bound
of ``core.json_bounds`` is answered with a JSON-RPC error, with its id where that can be read, and goes no further.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, BinaryIO, cast

import anyio
from anyio import to_thread
from mcp.server.stdio import stdio_server

from pps.core import json_bounds
from pps.core.errors import InvalidRequest
from pps.core.json_bounds import TooLarge
from pps.interfaces.mcp.bounded_bodies import refusal

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

_MAX_LINE = json_bounds.MAX_BYTES
_HEAD = 64 * 1024
"""Bytes of a line that is too long in which its id is looked for."""


class Output:
    """Writes whole messages, one at a time; what ``stdio_server`` takes as its stdout."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = anyio.Lock()

    async def write(self, text: str) -> None:
        async with self._lock:
            await to_thread.run_sync(self._write, text.encode())

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()


class Lines:
    """Yields the lines within the bounds; what ``stdio_server`` takes as its stdin."""

    def __init__(self, stream: BinaryIO, output: Output) -> None:
        self._stream = stream
        self._output = output

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await to_thread.run_sync(self._read):
            try:
                if len(line) > _MAX_LINE:
                    await to_thread.run_sync(self._skip_rest, line)
                    raise TooLarge("message")
                if len(line) < json_bounds.LARGE_BYTES:
                    json_bounds.check_raw(line, "message")
                else:
                    await to_thread.run_sync(json_bounds.check_raw, line, "message")
            except InvalidRequest as error:
                request_id = json_bounds.request_id(line[:_HEAD])
                await self._output.write(refusal(error.message, request_id) + "\n")
                continue
            yield line.decode("utf-8", "replace")

    def _read(self) -> bytes:
        return self._stream.readline(_MAX_LINE + 1)

    def _skip_rest(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._stream.readline(_HEAD)


@contextlib.asynccontextmanager
async def bounded_stdio() -> AsyncGenerator[
    tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception],
        MemoryObjectSendStream[SessionMessage],
    ]
]:
    """Serve the protocol on this process's standard streams while the block runs.

    Meanwhile fd 0 is the null device and fd 1 is stderr, so nothing else reads or writes the protocol's streams.
    """
    source, sink = _aside(0, os.open(os.devnull, os.O_RDONLY)), _aside(1, os.dup(2))
    output = Output(sink)
    lines = Lines(source, output)
    try:
        async with stdio_server(
            cast("anyio.AsyncFile[str]", lines), cast("anyio.AsyncFile[str]", output)
        ) as (received, answers):
            yield (
                cast("MemoryObjectReceiveStream[SessionMessage | Exception]", received),
                cast("MemoryObjectSendStream[SessionMessage]", answers),
            )
    finally:
        sys.stdout.flush()
        os.dup2(source.fileno(), 0)
        os.dup2(sink.fileno(), 1)


def _aside(descriptor: int, instead: int) -> BinaryIO:
    """Return a standard stream under another descriptor, and put a different file in its place."""
    own = os.dup(descriptor)
    os.dup2(instead, descriptor)
    os.close(instead)
    # A thread may still wait on this descriptor at the end: it is never closed, so never given to another file.
    return os.fdopen(own, "rb" if descriptor == 0 else "wb", closefd=False)
