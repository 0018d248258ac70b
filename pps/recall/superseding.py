"""Superseded statements: their successors, and the last step of a recall that puts these first.

A turn is superseded when a later turn closed a fact that it states, or amends what it says
(``amending``); a fact when it was closed, or when a later turn amends it. All reads are one a store
for all statements together, through one entity's own journal, graph and indexes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from pps.core.recalled import Channel, Hit, Successor
from pps.core.text import fold, one_line
from pps.core.time import now
from pps.core.values import ChannelName, Closing, Fact, Node, Turn, Vector
from pps.recall.amending import AmendingStatement, rules_for
from pps.recall.channel_profile import ChannelProfile
from pps.recall.hits import fetch, text_of
from pps.recall.profiles import Profile
from pps.recall.question import asks_past, passage_of
from pps.recall.search import Scored, Search

if TYPE_CHECKING:
    from pps.index.indexes import EntityIndexes
    from pps.isolation.client import IsolatedGraphitiClient
    from pps.journal.journal import Journal
    from pps.journal.links import Support
    from pps.models.protocols import Embedder

MAX_SUCCESSOR_CHARS = 200
"""Characters of a successor's text."""
_TURNS_AROUND = 8
"""Turns that are looked at around each statement of a listing."""
_MAX_STATEMENTS_LOOKED_AROUND = 200
_QUERY_CHARS = 300
"""Characters of a turn that are searched for without a model of meaning."""
_MAX_STEPS = 32
"""Successors of successors that are followed."""
_MAX_LATER_TURNS = 64
"""Turns that are looked at too: that the reader has before it, or that only a facts channel
needs."""
_TURNS_AROUND_OWN_STATEMENTS = 6
"""Turns that are looked at around each of the person's own statements."""
_TURN_CHANNELS: tuple[ChannelName, ...] = ("episodes", "turns")


