"""From ids to values, in one read a store, and from ranked values to what a caller sees."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from pps.core.errors import NotFound
from pps.core.recalled import Hit, Relationship, Step
from pps.core.time import has_begun
from pps.core.values import AnchorPassage, ChannelName, Episode, Fact, Node, Turn, spoken
from pps.journal.links import FactOutline, NodeOutline, Support, holds
from pps.recall.query import Ask, Candidate, Item, Scored
from pps.recall.query_words import most_like, passage_of

if TYPE_CHECKING:
    from pps.recall.channel import Lists

MOST_RELATIONSHIPS = 20
"""Most relationships of one node."""
_READ_FACTS = (2 * MOST_RELATIONSHIPS, 1_000)
"""Facts read of each node, newest first, and how many where most of those have ended."""
OUTLINED: tuple[ChannelName, ...] = ("facts", "nodes")
"""Channels whose order is made without reading the graph."""


async def fetch(ask: Ask, channel: ChannelName, ids: Sequence[str]) -> dict[str, Item]:
    """Return the values of a channel's ids in the order given.

    Left out: what is gone (an index may lag behind the truth), and facts that have ended by now when
    no other time was asked for.
    """
    missing = [one for one in dict.fromkeys(ids) if one not in ask.items]
    if missing:
        ask.items.update(await _read(ask, channel, missing))
    found = {one: ask.items[one] for one in dict.fromkeys(ids) if one in ask.items}
    return {one: item for one, item in found.items() if _current(ask, item)}


async def outlined(ask: Ask, channel: ChannelName, ids: Sequence[str]) -> dict[str, Candidate]:
    """Return what an order of a channel's ids is made of, in the order given; left out as by ``fetch``.

    Facts and nodes come from the journal's projection, and from the graph those that it lacks. It is written beside
    the graph, so it may lag behind or be ahead by a moment: ``fetch`` has the last word on what is shown.
    """
    if channel not in OUTLINED:
        items = await fetch(ask, channel, ids)
        return {one: item for one, item in items.items() if not isinstance(item, (Fact, Node))}
    if missing := [one for one in dict.fromkeys(ids) if one not in ask.outlines]:
        journal = ask.sources.journal
        known = await (
            journal.fact_outlines(missing) if channel == "facts" else journal.node_outlines(missing)
        )
        ask.outlines.update(known)
        unknown = [one for one in missing if one not in known]
        for one, item in (await fetch(ask, channel, unknown)).items() if unknown else ():
            if isinstance(item, Fact):
                ask.outlines[one] = FactOutline.of(item)
            elif isinstance(item, Node):
                ask.outlines[one] = NodeOutline.of(item)
    found = {one: ask.outlines[one] for one in dict.fromkeys(ids) if one in ask.outlines}
    return {one: item for one, item in found.items() if _current(ask, item)}


async def supported(ask: Ask, facts: Iterable[str]) -> dict[str, Support]:
    """Return what each of the facts stands on, in the order given; facts that ``outlined`` found.

    From the projection, or in the graph's own words where that lacks the fact.
    """
    wanted = list(dict.fromkeys(facts))
    if missing := [one for one in wanted if one not in ask.supports]:
        known = await ask.sources.journal.fact_supports(missing)
        for one in missing:
            item = ask.items.get(one)
            ask.supports[one] = known.get(one) or Support(
                item.episodes if isinstance(item, Fact) else ()
            )
    return {one: ask.supports[one] for one in wanted}


async def names_of(ask: Ask, nodes: Sequence[str]) -> Mapping[str, str]:
    if missing := [one for one in dict.fromkeys(nodes) if one not in ask.names]:
        known = await ask.sources.journal.names_of(missing)
        ask.names.update((one, name) for one, (name, *_) in known.items())
    if missing := [
        one for one in missing if one not in ask.names
    ]:  # the projection may lag behind the graph
        found = await fetch(ask, "nodes", missing)
        named = {one: node.name for one, node in found.items() if isinstance(node, Node)}
        ask.names.update((one, named.get(one, "")) for one in missing)
    return ask.names


async def times_of(ask: Ask, items: Mapping[str, Candidate]) -> dict[str, datetime]:
    """Return id → event time (of the world, never when PPS learned of it) of those that have one.

    A fact is as old as its latest supporting episode, else as its ``valid_at``; a record as its text, another node as
    the latest turn that speaks of it.
    """
    facts = {one: item for one, item in items.items() if isinstance(item, FactOutline)}
    supports = await supported(ask, facts) if facts else {}
    times = {
        one: supports[one].said_at if one in supports else _own_time(item)
        for one, item in items.items()
    }
    if nodes := [one for one, item in items.items() if isinstance(item, NodeOutline)]:
        times.update(await ask.sources.journal.records.times(nodes))
    # Some are supported by what only the graph knows, such as an episode that was added through Graphiti itself.
    untold = {one: supports[one].episodes for one in facts if times[one] is None}
    episodes = (
        await fetch(ask, "episodes", [one for some in untold.values() for one in some])
        if untold
        else {}
    )
    for one, some in untold.items():
        ages = [at for episode in some if (at := _own_time(episodes.get(episode)))]
        times[one] = max(ages, default=facts[one].valid_at)
    return {one: at for one, at in times.items() if at is not None}


def age_d(ask: Ask, at: datetime) -> float:
    """Return how many days before the moment of the question something happened; 0 for the future."""
    return max(0.0, (ask.moment - at).total_seconds() / 86_400)


def _current(ask: Ask, item: Item | Candidate) -> bool:
    return (
        not isinstance(item, (Fact, FactOutline))
        or ask.as_of is not None
        or holds(item, ask.moment)
    )


def _own_time(item: Item | Candidate | None) -> datetime | None:
    if isinstance(item, Turn):
        return item.occurred_at
    if isinstance(item, Episode):
        return item.valid_at
    return item.modified_at if isinstance(item, AnchorPassage) else None


async def _read(ask: Ask, channel: ChannelName, ids: Sequence[str]) -> dict[str, Item]:
    client = ask.sources.client
    if channel == "anchors":
        return await _anchors(ask, ids)
    if channel == "nodes":
        return {one.uuid: one for one in await client.nodes(ids)}
    if channel == "facts":
        return {one.uuid: one for one in await client.facts(ids)}
    found: dict[str, Item] = {one.uuid: one for one in await ask.sources.journal.turns(ids)}
    if others := [one for one in ids if one not in found]:
        found.update((one.uuid, one) for one in await client.episodes(others))
    return found


async def _anchors(ask: Ask, slugs: Sequence[str]) -> dict[str, Item]:
    found = await asyncio.gather(*(_passages(ask, slug) for slug in slugs))
    items: dict[str, Item] = {}
    for slug, passages in zip(slugs, found, strict=True):
        if passages:
            part = ask.parts.get(("anchors", slug))
            by_part = {one.part: one for one in passages}
            items[slug] = (
                by_part.get(part, passages[0])
                if part is not None
                else most_like(ask.text, passages)
            )
    return items


async def _passages(ask: Ask, slug: str) -> Sequence[AnchorPassage]:
    try:
        return await ask.sources.anchors.passages(slug) if ask.sources.anchors else ()
    except NotFound:
        return ()


def text_of(item: Item) -> str:
    """Return what a reader is shown: a fact's sentence, a node's name and summary, a turn with its speaker."""
    if isinstance(item, (Fact, AnchorPassage)):
        return item.text
    if isinstance(item, Node):
        return f"{item.name}: {item.summary}" if item.summary else item.name
    return item.content if isinstance(item, Episode) else spoken(item)


def shown_id(one: str, item: Item | Candidate) -> str:
    """Return the id under which a hit is shown: an anchor's passage has one of its own."""
    return f"{item.slug}#{item.part}" if isinstance(item, AnchorPassage) else one


