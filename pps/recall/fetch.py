"""From ids to values, in one read a store; what a recall has fetched once it does not fetch again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from pps.core.errors import NotFound
from pps.core.values import AnchorPassage, ChannelName, Fact, Node
from pps.journal.links import FactOutline, NodeOutline, Support
from pps.recall.passages import most_like
from pps.recall.query import Ask, Candidate, Item

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

    Facts and nodes come from the mirror, and from the graph those that it lacks. It is written beside the graph, so
    it may lag behind or be ahead by a moment: ``fetch`` has the last word on what is shown.
    """
    if channel not in OUTLINED:
        items = await fetch(ask, channel, ids)
        return {one: item for one, item in items.items() if not isinstance(item, (Fact, Node))}
    missing = [one for one in dict.fromkeys(ids) if one not in ask.outlines]
    if missing:
        await _mirrored(ask, channel, missing)
    if unknown := [one for one in missing if one not in ask.outlines]:
        for one, item in (await fetch(ask, channel, unknown)).items():
            if isinstance(item, Fact):
                ask.outlines[one] = FactOutline.of(item)
            elif isinstance(item, Node):
                ask.outlines[one] = NodeOutline.of(item)
    found = {one: ask.outlines[one] for one in dict.fromkeys(ids) if one in ask.outlines}
    return {one: item for one, item in found.items() if _current(ask, item)}


async def supported(ask: Ask, facts: Iterable[str]) -> dict[str, Support]:
    """Return what each of the facts stands on, in the order given; facts that ``outlined`` found.

    From the mirror, or in the graph's own words where the mirror lacks the fact.
    """
    wanted = list(dict.fromkeys(facts))
    missing = [one for one in wanted if one not in ask.supports]
    if missing:
        known = await ask.sources.journal.fact_supports(missing)
        ask.supports.update((one, known.get(one) or _of_graph(ask.items.get(one))) for one in missing)
    return {one: ask.supports[one] for one in wanted}


def _of_graph(item: Item | None) -> Support:
    return Support(item.episodes) if isinstance(item, Fact) else Support()


async def _mirrored(ask: Ask, channel: ChannelName, ids: Sequence[str]) -> None:
    """Note the outlines of those facts, or nodes, that the mirror knows."""
    journal = ask.sources.journal
    ask.outlines.update(await (journal.fact_outlines(ids) if channel == "facts" else journal.node_outlines(ids)))


async def _read(ask: Ask, channel: ChannelName, ids: Sequence[str]) -> dict[str, Item]:
    client = ask.sources.client
    if channel == "anchors":
        return await _anchors(ask, ids)
    if channel == "nodes":
        return {one.uuid: one for one in await client.nodes(ids)}
    if channel == "facts":
        return {one.uuid: one for one in await client.facts(ids)}
    found: dict[str, Item] = {one.uuid: one for one in await ask.sources.journal.turns(ids)}
    others = [one for one in ids if one not in found]
    if others:
        found.update((one.uuid, one) for one in await client.episodes(others))
    return found


async def _anchors(ask: Ask, slugs: Sequence[str]) -> dict[str, Item]:
    """Return the passage of each anchor that matched; an anchor whose file is gone is left out."""
    if ask.sources.anchors is None:
        return {}
    found = await asyncio.gather(*(_passages(ask, slug) for slug in slugs))
    items: dict[str, Item] = {}
    for slug, passages in zip(slugs, found, strict=True):
        if passages:
            part = ask.parts.get(("anchors", slug))
            by_part = {one.part: one for one in passages}
            items[slug] = by_part.get(part, passages[0]) if part is not None else most_like(ask.text, passages)
    return items


async def _passages(ask: Ask, slug: str) -> Sequence[AnchorPassage]:
    anchors = ask.sources.anchors
    try:
        return await anchors.passages(slug) if anchors else ()
    except NotFound:
        return ()


def _current(ask: Ask, item: Item | Candidate) -> bool:
    if not isinstance(item, (Fact, FactOutline)) or ask.request.as_of or ask.request.filters.as_of:
        return True
    return holds(item, ask.moment)


def holds(fact: Fact | FactOutline, at: datetime) -> bool:
    """Tell whether a fact has not ended at an instant of world time and is still believed."""
    if fact.invalid_at is None:
        return fact.expired_at is None
    return fact.invalid_at > at