@dataclass(frozen=True, slots=True)
class Superseding:
    """Finds the successors of one entity's statements."""

    client: IsolatedGraphitiClient
    journal: Journal
    indexes: EntityIndexes
    embedder: Embedder | None = None

    async def successors(
        self,
        turns: Sequence[Turn],
        facts: Sequence[Fact],
        *,
        nodes: Sequence[Node] = (),
        later: Sequence[Turn] = (),
        at: datetime | None = None,
    ) -> dict[str, Successor]:
        """Return id → successor of those of the turns, facts and nodes that are superseded.

        Args:
            turns: What was said; each may also amend the others.
            facts: Open or closed ones.
            nodes: A node is outdated if its summary names the value of a closed fact of it, and not
                the value that holds since.
            later: Further turns that may amend them.
            at: The instant as of which to answer (aware, world time); later turns are unknown then.

        Raises:
            StoreUnavailable: A store does not answer.
            IsolationError: A foreign row came back.
        """
        marks = await self.marks(turns, facts, nodes=nodes, later=later, at=at)
        return dict(marks.successors)

    async def ended_in_part(
        self, facts: Sequence[Fact], at: datetime | None = None
    ) -> dict[str, Successor]:
        """Return open fact → the latest statement that ended another fact of the same sentence.

        "I live in Leeds with my sister" is two facts that have one sentence. Once the home is
        another, the sister is still one, and whoever reads the sentence is told what of it may not
        hold: no successor is ``sure``. Raises as ``successors``.
        """
        return _ended_in_part(facts, await self._closings_around((), facts, (), at or now()))

    async def marks(
        self,
        turns: Sequence[Turn],
        facts: Sequence[Fact],
        *,
        nodes: Sequence[Node] = (),
        later: Sequence[Turn] = (),
        supports: Mapping[str, Support] | None = None,
        at: datetime | None = None,
    ) -> SupersedingMarks:
        """Return ``successors`` and ``ended_in_part`` of one read of the closings.

        ``supports`` are those of facts that the caller has read.
        """
        if not turns and not facts and not nodes:
            return SupersedingMarks({}, {})
        moment = at or now()
        saying = {turn.uuid: turn for turn in (*turns, *later) if turn.occurred_at <= moment}
        noted, amended = await asyncio.gather(
            self._closings_around(turns, facts, nodes, moment),
            self._amended(turns, facts, saying, supports or {}),
        )
        successors = dict(amended)
        for id_, successor in _closed(turns, facts, noted, moment).items():
            known = successors.get(id_)
            if known is None or not known.sure or known.at <= successor.at:
                successors[id_] = successor
        last = {id_: _last(successors, id_) for id_ in successors}
        outdated = await self._outdated_summaries(nodes, noted)
        return SupersedingMarks(last | outdated, _ended_in_part(facts, noted))

    async def in_listing(
        self, turns: Sequence[Turn], facts: Sequence[Fact], at: datetime | None = None
    ) -> dict[str, Successor]:
        """Return ``successors`` of what is listed, among the turns that are nearest to each.

        The first 200 statements are looked around; by closings all are looked up.
        """
        if not turns and not facts:
            return {}
        open_facts = [fact for fact in facts if _is_open(fact)]
        near = await self._near(turns, open_facts) - {turn.uuid for turn in turns}
        later = await self.journal.turns(sorted(near)) if near else ()
        return await self.successors(turns, facts, later=later, at=at)

    async def _near(self, turns: Sequence[Turn], facts: Sequence[Fact]) -> set[str]:
        """Return the turns nearest to each statement in meaning, or in words without a model."""
        if self._has_model_of_meaning():
            vectors = await self._vectors(turns, facts)
            around = list(vectors.values())[:_MAX_STATEMENTS_LOOKED_AROUND]
            nearest = await self.indexes.nearest_of_each("episodes", around, _TURNS_AROUND)
            return {hit.owner for hits in nearest for hit in hits}
        texts = [_own_words(turn)[:_QUERY_CHARS] for turn in turns]
        texts += [fact.text for fact in facts]
        matches = await asyncio.gather(
            *(
                self.indexes.text_search("episodes", text, _TURNS_AROUND)
                for text in texts[:_MAX_STATEMENTS_LOOKED_AROUND]
            )
        )
        return {hit.owner for hits in matches for hit in hits}

    def _has_model_of_meaning(self) -> bool:
        return self.embedder is not None and self.embedder.fingerprint.pooling != "hash"

    async def _closings_around(
        self,
        turns: Sequence[Turn],
        facts: Sequence[Fact],
        nodes: Sequence[Node],
        moment: datetime,
    ) -> _NotedClosings:
        """Return the closings of the facts, of all facts of their sentences, and of the nodes."""
        stating = {turn.uuid for turn in turns}
        stating.update(turn for fact in facts if _is_open(fact) for turn in fact.episodes)
        around = await self.journal.closings.around(
            sorted(stating),
            [fact.uuid for fact in facts],
            sorted(node.uuid for node in nodes if node.summary),
            moment,
        )
        by_id = {fact.uuid: fact for fact in facts}
        ids = {id_ for closing in around.closings for id_ in (closing.fact, closing.by_fact) if id_}
        missing = sorted(ids - by_id.keys())
        if missing:
            by_id.update((fact.uuid, fact) for fact in await self.client.facts(missing))
        return _NotedClosings(around.stated, around.closings, around.turns, by_id)

    async def _outdated_summaries(
        self, nodes: Sequence[Node], noted: _NotedClosings
    ) -> dict[str, Successor]:
        """Return node → the latest successor of a closed fact whose value its summary still names.

        A model writes summaries and adds to them; it does not take out what ended. A summary that
        names the new value too tells of the change itself. None is ``sure``: the rest of the
        summary may hold.
        """
        summaries = {node.uuid: fold(node.summary) for node in nodes if node.summary}
        ended: list[tuple[Closing, Fact]] = []
        for closing in sorted(noted.closings, key=lambda closing: (closing.at, closing.fact)):
            fact = noted.facts.get(closing.fact)
            if fact is not None and fact.subject in summaries:
                ended.append((closing, fact))
        if not ended:
            return {}
        ends = {fact.object for _, fact in ended}
        for closing, _ in ended:
            replacement = noted.facts.get(closing.by_fact)
            if replacement is not None:
                ends.add(replacement.object)
        names = {node.uuid: fold(node.name) for node in await self.client.nodes(sorted(ends))}
        outdated: dict[str, Successor] = {}
        for closing, fact in ended:
            summary = summaries[fact.subject]
            replacement = noted.facts.get(closing.by_fact)
            new_value = names.get(replacement.object, "") if replacement else ""
            successor = noted.successor(closing)
            if successor is None or _names(summary, new_value):
                continue
            if _names(summary, names.get(fact.object, "")):
                outdated[fact.subject] = replace(successor, sure=False)
        return outdated

    async def _amended(
        self,
        turns: Sequence[Turn],
        facts: Sequence[Fact],
        saying: Mapping[str, Turn],
        known: Mapping[str, Support],
    ) -> dict[str, Successor]:
        """Return the successors of turns and open facts that a later turn amends."""
        open_facts = [fact for fact in facts if _is_open(fact)]
        speaking = [turn for turn in saying.values() if _may_amend(turn)]
        if not speaking:
            return {}
        supports = dict(known)
        missing = [fact.uuid for fact in open_facts if fact.uuid not in known]
        if missing:
            supports.update(await self.journal.fact_supports(missing))
        vectors = await self._vectors([*turns, *speaking], open_facts)
        earlier = [statement_of(turn, vectors) for turn in turns]
        for fact in open_facts:
            support = supports.get(fact.uuid)
            said_at = (support.said_at if support else None) or fact.valid_at or fact.created_at
            earlier.append(
                AmendingStatement(
                    fact.uuid, fact.text, said_at, "", vectors.get(fact.uuid), amends=False
                )
            )
        rules = rules_for(self.embedder.fingerprint.model if self.embedder else "")
        new = [statement_of(turn, vectors) for turn in speaking]
        # Some milliseconds of pure Python: a thread would only take turns with this one.
        amendments = rules.amendments(earlier, new)
        states = {fact.uuid: set(fact.episodes) for fact in open_facts}
        amending = {id_: amendment.later for id_, amendment in amendments.items() if id_ in states}
        ended_beside = await self._ended_beside(amending, states)
        return {
            id_: successor_of(saying[amendment.later], sure=amendment.sure)
            for id_, amendment in amendments.items()
            if amendment.later not in states.get(id_, ()) and id_ not in ended_beside
        }

    async def _ended_beside(
        self, amending: Mapping[str, str], states: Mapping[str, set[str]]
    ) -> set[str]:
        """Return the open facts of which the amending turn closed another fact of the same turn.

        "I live in Hamburg and work as a nurse" is two facts. "I quit" ended one of them and says
        nothing of the other, though the sentence of both is amended.

        Args:
            amending: Open fact → the turn that amends its sentence.
            states: Open fact → the turns that state it.
        """
        if not amending:
            return set()
        closings = await self.journal.closings.by_turns(sorted(set(amending.values())))
        closed = sorted({closing.fact for closing in closings})
        supports = await self.journal.fact_supports(closed) if closed else {}
        stating: dict[str, set[str]] = {}
        for closing in closings:
            support = supports.get(closing.fact)
            stating.setdefault(closing.by_turn, set()).update(support.episodes if support else ())
        return {fact for fact, turn in amending.items() if states[fact] & stating.get(turn, set())}

    async def _vectors(self, turns: Sequence[Turn], facts: Sequence[Fact]) -> dict[str, Vector]:
        if not self._has_model_of_meaning():
            return {}
        of_turns, of_facts = await asyncio.gather(
            self.indexes.vectors("episodes", list({turn.uuid for turn in turns})),
            self.indexes.vectors("facts", [fact.uuid for fact in facts]),
        )
        return of_turns | of_facts


