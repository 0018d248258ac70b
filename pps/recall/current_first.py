"""The last step of a recall: what is superseded says so, and what took its place stands above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.recalled import Channel, Hit, Successor
from pps.core.values import ChannelName, Fact, Node, Turn
from pps.recall.hits import fetch, text_of
from pps.recall.profiles import Profile
from pps.recall.query import Ask
from pps.recall.query_words import passage_of
from pps.recall.question import asks_past
from pps.recall.superseding import Superseding

_MOST_LATER = 64
"""Turns that the reader has before it, or that only a facts channel needs, which are looked at too."""
_AROUND = 6
"""Turns that are looked at around each of the person's own statements."""
_SPOKEN: tuple[ChannelName, ...] = ("episodes", "turns")


async def current_first(
    ask: Ask,
    channels: Mapping[ChannelName, Channel],
    own: Mapping[str, Sequence[Hit]],
    profile: Profile,
) -> tuple[dict[ChannelName, Channel], dict[str, tuple[Hit, ...]]]:
    """Return the channels, and the person's own statements by kind, with ``superseded_by`` set, and each turn that took another's place above that one.

    Where it is not among the hits it is put there, even if the reader was shown it before: an old statement is never
    given alone. A query that asks for how it was, one that names a time before the later statement, and a channel
    without ``latest`` keep their order.

    Raises:
        StoreUnavailable: A store does not answer.
        IsolationError: A foreign row came back.
    """
    hits = [hit for channel in channels.values() for hit in channel.hits]
    hits += [hit for statements in own.values() for hit in statements]
    turns = list({hit.id: hit.item for hit in hits if isinstance(hit.item, Turn)}.values())
    facts = [hit.item for hit in hits if isinstance(hit.item, Fact)]
    nodes = list({hit.id: hit.item for hit in hits if isinstance(hit.item, Node)}.values())
    later = await _later(ask, channels, own) if turns or facts else []
    sources = ask.sources
    superseding = Superseding(sources.client, sources.journal, sources.indexes, sources.embedder)
    found = await superseding.successors(turns, facts, nodes=nodes, later=later, at=ask.as_of)
    if not found:
        return dict(channels), {kind: tuple(statements) for kind, statements in own.items()}
    said = {turn.uuid: turn for turn in (*turns, *later)}
    first = {} if asks_past(ask.text) else await _at_the_time_asked(ask, found, hits)
    outdated_facts = _claims(channels["facts"].hits, first) if "facts" in channels else []
    result: dict[ChannelName, Channel] = {}
    for name, channel in channels.items():
        marked = [replace(hit, superseded_by=found.get(hit.id)) for hit in channel.hits]
        its = profile.channels.get(name)
        if name in _SPOKEN and first and its is not None and its.latest:
            ordered = _ordered(ask, marked, [*_claims(marked, first), *outdated_facts], said)
            _explain(ask, name, [hit.id for hit in marked], ordered)
            result[name] = replace(channel, hits=ordered)
        else:
            result[name] = replace(channel, hits=tuple(marked))
    statements_of: dict[str, tuple[Hit, ...]] = {}
    for kind, statements in own.items():
        marked = [replace(hit, superseded_by=found.get(hit.id)) for hit in statements]
        statements_of[kind] = _ordered(ask, marked, _claims(marked, first), said)
    return result, statements_of


def _claims(hits: Sequence[Hit], first: Mapping[str, Successor]) -> list[tuple[int, Successor]]:
    """Return the rank, from 0, of each hit that is superseded, and what is to stand there in its place."""
    return [(rank, first[hit.id]) for rank, hit in enumerate(hits) if hit.id in first]


