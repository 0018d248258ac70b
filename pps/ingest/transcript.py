"""The answers in a Claude Code transcript: read from where the last reading stored, each once.

A transcript is a file of JSON lines that the client appends to, sometimes late, sometimes in pieces, and now and
then writes anew. Of a line only what was said by the assistant to the person is taken: no tool calls, no thoughts,
no subagents, no error texts that the client made up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from pps.core.errors import InvalidRequest
from pps.core.time import from_micros, micros, parse

MOST_BYTES = 64 * 1024 * 1024
"""Most that one reading takes; the rest follows with the next."""
_TAIL = 64
_AHEAD = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What the assistant said.

    Attributes:
        ref: The line's own id.
        cwd: Where the client worked then; empty when it does not say.
    """

    ref: str
    text: str
    at: datetime
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a transcript has been taken in.

    Attributes:
        offset: Bytes; always the begin of a line.
        tail: Digest of the bytes before it: when they change, the file was written anew.
        since: What was said before is not taken, even when the file is read from its begin again.
        ahead: Digests of answers that were stored before their line was in the file; of those whose line has come
            since, the line's id, so that it is known when the file is read from its begin again.
    """

    offset: int
    tail: str
    since: datetime
    ahead: tuple[str, ...] = ()

    def dump(self) -> str:
        """Return the cursor as text."""
        return json.dumps([self.offset, self.tail, micros(self.since), self.ahead])


@dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read.

    Attributes:
        session: Lines of another session are left out.
        upto: Bytes; None is the whole file.
        at: When the event happened that made us look.
        is_ours: Tells of a working directory whether what was said there is to be taken.
    """

    path: str
    session: str
    at: datetime
    upto: int | None = None
    is_ours: Callable[[str], bool] = field(default=lambda _: True)


def load(text: str | None) -> Cursor | None:
    """Return a dumped cursor; None for none, or for one that cannot be read."""
    try:
        offset, tail, since, ahead = json.loads(text or "")
        return Cursor(offset, tail, from_micros(since), tuple(ahead))
    except (ValueError, TypeError):
        return None


def is_transcript(path: str) -> bool:
    """Tell whether a path may be a transcript's: absolute, or below ``~``, and named ``.jsonl``; it need not exist."""
    return path.startswith(("/", "~/")) and path.endswith(".jsonl") and path.isprintable()


def mark(reading: Reading) -> Cursor:
    """Return a cursor at the end of what the file holds now: only what is said from now on is taken. Blocks."""
    with _opened(reading.path) as (descriptor, size):
        end = min(size, reading.upto if reading.upto is not None else size)
        return Cursor(end, _tail(descriptor, end), reading.at)


def read_new(reading: Reading, cursor: Cursor | None) -> tuple[list[Answer], Cursor]:
    """Return the answers behind a cursor, and the cursor behind them. Blocks.

    Without a cursor the answers to the last prompt are taken. A line without its end is left for the next time. A
    file that is gone, or is none, has no answers and moves nothing.

    Raises:
        InvalidRequest: The path is not that of a transcript.
    """
    with _opened(reading.path) as (descriptor, size):
        end = min(size, reading.upto if reading.upto is not None else size)
        is_first = cursor is None
        if cursor is None:
            cursor = Cursor(_last_prompt(descriptor, end), "", from_micros(0))
        elif cursor.offset > size or _tail(descriptor, cursor.offset) != cursor.tail:
            cursor = replace(cursor, offset=0)
        lines, offset = _lines(descriptor, cursor.offset, end)
        moved = replace(cursor, offset=offset, tail=_tail(descriptor, offset))
    since = cursor.since
    found = [one for one in _answers(lines, reading) if one.at >= since and reading.is_ours(one.cwd)]
    new = [one for one in found if not {digest(one.text), one.ref} & set(moved.ahead)]
    met = {digest(one.text) for one in found}
    came = [one.ref for one in found if digest(one.text) in moved.ahead]
    if is_first:
        moved = replace(moved, since=min((one.at for one in found), default=reading.at))
    ahead = (*(one for one in moved.ahead if one not in met), *came)
    return new, replace(moved, ahead=ahead[-_AHEAD:])


def is_among(text: str, answers: list[Answer]) -> bool:
    """Tell whether the last answer read is this text, or one is the other's end: an answer may have several parts."""
    said, read = _folded(text), _folded(answers[-1].text) if answers else ""
    return bool(read) and (said.endswith(read) or read.endswith(said))