def successor_of(turn: Turn, *, sure: bool = True) -> Successor:
    """Return a turn as what took the place of another statement."""
    text = one_line(_own_words(turn), MAX_SUCCESSOR_CHARS)
    return Successor(turn.uuid, text, turn.occurred_at, sure)


@dataclass(frozen=True, slots=True)
class SupersedingMarks:
    """What ``Superseding.successors`` and ``Superseding.ended_in_part`` return."""

    successors: Mapping[str, Successor]
    ended_in_part: Mapping[str, Successor]


@dataclass(frozen=True, slots=True)
class _NotedClosings:
    """``ClosingsAround``, with the facts: those that were asked about, closed, or took a place."""

    stated: Mapping[str, Sequence[str]]
    closings: Sequence[Closing]
    turns: Mapping[str, Turn]
    facts: Mapping[str, Fact]

    def successor(self, closing: Closing) -> Successor | None:
        """Return the fact that took the place of the closed one, else the turn that ended it."""
        turn = self.turns.get(closing.by_turn)
        fact = self.facts.get(closing.by_fact)
        if fact is not None:
            at = turn.occurred_at if turn else closing.at
            return Successor(fact.uuid, one_line(fact.text, MAX_SUCCESSOR_CHARS), at, sure=True)
        return successor_of(turn) if turn else None


