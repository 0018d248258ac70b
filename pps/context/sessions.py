"""What a coding agent's hooks are for: a pack at the start and at each turn, and keeping what happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from pps.context.ambient import AmbientRequest
from pps.core.recalled import Pack
from pps.ingest.capture import Capture
from pps.ingest.sessions import SessionEvent

PACK_CHARS = 8_000
"""Most characters of a pack: the agent's client cuts what a hook adds at about 10,000."""


class Sessions:
    """One entity's side of the sessions of coding agents."""

    def __init__(self, make_pack: Callable[[AmbientRequest], Awaitable[Pack]], capture: Capture) -> None:
        self._make_pack = make_pack
        self._capture = capture

    async def pack(self, context: str, session: str, *, mode: Literal["turn", "startup"] = "turn") -> Pack:
        """Return what the agent is given; it has its session's own turns before it, so the pack tells of the rest.

        Args:
            context: The prompt, at most 65,536 characters; empty at start-up.
            session: What it was shown lately is damped.
            mode: ``startup`` goes by recency, ``turn`` by the context.
        """
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
        """Keep what happened; see ``Capture.take``."""
        await self._capture.take(event, is_ours, late=late)
