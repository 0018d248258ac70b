"""Ambient recall.

The pack for one turn of a conversation or for its start, and the sessions of coding agents.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from pps.context.fence import marks_of
from pps.context.lines import LONGEST, Line
from pps.context.overview import GivenToday
from pps.context.pack import PackRequest, build_pack
from pps.context.startup import identity_of, startup_recall
from pps.core.bounds import check_range
from pps.core.errors import InvalidRequest
from pps.core.ids import is_uuid
from pps.core.recalled import Hit, Pack, Recall, Successor
from pps.core.reports import GivenLine, GivenPack, Injected
from pps.core.text import one_line
from pps.core.time import now
from pps.core.trust import Trust, lowest, trust_of
from pps.core.values import ChannelName, Fact, Node, Turn, spoken
from pps.index.prompts import prompt_kind
from pps.ingest.hook_events import SessionEvent
from pps.ingest.transcripts import Capture
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.usage import KEPT_D, Seen
from pps.models.token_counts import count_tokens, counter_name
from pps.recall.own_statements import standing_instructions
from pps.recall.request import RecallOptions, RecallRequest, make_request
from pps.recall.superseding import Superseding

LIMIT = 12
"""Most items a section, unless the caller gives a limit."""
_MAX_LIMIT = 50
_TURNS_PER_SAID_TURN = 20
"""Of so many turns of a coding agent about one is said; the others are what its tools did."""
_MAX_RECENT_TURNS = 5
_MAX_SUMMARIES = 2
_MAX_MENTIONS = 50
_MAX_SESSIONS_LISTED = 20
_MAX_PACKS_LISTED = 50
_MAX_TURNS_OF_SESSION = 500
"""Latest turns of a session that its agent is known to have before it."""
PACK_CHARS = 8_000
"""Most characters of a pack for a hook: the agent's client cuts what a hook adds at about
10,000."""
AlwaysLoaded = Callable[[int], Awaitable[Sequence[tuple[str, Line]]]]
"""Takes a limit; returns ids and lines of the layers that are always loaded."""
About = Callable[
    [Recall, str, Sequence[str]], Awaitable[tuple[Recall, Mapping[str, Sequence[tuple[str, Line]]]]]
]
"""Takes a recall, a session and sections; returns the recall, the most relevant hits first, and ids
and lines of the sections."""
SharedLines = Callable[[str, int], Awaitable[Sequence[tuple[str, Line]]]]
"""Takes a text and a limit; returns ids and lines of shared knowledge near the text."""
_MAX_SHARED_LINES = 5
_MAX_SECTION_TOKENS = {"alerts": 200, "topics": 400, "related": 300, "recent": 200, "badges": 50}
"""Maxima of acceptance row S4-10, for a pack of ``_TOKENS_OF_MAXIMA``; they grow with the pack."""
_TOKENS_OF_MAXIMA = 1_200
_EXPLORED_SHARE = 0.15
"""Share of a pack that may come from other topics."""
Recaller = Callable[[RecallRequest], Awaitable[Recall]]


@dataclass(frozen=True, slots=True)
class AmbientRequest:
    """A request for a pack.

    Attributes:
        context: What is being talked about; may be empty at start-up.
        limit_per_layer: Most items a section, 1 to 50; the budget and the floor say how many there
            are.
        session: What it was shown since it began, or was compacted, is not shown again.
        budget_tokens: 100 to 100,000.
        budget_chars: See ``PackRequest``.
        reader_has_session: The reader has the session's own turns before it, so the pack has none
            of them; at start-up it has the latest turns of every session instead of the session's.
        reader_has: Ids of the turns that the reader has before it, where these are not all of the
            session's; None otherwise.
        about: Sections of ``pack.ABOUT`` that are wanted too; at a turn only.
        resumed: The session goes on with all that it had before it: its own turns and what it was
            shown.
        leave_out: Channels that the pack is made without.
        injected: With a maximum for each section, and the latest summary; at a turn only.
    """

    context: str
    budget_tokens: int
    limit_per_layer: int = LIMIT
    session: str | None = None
    mode: Literal["turn", "startup"] = "turn"
    budget_chars: int | None = None
    reader_has_session: bool = False
    reader_has: tuple[str, ...] | None = None
    about: tuple[str, ...] = ()
    injected: bool = False
    resumed: bool = False
    leave_out: frozenset[ChannelName] = frozenset()


class Ambient:
    """Makes packs of one entity's memory."""

    def __init__(
        self,
        entity: str,
        journal: Journal,
        client: IsolatedGraphitiClient,
        always: AlwaysLoaded | None = None,
        about: About | None = None,
        facts_hint: Callable[[], Awaitable[str]] | None = None,
        superseding: Superseding | None = None,
        shared: SharedLines | None = None,
    ) -> None:
        self._shared = shared
        self._superseding = superseding
        self._about = about
        self._facts_hint = facts_hint
        self._entity = entity
        self._always = always
        self._journal = journal
        self._client = client
        self._folder = journal.path.parents[1]

    async def pack(self, request: AmbientRequest, recall: Recaller) -> Pack:
        """Return the pack.

        Raises:
            InvalidRequest: A bound of the request is broken.
            IsolationError: A foreign row came back.
        """
        started = clock.perf_counter()
        check_range("limit_per_layer", request.limit_per_layer, 1, _MAX_LIMIT)
        check_range("budget_tokens", request.budget_tokens, 100, 100_000)
        if request.mode == "turn" and not request.context.strip():
            raise InvalidRequest(
                "context", "must say what is being talked about; only a start-up needs none"
            )
        seen = await self._journal.given.seen(request.session) if request.session else Seen()
        recalled = await self._recalled(request, recall, seen)
        has_anything = bool(recalled.own) or any(
            channel.hits or channel.error for channel in recalled.channels.values()
        )
        pool = await self._shared_lines(request, seen)
        if request.mode == "turn" and not has_anything and not pool:
            return self._silent(recalled, (clock.perf_counter() - started) * 1000)
        marks = await marks_of(self._journal)
        at_start = request.mode == "startup"
        about: Mapping[str, Sequence[tuple[str, Line]]] = {}
        if self._about and request.about and not at_start:
            recalled, about = await self._about(recalled, request.session or "", request.about)
        if pool:
            about = {**about, "pool": pool}
        recent = await self._recent(request, seen)
        summaries = await self._summaries(request, seen) if at_start or request.injected else ()
        successors: Mapping[str, Successor] = {}
        if self._superseding and at_start:
            facts = [hit.item for hit in recalled["facts"] if isinstance(hit.item, Fact)]
            successors = await self._superseding.in_listing((*recent, *summaries), facts)
            recalled = _marked(recalled, successors)
        pack = build_pack(
            PackRequest(
                zone=self._journal.zone,
                entity=self._entity,
                recall=recalled,
                mark=marks.new(),
                mark_of=marks.of_body if at_start else None,
                recent=recent,
                summaries=summaries,
                successors=successors,
                records=await self._records(request, seen) if at_start else (),
                instructions=await self._instructions(seen) if at_start else (),
                budget_tokens=request.budget_tokens,
                budget_chars=request.budget_chars,
                mode=request.mode,
                started=started,
                hint=await self._facts_hint() if self._facts_hint and at_start else "",
                identity=await asyncio.to_thread(identity_of, self._folder, self._entity)
                if at_start and not request.resumed
                else "",
                about=about,
                most=_section_maxima(request),
                trust=await self._trusted(recalled) if about.keys() - {"pool"} else {},
                brief=_is_brief(recalled),
            )
        )
        return replace(pack, took_ms=(clock.perf_counter() - started) * 1000)

    async def _shared_lines(
        self, request: AmbientRequest, seen: Seen
    ) -> Sequence[tuple[str, Line]]:
        """Return what the squad shares that is near the prompt and not before the reader.

        Nothing for an idle one.
        """
        if self._shared is None or request.mode != "turn":
            return ()
        if prompt_kind(request.context) == "idle":
            return ()
        lines = await self._shared(request.context, min(request.limit_per_layer, _MAX_SHARED_LINES))
        return [(id_, line) for id_, line in lines if id_ not in seen.ids]

    def _silent(self, recalled: Recall, took_ms: float) -> Pack:
        text = f"Nothing in {self._entity}'s memory is about this that is not before you already."
        return Pack(text, count_tokens(text), counter_name(), {}, {}, "", recalled, took_ms)

    async def _recalled(self, request: AmbientRequest, recall: Recaller, seen: Seen) -> Recall:
        """Return the hits for a pack.

        New to the reader, near the context, with their successors.
        """
        limit = request.limit_per_layer
        own_turns: Sequence[str] = ()
        if request.mode == "startup":
            if request.resumed:
                own_turns = await self._journal.latest_ids(
                    request.session or "", _MAX_TURNS_OF_SESSION
                )
            had = frozenset(own_turns)
            latest = await startup_recall(
                self._journal, self._client, limit + min(limit, len(seen.ids) + len(had))
            )
            return _only(
                latest, lambda hit: hit.id not in seen.ids and not _is_said_in(hit, had), limit
            )
        # What this session was shown, and its own turns, are the nearest of all: others need room.
        if request.reader_has is not None:
            own_turns = request.reader_has
        elif request.reader_has_session:
            own_turns = await self._journal.latest_ids(request.session or "", _MAX_TURNS_OF_SESSION)
        options: RecallOptions = {
            "profile": "ambient",
            "limit": limit,
            "breakdown": bool(request.about),
        }
        recalled = await recall(
            replace(
                make_request(request.context, options, self._journal.zone),
                without=seen.ids.union(own_turns),
                leave_out=request.leave_out,
            )
        )
        near: frozenset[str] | None = None
        if recalled.evidence:
            near = recalled.evidence.clear if seen.prompts else recalled.evidence.shown
        before_reader = frozenset(own_turns)

        def is_before_reader(hit: Hit) -> bool:
            if not request.reader_has_session:
                return False
            if isinstance(hit.item, Turn):
                if request.reader_has is not None:
                    return hit.id in before_reader
                return hit.item.session == request.session
            return _is_said_in(hit, before_reader)

        def is_new(hit: Hit) -> bool:
            return hit.id not in seen.ids and not is_before_reader(hit)

        def is_near(hit: Hit) -> bool:
            return is_new(hit) and (near is None or hit.id in near)

        hits = [hit for channel in recalled.channels.values() for hit in channel.hits]
        wanted = _with_successors(hits, is_near, before_reader)
        own_hits = [hit for statements in recalled.own.values() for hit in statements]
        wanted_own = _with_successors(own_hits, is_new, before_reader)
        own: dict[str, tuple[Hit, ...]] = {}
        for kind, statements in recalled.own.items():
            kept_statements = tuple(hit for hit in statements if hit.id in wanted_own)
            if kept_statements:
                own[kind] = kept_statements
        return replace(_only(recalled, lambda hit: hit.id in wanted, limit), own=own)

    async def _records(self, request: AmbientRequest, seen: Seen) -> Sequence[tuple[str, Line]]:
        lines = await self._always(request.limit_per_layer) if self._always else ()
        return [(id_, line) for id_, line in lines if id_ not in seen.ids]

    async def _instructions(self, seen: Seen) -> tuple[Turn, ...]:
        """Return the standing instructions that the session does not have yet, newest first."""
        standing = await standing_instructions(self._journal)
        return tuple(turn for turn in standing if turn.uuid not in seen.ids)

    async def _summaries(self, request: AmbientRequest, seen: Seen) -> tuple[Turn, ...]:
        """Return the latest summaries, for a start.

        At a prompt they come as what is near it, or where it is wanted.
        """
        limit = min(request.limit_per_layer, 1 if request.injected else _MAX_SUMMARIES)
        latest = await self._journal.of_kind("summary", limit)
        return tuple(turn for turn in latest if turn.uuid not in seen.ids)

    async def _trusted(self, recalled: Recall) -> dict[str, Trust]:
        """Return how far the least trusted source of each hit is.

        An agent's word where none is known.
        """
        hits = [hit for channel in recalled.channels.values() for hit in channel.hits]
        hits += [hit for own in recalled.own.values() for hit in own]
        sources: dict[str, tuple[str, ...]] = {}
        for hit in hits:
            sources[hit.id] = hit.item.episodes if isinstance(hit.item, Fact) else (hit.id,)
        nodes = [hit.id for hit in hits if isinstance(hit.item, Node)]
        mentions = await self._journal.mentioning(nodes, _MAX_MENTIONS) if nodes else {}
        sources.update((node, tuple(turns)) for node, turns in mentions.items())
        turns = await self._journal.turns(list(set[str]().union(*sources.values())))
        trust_by_turn: dict[str, Trust] = {turn.uuid: trust_of(turn) for turn in turns}
        trust: dict[str, Trust] = {}
        for id_, turn_ids in sources.items():
            trust[id_] = lowest(trust_by_turn[turn] for turn in turn_ids if turn in trust_by_turn)
        return trust

    async def _recent(self, request: AmbientRequest, seen: Seen) -> tuple[Turn, ...]:
        if request.mode == "turn":
            if request.reader_has_session or not request.session:
                return ()
            latest = await self._journal.recent(
                min(request.limit_per_layer, _MAX_RECENT_TURNS), session=request.session
            )
            return tuple(reversed(latest))
        session = None if request.reader_has_session else request.session
        latest = await self._journal.recent(
            _TURNS_PER_SAID_TURN * request.limit_per_layer, session=session
        )
        new = [
            turn
            for turn in latest
            if turn.uuid not in seen.ids
            and turn.uuid not in (request.reader_has or ())
            and not (request.resumed and turn.session == request.session)
        ]
        if request.reader_has_session:
            new = [turn for turn in new if turn.role != "tool"]
        return tuple(reversed(new[: request.limit_per_layer]))