def _closed(
    turns: Sequence[Turn], facts: Sequence[Fact], noted: _NotedClosings, moment: datetime
) -> dict[str, Successor]:
    """Return the successors by closings: of closed facts, and of the turns that state them."""
    of_fact: dict[str, Closing] = {}
    for closing in noted.closings:
        of_fact.setdefault(closing.fact, closing)
    successors: dict[str, Successor] = {}
    for fact in facts:
        closing = of_fact.get(fact.uuid)
        successor = noted.successor(closing) if closing else None
        if successor:
            successors[fact.uuid] = successor
    for turn in turns:
        for fact_id in noted.stated.get(turn.uuid, ()):
            closing = of_fact.get(fact_id)
            source = noted.turns.get(closing.by_turn) if closing else None
            if source and turn.occurred_at < source.occurred_at <= moment:
                successors[turn.uuid] = successor_of(source)
    return successors


def _ended_in_part(facts: Sequence[Fact], noted: _NotedClosings) -> dict[str, Successor]:
    """Return open fact → the latest statement that ended another fact of the same sentence."""
    open_facts = [fact for fact in facts if _is_open(fact)]
    open_ids = {fact.uuid for fact in open_facts}
    latest = sorted(noted.closings, key=lambda closing: closing.at)
    beside = [closing for closing in latest if closing.fact not in open_ids]
    ended: dict[str, Successor] = {}
    for fact in open_facts:
        same_turn = {id_ for turn in fact.episodes for id_ in noted.stated.get(turn, ())}
        for closing in beside:
            closed = noted.facts.get(closing.fact)
            if closing.fact not in same_turn or closed is None:
                continue
            if not _is_said_in(closed.text, fact.text):
                continue
            successor = noted.successor(closing)
            if successor and successor.id not in fact.episodes:
                ended[fact.uuid] = replace(successor, sure=False)
    return ended


def _is_open(fact: Fact) -> bool:
    return fact.invalid_at is None and fact.kind == "fact"


def _last(successors: Mapping[str, Successor], id_: str) -> Successor:
    """Return the successor that is itself not superseded.

    On a ring, the last before a repetition.
    """
    successor = successors[id_]
    passed = {id_}
    for _ in range(_MAX_STEPS):
        following = successors.get(successor.id)
        if following is None or not following.sure or following.id in passed:
            break
        passed.add(successor.id)
        successor = replace(following, sure=successor.sure)
    return successor


def _is_said_in(sentence: str, other: str) -> bool:
    """Tell whether a sentence equals or is part of the other, apart from marks at its end."""
    words, more = sorted((fold(text).rstrip(" .!?;,") for text in (sentence, other)), key=len)
    return bool(words) and words in more


def _names(text: str, name: str) -> bool:
    """Tell whether a folded text has a folded name in it, as words."""
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _may_amend(turn: Turn) -> bool:
    """Tell whether a person said it: documents, summaries and what tools do amend nothing."""
    return turn.role == "user" and turn.kind != "summary" and turn.chunk is None


def statement_of(turn: Turn, vectors: Mapping[str, Vector]) -> AmendingStatement:
    """Return a turn as a statement; a person without a name may be any person."""
    speaker = turn.actor or ("" if turn.role == "user" else turn.role)
    return AmendingStatement(
        turn.uuid,
        _own_words(turn),
        turn.occurred_at,
        speaker,
        vectors.get(turn.uuid),
        amends=_may_amend(turn),
    )


def _own_words(turn: Turn) -> str:
    return turn.content.removeprefix(f"{turn.actor or turn.role}:").strip()