async def _later(
    ask: Ask, channels: Mapping[ChannelName, Channel], own: Mapping[str, Sequence[Hit]]
) -> list[Turn]:
    """Return the turns among which successors are looked for.

    They are the candidates, what the reader has before it, what is nearest to the person's own statements, and for an
    answer of facts alone what is nearest to the query.
    """
    wanted = sorted(ask.left_out)[:_MOST_LATER]
    statements = [hit.id for hits in own.values() for hit in hits]
    if statements:
        vectors = await ask.sources.indexes.vectors("episodes", statements)
        nearest = await ask.sources.indexes.nearest_of_each(
            "episodes", list(vectors.values()), _AROUND
        )
        around = {hit.owner for hits in nearest for hit in hits}
        wanted += await ask.permitted("episode", sorted(around))
    if "facts" in channels and not channels.keys() & set(_SPOKEN):
        near = [
            *await ask.similar("episodes", _MOST_LATER // 2),
            *await ask.matches("episodes", ask.words, _MOST_LATER // 2),
        ]
        wanted += [one.id for one in near]
    await fetch(ask, "episodes", wanted)
    return [item for item in ask.items.values() if isinstance(item, Turn)]


async def _at_the_time_asked(
    ask: Ask, found: Mapping[str, Successor], hits: Sequence[Hit]
) -> dict[str, Successor]:
    """Return the successors but for those said after the time that the query names, when the earlier ones still held.

    "Where did we live in March?" is not answered by what was said in May.
    """
    spans = await ask.times()
    ends = [span.end for span in spans if span.end is not None]
    if not ends or len(ends) < len(spans):
        return dict(found)
    until = max(ends)
    held = {hit.id for hit in hits if (at := _said_at(hit)) is not None and at < until}
    return {
        id_: successor
        for id_, successor in found.items()
        if successor.at < until or id_ not in held
    }


def _said_at(hit: Hit) -> datetime | None:
    if isinstance(hit.item, Turn):
        return hit.item.occurred_at
    return hit.item.valid_at if isinstance(hit.item, Fact) else None


def _ordered(
    ask: Ask,
    hits: Sequence[Hit],
    claims: Sequence[tuple[int, Successor]],
    said: Mapping[str, Turn],
) -> tuple[Hit, ...]:
    """Return as many hits, each successor where the first of those that it took the place of was.

    ``claims`` are rank, from 0, and successor of what is superseded, here and among the facts.
    """
    by_id = {hit.id: hit for hit in hits}
    wanted: dict[str, int] = {}
    for rank, successor in claims:
        if successor.id in said:
            wanted[successor.id] = min(rank, wanted.get(successor.id, rank))
    ranks = {hit.id: (float(rank), 1) for rank, hit in enumerate(hits)}
    for id_, rank in wanted.items():
        if ranks.get(id_, (len(hits), 0))[0] > rank:
            ranks[id_] = (float(rank), 0)
            if id_ not in by_id:
                score = hits[min(rank, len(hits) - 1)].score if hits else 0.0
                by_id[id_] = _hit_of(ask, said[id_], score)
    order = sorted(ranks, key=ranks.__getitem__)
    room = max(len(hits), min(len(order), ask.request.limit))
    # Where there is no room for all, a superseded one of the second half goes before what still holds.
    superseded = [
        id_
        for id_ in order[room // 2 :]
        if (successor := by_id[id_].superseded_by) and successor.sure and successor.id in ranks
    ]
    while len(order) > room and superseded:
        order.remove(superseded.pop())
    return tuple(by_id[id_] for id_ in order[:room])


def _hit_of(ask: Ask, turn: Turn, score: float) -> Hit:
    text = text_of(turn)
    return Hit(turn.uuid, score, text, turn, passage=passage_of(ask.text, text))


def _explain(ask: Ask, name: ChannelName, before: Sequence[str], after: Sequence[Hit]) -> None:
    """Note for ``why`` what was moved, and what is superseded."""
    if ask.traces is None or name not in ask.traces:
        return
    trace = ask.traces[name]
    moved = dict(trace.moved)
    places = {id_: place for place, id_ in enumerate(before)}
    for place, hit in enumerate(after):
        if places.get(hit.id, len(before)) > place:
            moved[hit.id] = "moved up: it took the place of what was said before"
    ask.traces[name] = replace(trace, moved=moved)
