"""From ids to items, in one read of a store for all, and from ranked items to hits."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.errors import NotFound
from pps.core.recalled import Hit, Relationship, Step
from pps.core.time import has_begun
from pps.core.values import AnchorPassage, ChannelName, Episode, Fact, Node, Turn, spoken
from pps.journal.links import FactOutline, NodeOutline, Support, holds
from pps.recall.question import most_like, passage_of
from pps.recall.search import Candidate, Item, Scored, Search

MAX_RELATIONSHIPS = 20
"""Most relationships of one node."""
_FACTS_READ = (2 * MAX_RELATIONSHIPS, 1_000)
"""Facts read of each node, newest first; the second number where most of the first have ended."""
OUTLINED: tuple[ChannelName, ...] = ("facts", "nodes")
"""Channels that are ranked without reading the graph."""
_SECONDS_A_DAY = 86_400


# ---- Reading items ----


async def fetch(search: Search, channel: ChannelName, ids: Sequence[str]) -> dict[str, Item]:
    """Return the items of a channel's ids in the order given; each is read once a search.

    Left out: items that are gone (an index may lag behind the truth), and facts that have ended by
    now when no other time was asked for.
    """
    wanted = list(dict.fromkeys(ids))
    missing = [id_ for id_ in wanted if id_ not in search.items]
    if missing:
        search.items.update(await _read(search, channel, missing))
    items = {id_: search.items[id_] for id_ in wanted if id_ in search.items}
    return {id_: item for id_, item in items.items() if _is_current(search, item)}


async def outlined(
    search: Search, channel: ChannelName, ids: Sequence[str]
) -> dict[str, Candidate]:
    """Return what ranking needs of a channel's ids, in the order given; left out as by ``fetch``.

    Outlines of facts and nodes come from the graph's tables, without their words. If the graph is
    on a server, the tables are a copy that may lag behind for a moment. ``fetch`` therefore decides
    what is shown.
    """
    if channel not in OUTLINED:
        items = await fetch(search, channel, ids)
        return {id_: item for id_, item in items.items() if not isinstance(item, (Fact, Node))}
    wanted = list(dict.fromkeys(ids))
    missing = [id_ for id_ in wanted if id_ not in search.outlines]
    if missing:
        await _read_outlines(search, channel, missing)
    outlines = {id_: search.outlines[id_] for id_ in wanted if id_ in search.outlines}
    return {id_: outline for id_, outline in outlines.items() if _is_current(search, outline)}


async def _read_outlines(search: Search, channel: ChannelName, ids: Sequence[str]) -> None:
    journal = search.sources.journal
    if channel == "facts":
        search.outlines.update(await journal.fact_outlines(ids))
    else:
        search.outlines.update(await journal.node_outlines(ids))
    unknown = [id_ for id_ in ids if id_ not in search.outlines]
    if not unknown:
        return
    for id_, item in (await fetch(search, channel, unknown)).items():
        if isinstance(item, Fact):
            search.outlines[id_] = FactOutline.of(item)
        elif isinstance(item, Node):
            search.outlines[id_] = NodeOutline.of(item)


async def supported(search: Search, facts: Iterable[str]) -> dict[str, Support]:
    """Return the turns that state each of the facts, in the order given.

    The facts must be among those that ``outlined`` read.

    They come from the tables, or from the graph's fact where a copy lacks it.
    """
    wanted = list(dict.fromkeys(facts))
    missing = [id_ for id_ in wanted if id_ not in search.supports]
    if missing:
        known = await search.sources.journal.fact_supports(missing)
        for id_ in missing:
            support = known.get(id_)
            if support is None:
                item = search.items.get(id_)
                support = Support(item.episodes if isinstance(item, Fact) else ())
            search.supports[id_] = support
    return {id_: search.supports[id_] for id_ in wanted}


async def names_of(search: Search, nodes: Sequence[str]) -> Mapping[str, str]:
    """Return node → name; of at least the given nodes, empty for one that is gone."""
    missing = [id_ for id_ in dict.fromkeys(nodes) if id_ not in search.names]
    if missing:
        known = await search.sources.journal.names_of(missing)
        search.names.update((id_, names[0]) for id_, names in known.items())
    unknown = [id_ for id_ in missing if id_ not in search.names]
    if unknown:  # a copy of a server's graph may lag behind
        items = await fetch(search, "nodes", unknown)
        for id_ in unknown:
            node = items.get(id_)
            search.names[id_] = node.name if isinstance(node, Node) else ""
    return search.names


async def times_of(search: Search, candidates: Mapping[str, Candidate]) -> dict[str, datetime]:
    """Return id → event time (of the world, never when PPS learned of it) of those that have one.

    A fact is as old as its latest supporting episode, else as its ``valid_at``; a record as its
    text, another node as the latest turn that mentions it.
    """
    facts = {id_: item for id_, item in candidates.items() if isinstance(item, FactOutline)}
    supports = await supported(search, facts) if facts else {}
    times: dict[str, datetime | None] = {}
    for id_, item in candidates.items():
        times[id_] = supports[id_].said_at if id_ in supports else _own_time(item)
    nodes = [id_ for id_, item in candidates.items() if isinstance(item, NodeOutline)]
    if nodes:
        times.update(await search.sources.journal.records.times(nodes))
    # Some are supported by what only the graph knows, such as an episode that was added through
    # Graphiti itself.
    undated = [id_ for id_ in facts if times[id_] is None]
    if undated:
        stating = [episode for id_ in undated for episode in supports[id_].episodes]
        episodes = await fetch(search, "episodes", stating)
        for id_ in undated:
            said_at = [_own_time(episodes.get(episode)) for episode in supports[id_].episodes]
            times[id_] = max((at for at in said_at if at), default=facts[id_].valid_at)
    return {id_: at for id_, at in times.items() if at is not None}


def age_d(search: Search, at: datetime) -> float:
    """Return how many days before the moment of the query something happened; 0 for the future."""
    return max(0.0, (search.moment - at).total_seconds() / _SECONDS_A_DAY)


def text_of(item: Item) -> str:
    """Return an item's text for a reader.

    It is a fact's sentence, a node's name and summary, or a turn with its speaker.
    """
    if isinstance(item, (Fact, AnchorPassage)):
        return item.text
    if isinstance(item, Node):
        return f"{item.name}: {item.summary}" if item.summary else item.name
    return item.content if isinstance(item, Episode) else spoken(item)


def shown_id(id_: str, item: Item | Candidate) -> str:
    """Return the id under which a hit is shown: an anchor's passage has one of its own."""
    return f"{item.slug}#{item.part}" if isinstance(item, AnchorPassage) else id_