def _is_said_in(hit: Hit, turns: Set[str]) -> bool:
    """Tell whether a hit is a fact that some turns alone state."""
    return (
        isinstance(hit.item, Fact) and bool(hit.item.episodes) and turns >= set(hit.item.episodes)
    )


def _marked(recalled: Recall, successors: Mapping[str, Successor]) -> Recall:
    channels = {
        name: replace(
            channel,
            hits=tuple(replace(hit, superseded_by=successors.get(hit.id)) for hit in channel.hits),
        )
        for name, channel in recalled.channels.items()
    }
    return replace(recalled, channels=channels)


def _with_successors(
    hits: Sequence[Hit], is_wanted: Callable[[Hit], bool], before_reader: frozenset[str]
) -> set[str]:
    """Return the ids of what is wanted, and of what took the place of it.

    An old statement is never given alone.

    What was superseded by the session's own words, which the reader has before it, is left out.
    """
    ids: set[str] = set()
    for hit in filter(is_wanted, hits):
        successor = hit.superseded_by
        is_before_reader = successor is not None and successor.id in before_reader
        if successor and successor.sure and is_before_reader:
            continue
        ids.add(hit.id)
        if successor and not is_before_reader:
            ids.add(successor.id)
    return ids


def _only(recalled: Recall, is_wanted: Callable[[Hit], bool], limit: int) -> Recall:
    """Return a recall with the wanted hits alone, at most ``limit`` a channel."""
    channels = {
        name: replace(channel, hits=tuple(filter(is_wanted, channel.hits))[:limit])
        for name, channel in recalled.channels.items()
    }
    own = {kind: tuple(filter(is_wanted, hits)) for kind, hits in recalled.own.items()}
    own = {kind: hits for kind, hits in own.items() if hits}
    return replace(recalled, channels=channels, own=own)


