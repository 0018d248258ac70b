"""The standard streams of the bridge: lines of bounded size come in, whole messages go out."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO

from pps.core import json_bounds
from pps.interfaces.mcp import messages
from pps.interfaces.mcp.messages import Message, Undecodable
from pps.interfaces.mcp.readable_ids import IdScanner

_log = logging.getLogger(__name__)

_PIECE_BYTES = 256 * 1024
"""Bytes that are read at once of a line that is too long."""


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
