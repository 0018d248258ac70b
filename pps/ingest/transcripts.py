"""Store a coding agent's session: its hook events, and the answers in its transcript, each once.

A transcript is a file of JSON lines that the client appends to, sometimes late, sometimes in
pieces, and now and then writes anew. Its lines are read as an import reads them. Only the
assistant's answers to the person are taken, since hooks report the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from weakref import WeakValueDictionary

from pps.core.errors import InvalidRequest
from pps.core.time import from_micros, micros
from pps.core.user_files import open_regular
from pps.ingest.hook_events import (
    AssistantAnswer,
    SessionEvent,
    answered,
    digest,
    folded,
    last_answer,
    said_in,
)
from pps.ingest.importing.claude_code import ClaudeSession
from pps.ingest.importing.items import Item
from pps.ingest.importing.run import Keep, Messages, keep_each
from pps.ingest.importing.streams import JSONEntry
from pps.journal.journal import Journal

_log = logging.getLogger(__name__)

MOST_BYTES = 64 * 1024 * 1024
"""Most bytes that one reading takes; the rest follows with the next."""
_TAIL = 64
_AHEAD = 200
_LAG_S = 0.6
"""How long the line of an answer may be on its way into the transcript."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class TranscriptCursor:
    """How far a transcript has been taken in.

    Attributes:
        offset: Bytes; always the start of a line.
        tail: Digest of the bytes before the offset; if they change, the file was written anew.
        since: Earlier answers are not taken, even if the file is read from its start again.
        ahead: Digests of answers that were stored before their line was in the file. Once the line
            has come, its id takes the digest's place, which recognises it if the file is read from
            its start again.
    """

    offset: int
    tail: str
    since: datetime
    ahead: tuple[str, ...] = ()

    def dump(self) -> str:
        return json.dumps([self.offset, self.tail, micros(self.since), self.ahead])


@dataclass(frozen=True, slots=True)
class TranscriptReading:
    """A request to read the lines of one session from a transcript.

    Attributes:
        at: When the event happened that caused the reading.
        upto: Bytes of the file to read; None for all.
        is_ours: Tells whether the session's working directory belongs to this entity.
    """

    path: str
    session: str
    at: datetime
    upto: int | None = None
    is_ours: Callable[[str], bool] = field(default=lambda _: True)


def load(text: str | None) -> TranscriptCursor | None:
    try:
        offset, tail, since, ahead = json.loads(text or "")
        return TranscriptCursor(offset, tail, from_micros(since), tuple(ahead))
    except (ValueError, TypeError):
        return None


def is_transcript(path: str) -> bool:
    """Tell whether a path may be a transcript's: absolute or below ``~``, and named ``.jsonl``.

    The file need not exist.
    """
    return path.startswith(("/", "~/")) and path.endswith(".jsonl") and path.isprintable()


def mark(reading: TranscriptReading) -> TranscriptCursor:
    """Return a cursor at the present end of the file: only later answers are taken. Blocks."""
    with _opened(reading.path) as (descriptor, size):
        end = min(size, reading.upto if reading.upto is not None else size)
        return TranscriptCursor(end, _tail(descriptor, end), reading.at)


def read_new(
    reading: TranscriptReading, cursor: TranscriptCursor | None
) -> tuple[list[AssistantAnswer], TranscriptCursor]:
    """Return the answers after a cursor, and the cursor after them. Blocks.

    Without a cursor the answers to the last prompt are taken. They are taken too if the cursor is
    at or past ``upto``: then a later event arrived first and moved the cursor, which stays. A line
    without its end is left for the next reading. A file that is missing or no plain file has no
    answers and moves nothing.
    """
    with _opened(reading.path) as (descriptor, size):
        end = min(size, reading.upto if reading.upto is not None else size)
        is_first = cursor is None
        if cursor is None:
            cursor = TranscriptCursor(_last_prompt(descriptor, end), "", from_micros(0))
        elif cursor.offset > size or _tail(descriptor, cursor.offset) != cursor.tail:
            cursor = replace(cursor, offset=0)
        is_late = not is_first and reading.upto is not None and cursor.offset >= end > 0
        begin = _last_prompt(descriptor, end) if is_late else cursor.offset
        lines, offset = _lines(descriptor, begin, end)
        moved = cursor
        if not is_late:
            moved = replace(cursor, offset=offset, tail=_tail(descriptor, offset))
    since = from_micros(0) if is_late else cursor.since
    answers = [answer for answer in _answers(lines, reading) if answer.at >= since]
    # An answer stored ahead of its line is recognised by its text, then by the id of its line.
    stored_ahead = set(moved.ahead)
    new: list[AssistantAnswer] = []
    texts: set[str] = set()
    references: list[str] = []
    for answer in answers:
        text_digest = digest(answer.text)
        texts.add(text_digest)
        if text_digest in stored_ahead:
            references.append(answer.ref)
        elif answer.ref not in stored_ahead:
            new.append(answer)
    if is_first:
        moved = replace(moved, since=min((answer.at for answer in answers), default=reading.at))
    still_ahead = [mark for mark in moved.ahead if mark not in texts]
    return new, replace(moved, ahead=(*still_ahead, *references)[-_AHEAD:])


