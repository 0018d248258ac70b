"""What nodes and facts are found by: the texts that they put into the collections of the indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core.time import micros, now
from pps.core.values import Fact, ItemKind, Node
from pps.index.entity import IndexDoc


@dataclass(frozen=True, slots=True)
class IndexText:
    """What one owner puts into one collection, before it is embedded; ``embed`` is what its vector is of."""

    kind: ItemKind
    owner: str
    collection: str
    text: str
    title: str = ""
    embed: str = ""
    at: datetime | None = None


def plain(text: IndexText) -> IndexDoc:
    """Return its entry without vectors."""
    return IndexDoc(
        kind=text.kind,
        owner=text.owner,
        collection=text.collection,
        text=text.text,
        title=text.title,
        at=micros(text.at) if text.at else None,
        passages=(),
        vectors=None,
    )


def node_texts(node: Node, record: str) -> list[IndexText]:
    """Return what a node is found by: names and, of a record, its text; else its summary, which has no vector."""
    title = " · ".join((node.name, *node.aliases))
    named = IndexText(
        "node", node.uuid, "nodes", record or node.summary, title=title, embed=node.name, at=node.created_at
    )
    told = record if record.startswith(node.name) else f"{node.name}\n{record}"
    return [named, IndexText("node", node.uuid, "records", "", embed=told, at=node.created_at)] if record else [named]


def fact_texts(facts: Sequence[Fact]) -> list[IndexText]:
    """Return what facts are found by, current and past ones apart; relations are not found by their words."""
    moment = now()
    return [
        IndexText(
            "fact",
            fact.uuid,
            "facts" if holds(fact, moment) else "past_facts",
            fact.text,
            embed=fact.text,
            at=fact.valid_at,
        )
        for fact in facts
        if fact.kind == "fact"
    ]


def holds(fact: Fact, at: datetime) -> bool:
    """Tell whether a fact has not ended at an instant of world time and is still believed."""
    if fact.invalid_at is None:
        return fact.expired_at is None
    return fact.invalid_at > at
