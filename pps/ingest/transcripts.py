"""Keeping what a coding agent's session says: its events, and the answers in its transcript, each once.

A transcript is a file of JSON lines that the client appends to, sometimes late, sometimes in pieces, and now and
then writes anew. Its lines are read as an import reads them; what the assistant said to the person is taken, as hooks
tell the rest.
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
from pps.ingest.lenient_json import JSONEntry
from pps.journal.journal import Journal

_log = logging.getLogger(__name__)

MOST_BYTES = 64 * 1024 * 1024
"""Most that one reading takes; the rest follows with the next."""
_TAIL = 64
_AHEAD = 200
_LAG_S = 0.6
"""How long the line of an answer may be on its way into the transcript."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class TranscriptCursor:
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
        return json.dumps([self.offset, self.tail, micros(self.since), self.ahead])


@dataclass(frozen=True, slots=True)
class TranscriptReading:
    """What is to be read: up to so many bytes, lines of one session, said where ``is_ours`` tells so of the folder.

    ``at`` is when the event happened that made us look.
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
    """Tell whether a path may be a transcript's: absolute, or below ``~``, and named ``.jsonl``; it need not exist."""
    return path.startswith(("/", "~/")) and path.endswith(".jsonl") and path.isprintable()


def mark(reading: TranscriptReading) -> TranscriptCursor:
    """Return a cursor at the end of what the file holds now: only what is said from now on is taken. Blocks."""
    with _opened(reading.path) as (descriptor, size):
        end = min(size, reading.upto if reading.upto is not None else size)
        return TranscriptCursor(end, _tail(descriptor, end), reading.at)


def read_new(
    reading: TranscriptReading, cursor: TranscriptCursor | None
) -> tuple[list[AssistantAnswer], TranscriptCursor]:
    """Return the answers behind a cursor, and the cursor behind them. Blocks.

    Without a cursor the answers to the last prompt are taken. So they are where ``upto`` is not behind the cursor: a
    later event, told first, has moved it past what a late one tells of, and it stays there. A line without its end is
    left for the next time. A file that is gone, or is none, has no answers and moves nothing.
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
    # What was stored ahead of its line is known by its text, and by its line's id once that has come.
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
    """Tell whether the last answer read is this text, or one is the other's end: an answer may have several parts."""
    last = folded(answers[-1].text) if answers else ""
    whole = folded(text)
    return bool(last) and (whole.endswith(last) or last.endswith(whole))


def with_ahead(cursor: TranscriptCursor, text: str) -> TranscriptCursor:
    return replace(cursor, ahead=(*cursor.ahead, digest(text))[-_AHEAD:])


@contextlib.contextmanager
def _opened(path: str) -> Generator[tuple[int, int]]:
    """Lend an open transcript's descriptor and size; -1 and 0 when it is not there, or is no file."""
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
    """Yield what was said in the session itself, as an import of the transcript would read it."""
    session = ClaudeSession(reading.session)
    is_ours = cache(reading.is_ours)
    entries = (JSONEntry.loaded(line) for line in lines if b'"assistant"' in line)
    read = (
        one
        for entry in entries
        if is_ours(entry.text("cwd"))
        for one in session.entry(entry, reading.path)
    )
    for one in chain(read, session.end()):
        if isinstance(one, Item) and one.options.get("role") == "assistant":
            at = one.options.get("occurred_at") or reading.at
            ref = one.options.get("source_ref", "")
            if one.options.get("session") == reading.session:
                yield AssistantAnswer(ref, one.content, at)


class Capture:
    """Keeps one entity's part of sessions; tells ``ended`` when one has ended and all of it is kept.

    What was told before is known again and changes nothing. The cursor of a transcript moves only past answers that
    are on disk.
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
        """Keep what an event tells, and what the transcript says up to it.

        ``is_ours`` tells of a working directory whether what was said there is this entity's. A ``late`` event comes
        from the spool: what the transcript holds by now may be of later ones.

        Raises:
            Overloaded: Too much waits; nothing of this was kept, and it is safe to tell it again.
        """
        await self._taken(event, is_ours, late=late)
        if event.event == "SessionEnd":
            self._ended()

    async def _taken(
        self, event: SessionEvent, is_ours: Callable[[str], bool], *, late: bool
    ) -> None:
        await self._kept(said_in(event))
        if not is_transcript(event.transcript):
            if event.event == "Stop" and event.text.strip() and not await self._is_stored(event):
                await self._kept(answered([last_answer(event)], event.session, event.client))
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
            answers = [*answers, await self._last(reading, moved, event)]
            moved = with_ahead(moved, event.text)
        await self._kept(answered(answers, event.session))
        if moved != cursor:
            await self._move(reading, moved)

    async def _last(
        self, reading: TranscriptReading, cursor: TranscriptCursor, event: SessionEvent
    ) -> AssistantAnswer:
        """Return the answer that an event carries, as its line tells it where that has come since the event."""
        if reading.upto is not None and cursor.offset > reading.upto:
            # A later event, told first, has moved the cursor past what came after this one.
            at_event = await asyncio.to_thread(mark, reading)
            cursor = replace(at_event, since=from_micros(0))
        answers, _ = await asyncio.to_thread(read_new, replace(reading, upto=None), cursor)
        same = [answer for answer in answers if digest(answer.text) == digest(event.text)]
        return same[0] if same else last_answer(event)

    async def _is_stored(self, event: SessionEvent) -> bool:
        """Tell whether the answer of an event that is told again was taken from its line the first time."""
        same = digest(event.text)
        recent = await self._journal.recent(20, session=self._identifier(event.session))
        return any(
            turn.role == "assistant"
            and digest(turn.content) == same
            and turn.occurred_at <= event.at
            for turn in recent
        )

    async def _kept(self, items: Messages) -> None:
        """Keep items; one that can never be kept, such as an echo of a pack, does not stand in the others' way."""
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