def _is_brief(recalled: Recall) -> bool:
    """Tell whether there is so little evidence that a line or two must do.

    The person's own statements are wanted.
    """
    return (
        recalled.evidence is not None and recalled.evidence.level == "little" and not recalled.own
    )


def _section_maxima(request: AmbientRequest) -> dict[str, int]:
    """Return section or group → most tokens; a larger pack has larger maxima."""
    growth = max(1.0, request.budget_tokens / _TOKENS_OF_MAXIMA)
    names = _MAX_SECTION_TOKENS if request.injected else ("alerts", "topics", "badges")
    maxima = {name: int(growth * _MAX_SECTION_TOKENS[name]) for name in names}
    maxima["explored"] = int(_EXPLORED_SHARE * request.budget_tokens)
    return maxima


class Sessions:
    """One entity's side of the sessions of coding agents.

    ``in_hooks`` are further sections of their packs.

    ``leave_out`` are the channels that a prompt's pack is made without: nodes, where hooks want
    facts alone (S2-06).
    """

    def __init__(
        self,
        make_pack: Callable[[AmbientRequest], Awaitable[Pack]],
        capture: Capture,
        journal: Journal,
        client: IsolatedGraphitiClient,
        in_hooks: tuple[str, ...] = (),
        leave_out: frozenset[ChannelName] = frozenset(),
    ) -> None:
        self._make_pack = make_pack
        self._client = client
        self._in_hooks = in_hooks
        self._leave_out = leave_out
        self._capture = capture
        self._journal = journal

    async def pack(
        self,
        context: str,
        session: str,
        *,
        mode: Literal["turn", "startup"] = "turn",
        resumed: bool = False,
        has: Sequence[str] | None = None,
    ) -> Pack:
        """Return what the agent is given.

        It has its session's own turns before it, so the pack tells of the rest.

        Args:
            context: The prompt, at most 65,536 characters; empty at start-up.
            session: What it was shown, since it began or was compacted, is not shown again.
            mode: ``startup`` goes by recency, ``turn`` by the context.
            resumed: At start-up: the session goes on with all that it had before it.
            has: Ids of the turns that the agent has before it; None is all of its session.
        """
        if mode == "startup" and not resumed:  # one that was cleared has nothing before it
            await self._journal.given.record_if_room(session, "compact", 0, ())
        request = AmbientRequest(
            context=context,
            budget_tokens=PACK_CHARS // 2,
            budget_chars=PACK_CHARS,
            session=session,
            mode=mode,
            reader_has_session=True,
            reader_has=None if has is None else tuple(has),
            about=self._in_hooks,
            resumed=resumed,
            leave_out=self._leave_out if mode == "turn" else frozenset(),
        )
        return await self._make_pack(request)

    async def inject(
        self, query: str, max_tokens: int, session: str | None = None, *, explore: bool = False
    ) -> Pack:
        """Return the pack of a turn with its topics and whether the session left its subject."""
        wanted = ("alerts", "topics", "badges", *(("explored",) if explore else ()))
        request = AmbientRequest(
            context=query, budget_tokens=max_tokens, session=session, about=wanted, injected=True
        )
        return await self._make_pack(request)

    async def capture(
        self, event: SessionEvent, is_ours: Callable[[str], bool], *, late: bool = False
    ) -> None:
        """Keep what happened; see ``Capture.take``.

        A session that is compacted forgets what it was shown.
        """
        await self._capture.take(event, is_ours, late=late)
        if event.event == "PreCompact":
            await self._journal.given.record(event.session, "compact", 0, ())

    async def injected(self, days: int, session: str | None = None) -> Injected:
        """Return how much agents were given in so many days, 1 to 30, and how often nothing.

        With a session also its latest packs, with the lines of those of their items that are still
        there.
        """
        check_range("days", days, 1, KEPT_D)
        since = now() - timedelta(days=days)
        sessions = await self._journal.given.injected(since)
        packs = await self._packs_of(session, since) if session else ()
        prompts = sum(each.prompts for each in sessions)
        empty = sum(each.empty for each in sessions)
        tokens_of_named = [each.tokens for each in sessions if each.session]
        return Injected(
            days=days,
            sessions=len(tokens_of_named),
            prompts=prompts,
            empty=empty,
            empty_share=round(empty / prompts, 3) if prompts else None,
            tokens=sum(each.tokens for each in sessions),
            tokens_a_session=(
                round(sum(tokens_of_named) / len(tokens_of_named), 1) if tokens_of_named else None
            ),
            latest=tuple(sessions[:_MAX_SESSIONS_LISTED]),
            packs=packs,
        )

    async def given_today(self, limit: int) -> GivenToday:
        """Return the totals of the packs for agents since midnight in the entity's zone.

        The lines are up to ``limit`` items from the latest packs of the latest session.
        """
        since = self._journal.now().replace(hour=0, minute=0, second=0, microsecond=0)
        sessions = await self._journal.given.injected(since)
        packs = await self._packs_of(sessions[0].session, since) if sessions else ()
        lines = {line.id: line for pack in packs for line in pack.lines}
        return GivenToday(
            sessions=len(sessions),
            prompts=sum(each.prompts for each in sessions),
            tokens=sum(each.tokens for each in sessions),
            lines=tuple(lines.values())[:limit],
        )

    async def _packs_of(self, session: str, since: datetime) -> tuple[GivenPack, ...]:
        packs = await self._journal.given.packs(session, since, _MAX_PACKS_LISTED)
        ids = list(dict.fromkeys(id_ for _, _, _, pack_ids in packs for id_ in pack_ids))
        lines = await self._lines([id_ for id_ in ids if is_uuid(id_)])
        for id_ in ids:
            if not is_uuid(id_):
                lines[id_] = GivenLine(id_, "anchor", id_.partition("#")[0])
        return tuple(
            GivenPack(
                at,
                "at its start" if occasion == "startup" else "at a prompt",
                tokens,
                tuple(lines[id_] for id_ in pack_ids if id_ in lines),
            )
            for at, occasion, tokens, pack_ids in packs
        )

    async def lines(self, ids: Sequence[str]) -> tuple[GivenLine, ...]:
        """Return a line of each of some items that is still there, in the order of their ids."""
        lines = await self._lines([id_ for id_ in ids if is_uuid(id_)])
        return tuple(lines[id_] for id_ in ids if id_ in lines)

    async def _lines(self, ids: Sequence[str]) -> dict[str, GivenLine]:
        """Return id → line of the items that are still there."""
        facts, turns, nodes = await asyncio.gather(
            self._client.facts(ids), self._journal.turns(ids), self._client.nodes(ids)
        )
        lines: dict[str, GivenLine] = {}
        for node in nodes:
            text = f"{node.name}: {node.summary}" if node.summary else node.name
            lines[node.uuid] = GivenLine(node.uuid, "node", one_line(text, LONGEST))
        for turn in turns:
            text = one_line(spoken(turn), LONGEST)
            lines[turn.uuid] = GivenLine(turn.uuid, "turn", text)
        for fact in facts:
            lines[fact.uuid] = GivenLine(fact.uuid, "fact", one_line(fact.text, LONGEST))
        return lines