async def current_first(
    search: Search,
    channels: Mapping[ChannelName, Channel],
    own: Mapping[str, Sequence[Hit]],
    profile: Profile,
) -> tuple[dict[ChannelName, Channel], dict[str, tuple[Hit, ...]]]:
    """Return the channels and own statements with ``superseded_by`` set, successors above.

    A successor that is not among the hits is put there, even if the reader was shown it before: an
    old statement is never given alone. A query that asks for how it was, one that names a time
    before the later statement, and a channel without ``latest`` keep their order.

    Args:
        search: The recall in progress.
        channels: Its channels.
        own: Kind → the person's own statements.
        profile: Its profile.

    Raises:
        StoreUnavailable: A store does not answer.
        IsolationError: A foreign row came back.
    """
    hits = [hit for channel in channels.values() for hit in channel.hits]
    hits += [hit for statements in own.values() for hit in statements]
    turns = list({hit.id: hit.item for hit in hits if isinstance(hit.item, Turn)}.values())
    facts = [hit.item for hit in hits if isinstance(hit.item, Fact)]
    nodes = list({hit.id: hit.item for hit in hits if isinstance(hit.item, Node)}.values())
    later = await _later_turns(search, channels, own, profile) if turns or facts else []
    sources = search.sources
    superseding = Superseding(sources.client, sources.journal, sources.indexes, sources.embedder)
    superseded = await superseding.marks(
        turns, facts, nodes=nodes, later=later, supports=search.supports, at=search.as_of
    )
    successors = superseded.successors
    marks = {**superseded.ended_in_part, **successors}
    if not marks:
        return dict(channels), {kind: tuple(statements) for kind, statements in own.items()}
    turn_by_id = {turn.uuid: turn for turn in (*turns, *later)}
    leading: dict[str, Successor] = {}
    if not asks_past(search.text):
        leading = await _of_the_time_asked(search, successors, hits)
    fact_claims = _claims(channels["facts"].hits, leading) if "facts" in channels else []
    marked_channels: dict[ChannelName, Channel] = {}
    for name, channel in channels.items():
        marked = _marked(channel.hits, marks)
        channel_profile = profile.channels.get(name)
        puts_latest_first = channel_profile is not None and channel_profile.latest
        if name in _TURN_CHANNELS and leading and puts_latest_first:
            claims = [*_claims(marked, leading), *fact_claims]
            ordered = _with_successors_first(search, marked, claims, turn_by_id)
            _trace_moves(search, name, marked, ordered)
            marked_channels[name] = replace(channel, hits=ordered)
        else:
            marked_channels[name] = replace(channel, hits=tuple(marked))
    marked_own: dict[str, tuple[Hit, ...]] = {}
    for kind, statements in own.items():
        marked = _marked(statements, marks)
        claims = _claims(marked, leading)
        marked_own[kind] = _with_successors_first(search, marked, claims, turn_by_id)
    return marked_channels, marked_own


def _marked(hits: Sequence[Hit], successors: Mapping[str, Successor]) -> list[Hit]:
    marked: list[Hit] = []
    for hit in hits:
        successor = successors.get(hit.id)
        marked.append(hit if successor is None else replace(hit, superseded_by=successor))
    return marked


def _claims(hits: Sequence[Hit], leading: Mapping[str, Successor]) -> list[tuple[int, Successor]]:
    """Return the rank, from 0, of each superseded hit, and the successor that is to stand there."""
    return [(rank, leading[hit.id]) for rank, hit in enumerate(hits) if hit.id in leading]


async def prepare_later_turns(
    search: Search, channels: Mapping[ChannelName, ChannelProfile]
) -> None:
    """Look up the turns that ``current_first`` takes successors from, beside the retrievers."""
    if _needs_turns_near_query(channels):
        await _turns_near_query(search, by_meaning=channels["facts"].goes_by_meaning)


def _needs_turns_near_query(channels: Container[ChannelName]) -> bool:
    """Tell whether an answer has facts and no turns of which one might amend them."""
    return "facts" in channels and not any(name in channels for name in _TURN_CHANNELS)


async def _turns_near_query(search: Search, *, by_meaning: bool) -> list[Scored]:
    depth = _MAX_LATER_TURNS // 2
    lists = [search.text_matches("episodes", search.words, depth)]
    if by_meaning:
        lists.insert(0, search.vector_matches("episodes", depth))
    return [entry for entries in await asyncio.gather(*lists) for entry in entries]