async def make_hits(
    ask: Ask, picked: Mapping[str, Item], scores: Mapping[str, float], lists: Lists
) -> tuple[Hit, ...]:
    """Return the picked values as hits, in order, with the names of facts' ends and the reasons for each."""
    ends = [
        end
        for item in picked.values()
        if isinstance(item, Fact)
        for end in (item.subject, item.object)
    ]
    names = await names_of(ask, ends)
    nodes = [one for one, item in picked.items() if isinstance(item, Node)]
    records = await ask.sources.journal.records.texts(nodes) if nodes else {}
    ranks = ranks_of(lists.whole(), picked)
    signals = signals_of(lists.whole(), picked) if lists.sums or ask.request.breakdown else {}
    paths = await _paths(ask, [one for one in nodes if one in ask.reached]) if ask.reached else {}
    return tuple(
        Hit(
            id=shown_id(one, item),
            score=scores[one],
            text=text_of(item),
            item=item,
            passage=_passage(ask, item, records[one].content if one in records else ""),
            ranks=ranks.get(one, {}),
            names=(names.get(item.subject, ""), names.get(item.object, ""))
            if isinstance(item, Fact)
            else None,
            signals=signals.get(one, {}),
            path=paths.get(one, ()),
        )
        for one, item in picked.items()
    )