def is_among(text: str, answers: list[AssistantAnswer]) -> bool:
    """Tell whether a text and the last answer are equal, or one ends with the other.

    An answer may have several parts.
    """
    last = folded(answers[-1].text) if answers else ""
    whole = folded(text)
    return bool(last) and (whole.endswith(last) or last.endswith(whole))


def with_ahead(cursor: TranscriptCursor, text: str) -> TranscriptCursor:
    return replace(cursor, ahead=(*cursor.ahead, digest(text))[-_AHEAD:])


@contextlib.contextmanager
def _opened(path: str) -> Generator[tuple[int, int]]:
    """Open a transcript and yield its descriptor and size; -1 and 0 if it is no plain file."""
    if not is_transcript(path):
        raise InvalidRequest("transcript", "must be the absolute path of a .jsonl file")
    try:
        file = open_regular(Path(path).expanduser())
    except OSError:
        yield -1, 0
        return
    with file:
        yield file.fileno(), os.fstat(file.fileno()).st_size


def _tail(descriptor: int, offset: int) -> str:
    if descriptor < 0 or offset == 0:
        return ""
    begin = max(0, offset - _TAIL)
    return hashlib.sha256(os.pread(descriptor, offset - begin, begin)).hexdigest()[:32]


def _lines(descriptor: int, begin: int, end: int) -> tuple[list[bytes], int]:
    """Return the whole lines between two offsets, and the offset after the last."""
    size = min(end - begin, MOST_BYTES)
    if descriptor < 0 or size <= 0:
        return [], begin
    raw = os.pread(descriptor, size, begin)
    whole = raw.rfind(b"\n") + 1
    if not whole and len(raw) == MOST_BYTES:
        return [], begin + len(raw)  # a line that no memory could hold
    return raw[:whole].split(b"\n"), begin + whole


def _last_prompt(descriptor: int, end: int) -> int:
    """Return the offset after the last prompt of a person; ``end`` if there is none."""
    lines, offset = _lines(descriptor, max(0, end - MOST_BYTES), end)
    for line in reversed(lines[:-1]):
        if _is_prompt(JSONEntry.loaded(line)):
            return offset
        offset -= len(line) + 1
    return end


def _is_prompt(entry: JSONEntry) -> bool:
    if entry.get("type") != "user" or entry.get("isMeta") or entry.get("isSidechain"):
        return False
    message = entry.entry("message")
    kinds = [block.get("type") for block in message.entries("content")]
    return isinstance(message.get("content"), str) or (
        "text" in kinds and "tool_result" not in kinds
    )


def _answers(lines: list[bytes], reading: TranscriptReading) -> Iterator[AssistantAnswer]:
    """Yield the answers of the session itself, as an import of the transcript would read them."""
    session = ClaudeSession(reading.session)
    is_ours = cache(reading.is_ours)
    entries = (JSONEntry.loaded(line) for line in lines if b'"assistant"' in line)
    items = (
        item
        for entry in entries
        if is_ours(entry.text("cwd"))
        for item in session.entry(entry, reading.path)
    )
    for item in chain(items, session.end()):
        if isinstance(item, Item) and item.options.get("role") == "assistant":
            at = item.options.get("occurred_at") or reading.at
            ref = item.options.get("source_ref", "")
            if item.options.get("session") == reading.session:
                yield AssistantAnswer(ref, item.content, at)


