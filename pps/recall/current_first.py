"""The last step of a recall: superseded hits are marked, and their successors stand above them."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.recalled import Channel, Hit, Successor
from pps.core.values import ChannelName, Fact, Node, Turn
from pps.recall.channel_profile import ChannelProfile
from pps.recall.hits import fetch, text_of
from pps.recall.profiles import Profile
from pps.recall.query_words import passage_of
from pps.recall.question import asks_past
from pps.recall.search import Scored, Search
from pps.recall.superseding import Superseding

_MAX_LATER_TURNS = 64
"""Turns that are looked at too: that the reader has before it, or that only a facts channel
needs."""
_TURNS_AROUND = 6
"""Turns that are looked at around each of the person's own statements."""
_TURN_CHANNELS: tuple[ChannelName, ...] = ("episodes", "turns")


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
    successors = await superseding.successors(
        turns, facts, nodes=nodes, later=later, at=search.as_of
    )
    if not successors:
        return dict(channels), {kind: tuple(statements) for kind, statements in own.items()}
    turn_by_id = {turn.uuid: turn for turn in (*turns, *later)}
    leading: dict[str, Successor] = {}
    if not asks_past(search.text):
        leading = await _of_the_time_asked(search, successors, hits)
    fact_claims = _claims(channels["facts"].hits, leading) if "facts" in channels else []
    marked_channels: dict[ChannelName, Channel] = {}
    for name, channel in channels.items():
        marked = _marked(channel.hits, successors)
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
        marked = _marked(statements, successors)
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
    """Look up the turns among which ``current_first`` looks for successors, beside the retrievers."""
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
            "episodes", list(vectors.values()), _TURNS_AROUND
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