def with_ahead(cursor: Cursor, text: str) -> Cursor:
    """Return the cursor of an answer that is stored before its line is in the file."""
    return replace(cursor, ahead=(*cursor.ahead, digest(text))[-_AHEAD:])


def digest(text: str) -> str:
    """Return what an answer is known by, whatever its white space."""
    return hashlib.sha256(_folded(text).encode()).hexdigest()[:32]


def _folded(text: str) -> str:
    return "".join(text.split())


@contextlib.contextmanager
def _opened(path: str) -> Generator[tuple[int, int]]:
    """Lend an open transcript's descriptor and size; -1 and 0 when it is not there, or is no file."""
    if not is_transcript(path):
        raise InvalidRequest("transcript", "must be the absolute path of a .jsonl file")
    try:
        # A pipe of that name must not hold us up.
        descriptor = os.open(Path(path).expanduser(), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        yield -1, 0
        return
    try:
        status = os.fstat(descriptor)
        yield (descriptor, status.st_size) if stat.S_ISREG(status.st_mode) else (-1, 0)
    finally:
        os.close(descriptor)


def _tail(descriptor: int, offset: int) -> str:
    if descriptor < 0 or offset == 0:
        return ""
    begin = max(0, offset - _TAIL)
    return hashlib.sha256(os.pread(descriptor, offset - begin, begin)).hexdigest()[:32]


def _lines(descriptor: int, begin: int, end: int) -> tuple[list[bytes], int]:
    """Return the whole lines between two offsets, and the offset behind the last."""
    size = min(end - begin, MOST_BYTES)
    if descriptor < 0 or size <= 0:
        return [], begin
    raw = os.pread(descriptor, size, begin)
    whole = raw.rfind(b"\n") + 1
    if not whole and len(raw) == MOST_BYTES:
        return [], begin + len(raw)  # a line that no memory could hold
    return raw[:whole].split(b"\n"), begin + whole


def _last_prompt(descriptor: int, end: int) -> int:
    """Return the offset behind the last prompt that a person gave; the end when there is none."""
    begin = max(0, end - MOST_BYTES)
    lines, offset = _lines(descriptor, begin, end)
    for line in reversed(lines[:-1]):
        if _is_prompt(_entry(line)):
            return offset
        offset -= len(line) + 1
    return end


def _entry(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_prompt(entry: dict[str, Any]) -> bool:
    if entry.get("type") != "user" or entry.get("isMeta") or entry.get("isSidechain"):
        return False
    message = entry.get("message")
    content = cast("dict[str, Any]", message).get("content") if isinstance(message, dict) else None
    kinds = [one.get("type") for one in _blocks(content)]
    return isinstance(content, str) or ("text" in kinds and "tool_result" not in kinds)


def _answers(lines: list[bytes], reading: Reading) -> Iterator[Answer]:
    """Yield what was said; the lines of one message that follow each other are one answer."""
    last, message_id = None, ""
    for line in lines:
        if b'"assistant"' not in line:
            continue
        entry = _entry(line)
        text = _said(entry, reading.session)
        if not text:
            continue
        same = str(entry["message"].get("id") or "")
        if last is not None and same and same == message_id:
            last = replace(last, text=f"{last.text}\n\n{text}")
            continue
        if last is not None:
            yield last
        ref = entry.get("uuid")
        known = ref if isinstance(ref, str) and 0 < len(ref) <= 100 else digest(text)
        last, message_id = Answer(known, text, _moment(entry, reading.at), str(entry.get("cwd") or "")), same
    if last is not None:
        yield last


def _said(entry: dict[str, Any], session: str) -> str:
    message = entry.get("message")
    if entry.get("type") != "assistant" or not isinstance(message, dict):
        return ""
    if any(entry.get(name) for name in ("isSidechain", "isMeta", "isApiErrorMessage")):
        return ""
    said = cast("dict[str, Any]", message)
    if entry.get("sessionId", session) != session or said.get("model") == "<synthetic>":
        return ""
    content = said.get("content")
    texts = [content] if isinstance(content, str) else [one.get("text") for one in _blocks(content)]
    return "\n\n".join(_storable(text) for text in texts if isinstance(text, str) and text.strip())


def _blocks(content: Any) -> list[dict[str, Any]]:
    listed = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def _storable(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode().strip()


def _moment(entry: dict[str, Any], default: datetime) -> datetime:
    try:
        return parse(str(entry.get("timestamp")))
    except InvalidRequest:
        return default