class Capture:
    """Stores one entity's part of sessions; calls ``ended`` once an ended session is stored.

    A repeated event changes nothing. The cursor of a transcript moves only past answers that are on
    disk.
    """

    def __init__(
        self,
        journal: Journal,
        keep: Keep,
        identifier: Callable[[str], str],
        ended: Callable[[], None],
    ) -> None:
        self._ended = ended
        self._journal = journal
        self._keep = keep
        self._identifier = identifier
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take(
        self, event: SessionEvent, is_ours: Callable[[str], bool], *, late: bool
    ) -> None:
        """Store the texts of an event, and the answers in the transcript up to it.

        Args:
            event: The event of a hook.
            is_ours: Tells whether a working directory belongs to this entity.
            late: The event comes from the spool, so the transcript may hold answers to later
                events.

        Raises:
            Overloaded: The queue is full; nothing was stored, and the call can be repeated.
        """
        await self._store_event(event, is_ours, late=late)
        if event.event == "SessionEnd":
            self._ended()

    async def _store_event(
        self, event: SessionEvent, is_ours: Callable[[str], bool], *, late: bool
    ) -> None:
        await self._store(said_in(event))
        if not is_transcript(event.transcript):
            if event.event == "Stop" and event.text.strip() and not await self._is_stored(event):
                await self._store(answered([last_answer(event)], event.session, event.client))
            return
        upto = event.size if late and event.event != "SessionEnd" else None
        reading = TranscriptReading(event.transcript, event.session, event.at, upto, is_ours)
        async with self._locks.setdefault(self._key(reading), asyncio.Lock()):
            if event.event in ("Stop", "PreCompact", "SessionEnd"):
                await self._answers(reading, event, 0.0 if late else _LAG_S)
            elif await self._cursor(reading) is None:
                await self._move(reading, await asyncio.to_thread(mark, reading))

    async def _answers(
        self, reading: TranscriptReading, event: SessionEvent, patience_s: float
    ) -> None:
        cursor = await self._cursor(reading)
        until = asyncio.get_running_loop().time() + patience_s
        while True:
            answers, moved = await asyncio.to_thread(read_new, reading, cursor)
            lags = bool(event.text.strip()) and not is_among(event.text, answers)
            if not lags or asyncio.get_running_loop().time() >= until:
                break
            await asyncio.sleep(_LOOK_S)
        if lags and not await self._is_stored(event):
            answers = [*answers, await self._answer_of(reading, moved, event)]
            moved = with_ahead(moved, event.text)
        await self._store(answered(answers, event.session))
        if moved != cursor:
            await self._move(reading, moved)

    async def _answer_of(
        self, reading: TranscriptReading, cursor: TranscriptCursor, event: SessionEvent
    ) -> AssistantAnswer:
        """Return the answer of an event, from its line in the transcript if that has come since."""
        if reading.upto is not None and cursor.offset > reading.upto:
            # A later event arrived first and moved the cursor past the lines after this one.
            at_event = await asyncio.to_thread(mark, reading)
            cursor = replace(at_event, since=from_micros(0))
        answers, _ = await asyncio.to_thread(read_new, replace(reading, upto=None), cursor)
        same = [answer for answer in answers if digest(answer.text) == digest(event.text)]
        return same[0] if same else last_answer(event)

    async def _is_stored(self, event: SessionEvent) -> bool:
        """Tell whether the answer of a repeated event was stored from its line before."""
        same = digest(event.text)
        recent = await self._journal.recent(20, session=self._identifier(event.session))
        return any(
            turn.role == "assistant"
            and digest(turn.content) == same
            and turn.occurred_at <= event.at
            for turn in recent
        )

    async def _store(self, items: Messages) -> None:
        """Store items; a refused one, such as an echo of a context pack, does not stop others."""
        if items:
            await keep_each(self._keep, items, lambda _, why: _log.info("not kept: %s", why))

    async def _cursor(self, reading: TranscriptReading) -> TranscriptCursor | None:
        return load(await self._journal.get_meta(self._key(reading)))

    async def _move(self, reading: TranscriptReading, cursor: TranscriptCursor) -> None:
        await self._journal.set_meta(self._key(reading), cursor.dump())

    def _key(self, reading: TranscriptReading) -> str:
        """Return the cursor's name: session and file, neither of them readable."""
        origin = "\0".join(map(self._identifier, (reading.session, reading.path)))
        return "transcript:" + hashlib.sha256(origin.encode()).hexdigest()[:32]
