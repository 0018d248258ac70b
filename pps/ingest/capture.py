"""Keeping what happens in a coding agent's session: prompts, what tools did, answers from the transcript."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from pps.core.errors import InvalidRequest
from pps.core.values import Receipt
from pps.ingest import transcript
from pps.ingest.sessions import Item, SessionEvent, answered, last_answer, said_in
from pps.ingest.transcript import Answer, Cursor, Reading
from pps.journal.journal import Journal

_log = logging.getLogger(__name__)

_LAG_S = 0.6
"""How long the line of an answer may be on its way into the transcript."""
_LOOK_S = 0.1
Keep = Callable[[Sequence[Item]], Awaitable[list[Receipt]]]


class Capture:
    """Keeps one entity's part of sessions. What was told before is known again and changes nothing.

    The cursor of a transcript moves only past answers that are on disk.
    """

    def __init__(
        self, journal: Journal, keep: Keep, identifier: Callable[[str], str], ended: Callable[[], None]
    ) -> None:
        """``ended`` is told when a session has ended and all of it is kept."""
        self._ended = ended
        self._journal = journal
        self._keep = keep
        self._identifier = identifier
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take(self, event: SessionEvent, is_ours: Callable[[str], bool], *, late: bool) -> None:
        """Keep what an event tells, and what the transcript says up to it.

        Args:
            event: What happened.
            is_ours: Tells of a working directory whether what was said there is this entity's.
            late: True when the event comes from the spool: what the transcript holds by now may be of later ones.

        Raises:
            Overloaded: Too much waits; nothing of this was kept, and it is safe to tell it again.
        """
        await self._taken(event, is_ours, late=late)
        if event.event == "SessionEnd":
            self._ended()

    async def _taken(self, event: SessionEvent, is_ours: Callable[[str], bool], *, late: bool) -> None:
        await self._kept(said_in(event))
        if not transcript.is_transcript(event.transcript):
            if event.event == "Stop" and event.text.strip() and not await self._is_stored(event):
                await self._kept(answered([last_answer(event)], event.session))
            return
        upto = event.size if late and event.event != "SessionEnd" else None
        reading = Reading(event.transcript, event.session, event.at, upto, is_ours)
        async with self._lock(reading):
            if event.event in ("Stop", "PreCompact", "SessionEnd"):
                await self._answers(reading, event, 0.0 if late else _LAG_S)
            elif await self._cursor(reading) is None:
                await self._move(reading, await asyncio.to_thread(transcript.mark, reading))

    async def _answers(self, reading: Reading, event: SessionEvent, patience_s: float) -> None:
        cursor = await self._cursor(reading)
        until = asyncio.get_running_loop().time() + patience_s
        while True:
            found, moved = await asyncio.to_thread(transcript.read_new, reading, cursor)
            lags = bool(event.text.strip()) and not transcript.is_among(event.text, found)
            if not lags or asyncio.get_running_loop().time() >= until:
                break
            await asyncio.sleep(_LOOK_S)
        if lags and not await self._is_stored(event):
            found = [*found, await self._last(reading, moved, event)]
            moved = transcript.with_ahead(moved, event.text)
        await self._kept(answered(found, event.session))
        if moved != cursor:
            await self._move(reading, moved)

    async def _last(self, reading: Reading, cursor: Cursor, event: SessionEvent) -> Answer:
        """Return the answer that an event carries, as its line tells it where that has come since the event."""
        since, _ = await asyncio.to_thread(transcript.read_new, replace(reading, upto=None), cursor)
        same = transcript.digest(event.text)
        return next((one for one in since if transcript.digest(one.text) == same), last_answer(event))

    async def _is_stored(self, event: SessionEvent) -> bool:
        """Tell whether the answer of an event that is told again was taken from its line the first time."""
        same = transcript.digest(event.text)
        recent = await self._journal.recent(20, session=self._identifier(event.session))
        return any(
            turn.role == "assistant" and transcript.digest(turn.content) == same and turn.occurred_at <= event.at
            for turn in recent
        )

    async def _kept(self, items: Sequence[Item]) -> None:
        """Keep items; one that can never be kept, such as an echo of a pack, does not stand in the others' way."""
        if not items:
            return
        try:
            await self._keep(items)
        except InvalidRequest:
            for item in items:
                try:
                    await self._keep([item])
                except InvalidRequest as error:
                    _log.info("not kept: %s", error.message)

    async def _cursor(self, reading: Reading) -> Cursor | None:
        return transcript.load(await self._journal.get_meta(self._key(reading)))

    async def _move(self, reading: Reading, cursor: Cursor) -> None:
        await self._journal.set_meta(self._key(reading), cursor.dump())

    def _lock(self, reading: Reading) -> asyncio.Lock:
        return self._locks.setdefault(self._key(reading), asyncio.Lock())

    def _key(self, reading: Reading) -> str:
        """Return the cursor's name: session and file, neither of them readable."""
        origin = "\0".join(map(self._identifier, (reading.session, reading.path)))
        return "transcript:" + hashlib.sha256(origin.encode()).hexdigest()[:32]