def _is_current(search: Search, item: Item | Candidate) -> bool:
    if search.as_of is not None or not isinstance(item, (Fact, FactOutline)):
        return True
    return holds(item, search.moment)


def _own_time(item: Item | Candidate | None) -> datetime | None:
    if isinstance(item, Turn):
        return item.occurred_at
    if isinstance(item, Episode):
        return item.valid_at
    return item.modified_at if isinstance(item, AnchorPassage) else None


async def _read(search: Search, channel: ChannelName, ids: Sequence[str]) -> dict[str, Item]:
    client = search.sources.client
    if channel == "anchors":
        return await _read_anchors(search, ids)
    if channel == "nodes":
        return {node.uuid: node for node in await client.nodes(ids)}
    if channel == "facts":
        return {fact.uuid: fact for fact in await client.facts(ids)}
    turns = await search.sources.journal.turns(ids)
    items: dict[str, Item] = {turn.uuid: turn for turn in turns}
    others = [id_ for id_ in ids if id_ not in items]
    if others:
        items.update((episode.uuid, episode) for episode in await client.episodes(others))
    return items


async def _read_anchors(search: Search, slugs: Sequence[str]) -> dict[str, Item]:
    """Return each anchor's passage nearest in meaning, else the one with most shared words."""
    passages_of = await asyncio.gather(*(_passages(search, slug) for slug in slugs))
    items: dict[str, Item] = {}
    for slug, passages in zip(slugs, passages_of, strict=True):
        if not passages:
            continue
        part = search.best_parts.get(("anchors", slug))
        if part is None:
            items[slug] = most_like(search.text, passages)
        else:
            by_part = {passage.part: passage for passage in passages}
            items[slug] = by_part.get(part, passages[0])
    return items


async def _passages(search: Search, slug: str) -> Sequence[AnchorPassage]:
    if search.sources.anchors is None:
        return ()
    try:
        return await search.sources.anchors.passages(slug)
    except NotFound:
        return ()


# ---- Hits ----


