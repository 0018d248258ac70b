"""From ranked values to what a caller sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pps.core.recalled import Hit, Step
from pps.core.spoken import spoken
from pps.core.values import AnchorPassage, Episode, Fact, Node
from pps.recall.boosts import shown_id
from pps.recall.fetch import fetch
from pps.recall.fusion import ranks_of, signals_of
from pps.recall.passages import passage_of
from pps.recall.query import Ask, Item

if TYPE_CHECKING:
    from pps.recall.candidates import Lists


def text_of(item: Item) -> str:
    """Return what a reader is shown: a fact's sentence, a node's name and summary, a turn with its speaker."""
    if isinstance(item, Fact):
        return item.text
    if isinstance(item, Node):
        return f"{item.name}: {item.summary}" if item.summary else item.name
    if isinstance(item, AnchorPassage):
        return item.text
    return item.content if isinstance(item, Episode) else spoken(item)


async def make_hits(ask: Ask, picked: Mapping[str, Item], scores: Mapping[str, float], lists: Lists) -> tuple[Hit, ...]:
    """Return the picked values as hits, in order, with the names of facts' ends and the reasons for each."""
    ends = [end for item in picked.values() if isinstance(item, Fact) for end in (item.subject, item.object)]
    names = await names_of(ask, ends)
    records = await records_of(ask, picked)
    ranks = ranks_of(lists.said, picked)
    signals = signals_of(lists.said, picked) if lists.sums else {}
    paths = await _paths(ask, picked) if ask.reached else {}
    return tuple(
        Hit(
            id=shown_id(one, item),
            score=scores[one],
            text=text_of(item),
            item=item,
            passage=_passage(ask, item, records.get(one, "")),
            ranks=ranks.get(one, {}),
            names=(names.get(item.subject, ""), names.get(item.object, "")) if isinstance(item, Fact) else None,
            signals=signals.get(one, {}),
            path=paths.get(one, ()),
        )
        for one, item in picked.items()
    )


async def records_of(ask: Ask, items: Mapping[str, Item]) -> dict[str, str]:
    """Return node → its text, of those that are records."""
    nodes = [one for one, item in items.items() if isinstance(item, Node)]
    turns = await ask.sources.journal.records.texts(nodes) if nodes else {}
    return {one: turn.content for one, turn in turns.items()}


def _passage(ask: Ask, item: Item, record: str) -> str:
    """Return the part of a long text that the query is about; of a record, what it says beyond its summary."""
    if isinstance(item, Node) and record and record != item.summary:
        return passage_of(ask.text, record) or record
    return passage_of(ask.text, text_of(item))


async def names_of(ask: Ask, nodes: Sequence[str]) -> Mapping[str, str]:
    """Return node → its name; what a recall has looked up once it does not look up again."""
    if missing := [one for one in dict.fromkeys(nodes) if one not in ask.names]:
        mirrored = await ask.sources.journal.names_of(missing)
        ask.names.update((one, name) for one, (name, *_) in mirrored.items())
    if missing := [one for one in missing if one not in ask.names]:  # the mirror may lag behind the graph
        found = await fetch(ask, "nodes", missing)
        known = {one: node.name for one, node in found.items() if isinstance(node, Node)}
        ask.names.update((one, known.get(one, "")) for one in missing)
    return ask.names


async def _paths(ask: Ask, picked: Mapping[str, Item]) -> dict[str, tuple[Step, ...]]:
    """Return node → the steps of a shortest way to it from the centre, for those within reach."""
    ways = {one: _way(ask, one) for one, item in picked.items() if isinstance(item, Node) and one in ask.reached}
    nodes = await fetch(ask, "nodes", [node for way in ways.values() for node in way])
    names = {one: node.name for one, node in nodes.items() if isinstance(node, Node)}
    return {
        one: tuple(Step(ask.reached[node].fact, ask.reached[node].relation, node, names.get(node, "")) for node in way)
        for one, way in ways.items()
    }


def _way(ask: Ask, node: str) -> list[str]:
    """Return the nodes of the way to a node, the centre left out."""
    way: list[str] = []
    while node in ask.reached:
        way.append(node)
        node = ask.reached[node].before
    return way[::-1]
