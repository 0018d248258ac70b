"""What a coding agent's hooks are for: a pack at the start and at each turn, and keeping what happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Literal

from pps.context.ambient import AmbientRequest
from pps.core.bounds import check_range
from pps.core.recalled import Pack
from pps.core.reports import Injected
from pps.core.time import now
from pps.ingest.hook_events import SessionEvent
from pps.ingest.transcripts import Capture
from pps.journal.journal import Journal
from pps.journal.shown import KEPT_D

_LATEST = 20
PACK_CHARS = 8_000
"""Most characters of a pack: the agent's client cuts what a hook adds at about 10,000."""


class Sessions:
    """One entity's side of the sessions of coding agents."""

    def __init__(
        self, make_pack: Callable[[AmbientRequest], Awaitable[Pack]], capture: Capture, journal: Journal
    ) -> None:
        self._make_pack = make_pack
        self._capture = capture
        self._journal = journal

    async def pack(self, context: str, session: str, *, mode: Literal["turn", "startup"] = "turn") -> Pack:
        """Return what the agent is given; it has its session's own turns before it, so the pack tells of the rest.

        Args:
            context: The prompt, at most 65,536 characters; empty at start-up.
            session: What it was shown, since it began or was compacted, is not shown again.
            mode: ``startup`` goes by recency, ``turn`` by the context.
        """
        if mode == "startup":  # also one that goes on, or was cleared: what its agent has before it is not ours to know
            await self._journal.given.record(session, "compact", 0, ())
        request = AmbientRequest(
            context=context,
            budget_tokens=PACK_CHARS // 2,
            budget_chars=PACK_CHARS,
            session=session,
            mode=mode,
            reader_has_session=True,
        )
        return await self._make_pack(request)

    async def capture(self, event: SessionEvent, is_ours: Callable[[str], bool], *, late: bool = False) -> None:
        """Keep what happened; see ``Capture.take``. A session that is compacted forgets what it was shown."""
        await self._capture.take(event, is_ours, late=late)
        if event.event == "PreCompact":
            await self._journal.given.record(event.session, "compact", 0, ())

    async def injected(self, days: int) -> Injected:
        """Return how much was put before agents in so many days, 1 to 30, and how often nothing was."""
        check_range("days", days, 1, KEPT_D)
        sessions = await self._journal.given.injected(now() - timedelta(days=days))
        prompts, empty, tokens = (
            sum(getattr(one, what) for one in sessions) for what in ("prompts", "empty", "tokens")
        )
        named = [one.tokens for one in sessions if one.session]
        return Injected(
            days=days,
            sessions=len(named),
            prompts=prompts,
            empty=empty,
            empty_share=round(empty / prompts, 3) if prompts else None,
            tokens=tokens,
            tokens_a_session=round(sum(named) / len(named), 1) if named else None,
            latest=tuple(sessions[:_LATEST]),
        )
