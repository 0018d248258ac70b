"""Ambient recall: the pack for one turn of a conversation, or for its start."""

from __future__ import annotations

import time as clock
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pps.context.capture import marks_of
from pps.context.pack import PackRequest, build_pack
from pps.context.startup import startup_recall
from pps.core.errors import InvalidRequest
from pps.core.recalled import Hit, Pack, Recall
from pps.core.values import Turn
from pps.ingest.jobs import no_facts
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.recall.options import RecallOptions, check_range

_TOOLS = 20
"""Among so many turns of a coding agent one is said, the others are what its tools did."""
Recaller = Callable[[str, RecallOptions], Awaitable[Recall]]


@dataclass(frozen=True, slots=True)
class AmbientRequest:
    """What a pack is asked for.

    Attributes:
        context: What is being talked about; may be empty at start-up.
        limit_per_layer: Most items a section, 1 to 50.
        session: What it was shown lately is damped.
        budget_tokens: 100 to 100,000.
        budget_chars: See ``PackRequest``.
        reader_has_session: The reader has the session's own turns before it, so the pack has none of them; at
            start-up it has the latest turns of every session instead of the session's.
    """

    context: str
    budget_tokens: int
    limit_per_layer: int = 5
    session: str | None = None
    mode: Literal["turn", "startup"] = "turn"
    budget_chars: int | None = None
    reader_has_session: bool = False


class Ambient:
    """Makes packs of one entity's memory."""

    def __init__(self, entity: str, journal: Journal, client: IsolatedGraphitiClient) -> None:
        self._entity = entity
        self._journal = journal
        self._client = client

    async def pack(self, request: AmbientRequest, recall: Recaller) -> Pack:
        """Return the pack.

        Raises:
            InvalidRequest: A bound of the request is broken.
            IsolationError: A foreign row came back.
        """
        started = clock.perf_counter()
        check_range("limit_per_layer", request.limit_per_layer, 1, 50)
        check_range("budget_tokens", request.budget_tokens, 100, 100_000)
        if request.mode == "turn" and not request.context.strip():
            raise InvalidRequest("context", "must say what is being talked about; only a start-up needs none")
        marks = await marks_of(self._journal)
        pack = build_pack(
            PackRequest(
                entity=self._entity,
                recall=await self._recalled(request, recall),
                mark=marks.new(),
                recent=await self._recent(request),
                summaries=tuple(await self._journal.of_kind("summary", request.limit_per_layer)),
                budget_tokens=request.budget_tokens,
                budget_chars=request.budget_chars,
                mode=request.mode,
                started=started,
                hint=await no_facts(self._entity, self._journal) if request.mode == "startup" else "",
            )
        )
        return replace(pack, took_ms=(clock.perf_counter() - started) * 1000)

    async def _recalled(self, request: AmbientRequest, recall: Recaller) -> Recall:
        limit = request.limit_per_layer
        if request.mode == "startup":
            return await startup_recall(self._journal, self._client, limit)
        if not request.reader_has_session:
            return await recall(request.context, {"profile": "ambient", "limit": limit, "session": request.session})
        # The session's own turns are the nearest of all: there must be room for others beside them.
        options: RecallOptions = {"profile": "ambient", "limit": 2 * limit, "session": request.session}
        found = await recall(request.context, options)
        channels = {
            name: replace(channel, hits=_of_others(channel.hits, request.session)[:limit])
            for name, channel in found.channels.items()
        }
        return replace(found, channels=channels)

    async def _recent(self, request: AmbientRequest) -> tuple[Turn, ...]:
        if request.reader_has_session and request.mode == "turn":
            return ()
        limit = request.limit_per_layer
        if not request.reader_has_session:
            return tuple(reversed(await self._journal.recent(limit, session=request.session)))
        latest = await self._journal.recent(_TOOLS * limit, session=None)
        said = [turn for turn in latest if turn.role != "tool"]
        return tuple(reversed(said[:limit]))


def _of_others(hits: Sequence[Hit], session: str | None) -> tuple[Hit, ...]:
    return tuple(hit for hit in hits if not (isinstance(hit.item, Turn) and hit.item.session == session))