async def _later_turns(
    search: Search,
    channels: Mapping[ChannelName, Channel],
    own: Mapping[str, Sequence[Hit]],
    profile: Profile,
) -> list[Turn]:
    """Return the turns among which successors are looked for.

    They are the candidates, what the reader has before it, what is nearest to the person's own
    statements, and for an answer of facts alone what is nearest to the query.
    """
    ids = sorted(search.excluded_turns)[:_MAX_LATER_TURNS]
    statements = [hit.id for hits in own.values() for hit in hits]
    if statements:
        vectors = await search.sources.indexes.vectors("episodes", statements)
        nearest_of_each = await search.sources.indexes.nearest_of_each(
            "episodes", list(vectors.values()), _TURNS_AROUND_OWN_STATEMENTS
        )
        around = {hit.owner for nearest in nearest_of_each for hit in nearest}
        ids += await search.permitted("episode", sorted(around))
    if _needs_turns_near_query(channels):
        facts_profile = profile.channels.get("facts")  # a recipe of Graphiti's has none
        by_meaning = facts_profile is None or facts_profile.goes_by_meaning
        near = await _turns_near_query(search, by_meaning=by_meaning)
        ids += [entry.id for entry in near]
    await fetch(search, "episodes", ids)
    return [item for item in search.items.values() if isinstance(item, Turn)]


async def _of_the_time_asked(
    search: Search, successors: Mapping[str, Successor], hits: Sequence[Hit]
) -> dict[str, Successor]:
    """Return the successors without those said after the time that the query names.

    "Where did we live in March?" is not answered by what was said in May, if the earlier statement
    still held in March.
    """
    spans = await search.named_spans()
    ends = [span.end for span in spans if span.end is not None]
    if not ends or len(ends) < len(spans):
        return dict(successors)
    until = max(ends)
    said_before: set[str] = set()
    for hit in hits:
        at = _said_at(hit)
        if at is not None and at < until:
            said_before.add(hit.id)
    return {
        id_: successor
        for id_, successor in successors.items()
        if successor.at < until or id_ not in said_before
    }


def _said_at(hit: Hit) -> datetime | None:
    if isinstance(hit.item, Turn):
        return hit.item.occurred_at
    return hit.item.valid_at if isinstance(hit.item, Fact) else None


def _with_successors_first(
    search: Search,
    hits: Sequence[Hit],
    claims: Sequence[tuple[int, Successor]],
    turns: Mapping[str, Turn],
) -> tuple[Hit, ...]:
    """Return as many hits, each successor in place of the first hit that it supersedes.

    Args:
        search: The recall in progress.
        hits: Best first.
        claims: Rank, from 0, and successor of what is superseded, here and among the facts.
        turns: Id → turn of the successors that are known.
    """
    claimed_ranks: dict[str, int] = {}
    for rank, successor in claims:
        if successor.id in turns:
            claimed_ranks[successor.id] = min(rank, claimed_ranks.get(successor.id, rank))
    hit_by_id = {hit.id: hit for hit in hits}
    # A successor sorts before the hit of its rank: 0 before 1.
    sort_keys = {hit.id: (rank, 1) for rank, hit in enumerate(hits)}
    for id_, rank in claimed_ranks.items():
        if id_ not in sort_keys or sort_keys[id_][0] > rank:
            sort_keys[id_] = (rank, 0)
            if id_ not in hit_by_id:
                score = hits[min(rank, len(hits) - 1)].score if hits else 0.0
                hit_by_id[id_] = _hit_of(search, turns[id_], score)
    order = sorted(sort_keys, key=sort_keys.__getitem__)
    room = max(len(hits), min(len(order), search.request.limit))
    # If there is no room for all, superseded hits of the second half go before others.
    droppable: list[str] = []
    for id_ in order[room // 2 :]:
        successor = hit_by_id[id_].superseded_by
        if successor and successor.sure and successor.id in sort_keys:
            droppable.append(id_)
    while len(order) > room and droppable:
        order.remove(droppable.pop())
    return tuple(hit_by_id[id_] for id_ in order[:room])


def _hit_of(search: Search, turn: Turn, score: float) -> Hit:
    text = text_of(turn)
    return Hit(turn.uuid, score, text, turn, passage=passage_of(search.text, text))


def _trace_moves(
    search: Search, name: ChannelName, before: Sequence[Hit], after: Sequence[Hit]
) -> None:
    """Note for ``why`` which hits were moved up."""
    if search.traces is None or name not in search.traces:
        return
    trace = search.traces[name]
    moves = dict(trace.moves)
    places = {hit.id: place for place, hit in enumerate(before)}
    for place, hit in enumerate(after):
        if places.get(hit.id, len(before)) > place:
            moves[hit.id] = "moved up: it took the place of what was said before"
    search.traces[name] = replace(trace, moves=moves)