async def with_relationships(ask: Ask, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, each node with the newest 20 facts and relations that hold, among its newest 1,000."""
    nodes = [hit.id for hit in hits if isinstance(hit.item, Node)]
    joined = dict(
        zip(nodes, await asyncio.gather(*(_joining(ask, node) for node in nodes)), strict=True)
    )
    names = await names_of(
        ask,
        [end for facts in joined.values() for one in facts for end in (one.subject, one.object)],
    )

    def relationship(fact: Fact) -> Relationship:
        return Relationship(fact, (names.get(fact.subject, ""), names.get(fact.object, "")))

    return tuple(
        replace(hit, relationships=tuple(map(relationship, joined.get(hit.id, ())))) for hit in hits
    )


def _passage(ask: Ask, item: Item, record: str) -> str:
    """Return the part of a long text that the query is about; of a record, what it says beyond its summary."""
    if isinstance(item, Node) and record and record != item.summary:
        return passage_of(ask.text, record) or record
    return passage_of(ask.text, text_of(item))


async def _paths(ask: Ask, reached: Sequence[str]) -> dict[str, tuple[Step, ...]]:
    ways = {one: _way(ask, one) for one in reached}
    nodes = await fetch(ask, "nodes", [node for way in ways.values() for node in way])
    names = {one: node.name for one, node in nodes.items() if isinstance(node, Node)}
    return {
        one: tuple(
            Step(ask.reached[node].fact, ask.reached[node].relation, node, names.get(node, ""))
            for node in way
        )
        for one, way in ways.items()
    }


def _way(ask: Ask, node: str) -> list[str]:
    way: list[str] = []
    while node in ask.reached:
        way.append(node)
        node = ask.reached[node].before
    return way[::-1]


async def _joining(ask: Ask, node: str) -> list[Fact]:
    moment = ask.as_of or ask.moment
    held: list[Fact] = []
    for most in _READ_FACTS:
        facts = await ask.sources.client.facts_of_nodes([node], most)
        began = [
            fact for fact in facts if fact.valid_at is None or has_begun(fact.valid_at, moment)
        ]
        held = [fact for fact in began if holds(fact, moment)]
        if len(held) >= MOST_RELATIONSHIPS or len(facts) < most:
            break
    return held[:MOST_RELATIONSHIPS]


def ranks_of(
    lists: Mapping[str, Sequence[Scored]], ids: Container[str]
) -> dict[str, dict[str, int]]:
    """Return id → perspective → rank (1 is best) of some ids: why a result is where it is."""
    ranks: dict[str, dict[str, int]] = {}
    for name, entries in lists.items():
        for rank, one in enumerate(entries, start=1):
            if one.id in ids:
                ranks.setdefault(one.id, {})[name] = rank
    return ranks


def signals_of(
    lists: Mapping[str, Sequence[Scored]], ids: Container[str]
) -> dict[str, dict[str, float]]:
    signals: dict[str, dict[str, float]] = {}
    for name, entries in lists.items():
        for one in entries:
            if one.id in ids:
                signals.setdefault(one.id, {})[name] = one.signal
    return signals