async def make_hits(
    search: Search,
    items: Mapping[str, Item],
    scores: Mapping[str, float],
    lists: Mapping[str, Sequence[Scored]],
    *,
    with_signals: bool = False,
) -> tuple[Hit, ...]:
    """Return items as hits, in order, with the names of facts' ends and the reasons for each.

    Args:
        search: The recall in progress.
        items: Id → item, best first.
        scores: Id → score.
        lists: Perspective → its list, for the ranks.
        with_signals: Add each perspective's signal, as the request's ``breakdown`` does.
    """
    facts = [item for item in items.values() if isinstance(item, Fact)]
    names = await names_of(search, [end for fact in facts for end in (fact.subject, fact.object)])
    nodes = [id_ for id_, item in items.items() if isinstance(item, Node)]
    records = await search.sources.journal.records.texts(nodes) if nodes else {}
    ranks = ranks_of(lists, items)
    signals: Mapping[str, dict[str, float]] = {}
    if with_signals or search.request.breakdown:
        signals = signals_of(lists, items)
    paths = await _paths(search, [id_ for id_ in nodes if id_ in search.reached])
    hits: list[Hit] = []
    for id_, item in items.items():
        record_text = records[id_].content if id_ in records else ""
        ends = None
        if isinstance(item, Fact):
            ends = (names.get(item.subject, ""), names.get(item.object, ""))
        hits.append(
            Hit(
                id=shown_id(id_, item),
                score=scores[id_],
                text=text_of(item),
                item=item,
                passage=_passage(search, item, record_text),
                ranks=ranks.get(id_, {}),
                names=ends,
                signals=signals.get(id_, {}),
                path=paths.get(id_, ()),
            )
        )
    return tuple(hits)


async def with_relationships(search: Search, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, each node with its newest 20 facts and relations that hold."""
    nodes = [hit.id for hit in hits if isinstance(hit.item, Node)]
    facts_of = await asyncio.gather(*(_joining_facts(search, node) for node in nodes))
    joining = dict(zip(nodes, facts_of, strict=True))
    ends = [end for facts in facts_of for fact in facts for end in (fact.subject, fact.object)]
    names = await names_of(search, ends)

    def relationship(fact: Fact) -> Relationship:
        return Relationship(fact, (names.get(fact.subject, ""), names.get(fact.object, "")))

    return tuple(
        replace(hit, relationships=tuple(map(relationship, joining.get(hit.id, ()))))
        for hit in hits
    )


def ranks_of(
    lists: Mapping[str, Sequence[Scored]], ids: Container[str]
) -> dict[str, dict[str, int]]:
    """Return id → perspective → rank (1 is best) of some ids: why a result is where it is."""
    ranks: dict[str, dict[str, int]] = {}
    for name, entries in lists.items():
        for rank, entry in enumerate(entries, start=1):
            if entry.id in ids:
                ranks.setdefault(entry.id, {})[name] = rank
    return ranks


def signals_of(
    lists: Mapping[str, Sequence[Scored]], ids: Container[str]
) -> dict[str, dict[str, float]]:
    """Return id → perspective → signal in [0, 1] of some ids."""
    signals: dict[str, dict[str, float]] = {}
    for name, entries in lists.items():
        for entry in entries:
            if entry.id in ids:
                signals.setdefault(entry.id, {})[name] = entry.signal
    return signals


def _passage(search: Search, item: Item, record_text: str) -> str:
    """Return the part of a long text that the query is about.

    For a record it is taken from the text beyond the summary.
    """
    if isinstance(item, Node) and record_text and record_text != item.summary:
        return passage_of(search.text, record_text) or record_text
    return passage_of(search.text, text_of(item))


async def _paths(search: Search, nodes: Sequence[str]) -> dict[str, tuple[Step, ...]]:
    """Return node → the steps from the centre to it."""
    if not nodes:
        return {}
    ways = {node: _way_to(search, node) for node in nodes}
    items = await fetch(search, "nodes", [node for way in ways.values() for node in way])
    names = {id_: item.name for id_, item in items.items() if isinstance(item, Node)}
    paths: dict[str, tuple[Step, ...]] = {}
    for node, way in ways.items():
        reached = [(passed, search.reached[passed]) for passed in way]
        paths[node] = tuple(
            Step(step.fact, step.relation, passed, names.get(passed, ""))
            for passed, step in reached
        )
    return paths


def _way_to(search: Search, node: str) -> list[str]:
    """Return the nodes from the centre, without it, to a node."""
    way: list[str] = []
    while node in search.reached:
        way.append(node)
        node = search.reached[node].before
    return way[::-1]


async def _joining_facts(search: Search, node: str) -> list[Fact]:
    moment = search.as_of or search.moment
    held: list[Fact] = []
    for count in _FACTS_READ:
        facts = await search.sources.client.facts_of_nodes([node], count)
        held = [
            fact
            for fact in facts
            if holds(fact, moment) and (fact.valid_at is None or has_begun(fact.valid_at, moment))
        ]
        if len(held) >= MAX_RELATIONSHIPS or len(facts) < count:
            break
    return held[:MAX_RELATIONSHIPS]
