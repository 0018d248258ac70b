"""Attacks through the client: every verb with another entity's ids, and with invalid ids."""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pps.core.ids import EntityId
from pps.core.values import Episode, Fact, Node
from pps.graph.graph_store import GraphChange
from pps.proof.arena import NAMES, Being

_NOW = datetime(2026, 3, 1, tzinfo=UTC)
_DISTANCE = "NODE_HYBRID_SEARCH_NODE_DISTANCE"


@dataclass(frozen=True, slots=True)
class Ids:
    """One id of each kind: of another entity, or of nobody."""

    node: str
    fact: str
    episode: str
    community: str
    saga: str
    turn: str
    row: str

    @classmethod
    def of(cls, being: Being, chance: random.Random) -> Ids:
        return cls(
            chance.choice(list(being.nodes)),
            chance.choice(list(being.facts)),
            chance.choice(list(being.episodes)),
            being.community,
            being.saga,
            chance.choice(being.turns),
            chance.choice(being.rows),
        )

    def all(self) -> frozenset[str]:
        """Return all of them: what whoever passes them in knows."""
        return frozenset(
            (self.node, self.fact, self.episode, self.community, self.saga, self.turn, self.row)
        )

    @classmethod
    def of_nobody(cls, chance: random.Random) -> Ids:
        return cls(*(str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(7)))


@dataclass(frozen=True, slots=True)
class IdAttack:
    """One call. ``alike``: another entity's ids and nobody's must have the same outcome."""

    name: str
    call: Callable[[Being, Ids], Awaitable[object]]
    alike: bool = True


def _own(being: Being) -> str:
    return next(iter(being.nodes))


def _own_episode(being: Being) -> str:
    return next(iter(being.episodes))


def _fact(uuid: str, subject: str, target: str) -> Fact:
    return Fact(uuid, subject, target, "KNOWS", "planted by an attack", _NOW)


def _node(uuid: str) -> Node:
    return Node(uuid, "planted by an attack", _NOW)


READS: tuple[IdAttack, ...] = (
    IdAttack("nodes", lambda b, i: b.client.nodes([i.node])),
    IdAttack("nodes, strict", lambda b, i: b.client.nodes([_own(b), i.node], strict=True)),
    IdAttack("nodes beside own", lambda b, i: b.client.nodes([_own(b), i.node])),
    IdAttack(
        "nodes by another kind's id",
        lambda b, i: b.client.nodes([i.fact, i.episode, i.community, i.saga]),
    ),
    IdAttack("facts", lambda b, i: b.client.facts([i.fact])),
    IdAttack("facts, strict", lambda b, i: b.client.facts([i.fact], strict=True)),
    IdAttack("episodes", lambda b, i: b.client.episodes([i.episode])),
    IdAttack("episodes, strict", lambda b, i: b.client.episodes([i.episode], strict=True)),
    IdAttack("episodes by a turn's id", lambda b, i: b.client.episodes([i.turn])),
    IdAttack("facts_of_nodes", lambda b, i: b.client.facts_of_nodes([i.node], 50)),
    IdAttack(
        "facts_of_nodes beside own", lambda b, i: b.client.facts_of_nodes([_own(b), i.node], 50)
    ),
    IdAttack("facts_of_episodes", lambda b, i: b.client.facts_of_episodes([i.episode])),
    IdAttack(
        "facts_between", lambda b, i: b.client.facts_between([(_own(b), i.node), (i.node, _own(b))])
    ),
    IdAttack("mentioned_nodes", lambda b, i: b.client.mentioned_nodes([i.episode])),
    IdAttack("episodes_of_nodes", lambda b, i: b.client.episodes_of_nodes([i.node])),
    IdAttack("timeline", lambda b, i: b.client.timeline(node=i.node)),
    IdAttack(
        "timeline after a cursor", lambda b, i: b.client.timeline(cursor=f":{i.fact}"), alike=False
    ),
    IdAttack("scan_nodes", lambda b, i: b.client.scan_nodes(i.node, 20), alike=False),
    IdAttack("scan_facts", lambda b, i: b.client.scan_facts(i.fact, 20), alike=False),
    IdAttack("scan_episodes", lambda b, i: b.client.scan_episodes(i.episode, 20), alike=False),
    IdAttack("index vectors", lambda b, i: b.indexes.vectors("nodes", [i.node])),
    IdAttack("journal turn", lambda b, i: b.journal.turn(i.turn)),
    IdAttack("journal turns", lambda b, i: b.journal.turns([i.turn, i.episode])),
    IdAttack("journal around_many", lambda b, i: b.journal.around_many([i.turn], 3)),
    IdAttack("journal facts_supported_by", lambda b, i: b.journal.facts_supported_by([i.episode])),
)

SEARCHES: tuple[IdAttack, ...] = (
    IdAttack(
        "search from a centre",
        lambda b, i: b.client.search("Ana coffee", recipe=_DISTANCE, center=i.node),
    ),
    IdAttack(
        "search from an episode",
        lambda b, i: b.client.search("Ana", recipe=_DISTANCE, center=i.episode),
    ),
)

WRITES: tuple[IdAttack, ...] = (
    IdAttack("delete_nodes", lambda b, i: b.client.delete_nodes([i.node])),
    IdAttack(
        "delete_nodes by other ids",
        lambda b, i: b.client.delete_nodes([i.fact, i.episode, i.community, i.saga]),
    ),
    IdAttack("delete_facts", lambda b, i: b.client.delete_facts([i.fact, i.node])),
    IdAttack("delete_episodes", lambda b, i: b.client.delete_episodes([i.episode, i.turn])),
    IdAttack(
        "a fact to it", lambda b, i: b.client.save_facts([_fact(b.mint("x"), _own(b), i.node)], {})
    ),
    IdAttack(
        "a fact from it",
        lambda b, i: b.client.save_facts([_fact(b.mint("x"), i.node, _own(b))], {}),
    ),
    IdAttack("a mention of it", lambda b, i: b.client.save_mentions([(_own_episode(b), i.node)])),
    IdAttack("a mention by it", lambda b, i: b.client.save_mentions([(i.episode, _own(b))])),
    IdAttack(
        "no mention of it",
        lambda b, i: b.client.delete_mentions([(i.episode, i.node), (_own_episode(b), i.node)]),
    ),
    IdAttack(
        "apply a fact to it",
        lambda b, i: b.client.apply(GraphChange(facts=[_fact(b.mint("x"), _own(b), i.node)])),
    ),
    IdAttack(
        "apply a mention of it",
        lambda b, i: b.client.apply(GraphChange(mentions=[(_own_episode(b), i.node)])),
    ),
    IdAttack(
        "apply a deletion of it",
        lambda b, i: b.client.apply(
            GraphChange(
                parted=[(i.episode, i.node)],
                gone_facts=[i.fact],
                gone_episodes=[i.episode],
                gone_nodes=[i.node],
            )
        ),
    ),
    IdAttack("extract_episode", lambda b, i: b.client.extract_episode(i.episode)),
    IdAttack("journal forget_turns", lambda b, i: b.journal.forget_turns([i.turn])),
    IdAttack(
        "index delete", lambda b, i: b.indexes.apply([], [("nodes", i.node), ("facts", i.fact)])
    ),
)

CREATES: tuple[IdAttack, ...] = (
    IdAttack(
        "apply a node under it",
        lambda b, i: b.client.apply(GraphChange(nodes=[_node(i.node)])),
        alike=False,
    ),
    IdAttack(
        "save_nodes under it", lambda b, i: b.client.save_nodes([_node(i.node)], {}), alike=False
    ),
    IdAttack(
        "save_nodes under a fact's id",
        lambda b, i: b.client.save_nodes([_node(i.fact)], {}),
        alike=False,
    ),
    IdAttack(
        "save_facts under it",
        lambda b, i: b.client.save_facts([_fact(i.fact, _own(b), list(b.nodes)[1])], {}),
        alike=False,
    ),
    IdAttack(
        "save_episodes under it",
        lambda b, i: b.client.save_episodes(
            [Episode(i.episode, "x", "planted by an attack", _NOW, _NOW)]
        ),
        alike=False,
    ),
)
"""Creating under another's id.

On a shared database each must be refused; in a file of one's own the id is free.
"""

_BAD: tuple[object, ...] = (
    *(
        "",
        " ",
        "None",
        "null",
        "*",
        "%",
        "not-an-id",
        "../x",
        "\x00",
        "' OR 1=1 //",
        "ent_" + "a" * 26,
    ),
    *(
        "6F2A4F0E-6D0F-5C57-9A4E-0A5B1D6F3C11",
        "6f2a4f0e-6d0f-5c57-9a4e-0a5b1d6f3c11\n",
        "{6f2a}",
        "урн",
    ),
    *("6f2a4f0e6d0f5c579a4e0a5b1d6f3c11", "urn:uuid:6f2a4f0e-6d0f-5c57-9a4e-0a5b1d6f3c11"),
    *(None, 0, 1.5, True, b"x", [], [""], {}, {"uuid": "x"}, object()),
)
_BAD_GROUPS: tuple[object, ...] = (
    *(
        "",
        " ",
        "ent_",
        "ent_" + "A" * 26,
        "ent_" + "a" * 25,
        "ent_" + "a" * 26 + "\n",
        "*",
        None,
        [],
        [""],
        0,
    ),
)


def malformed(
    being: Being, chance: random.Random
) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
    """Return calls with something that is no id, or no group: each must raise InvalidRequest."""
    bad = cast(Any, chance.choice(_BAD))
    group = cast(Any, chance.choice(_BAD_GROUPS))
    client = being.client

    async def blank_group() -> object:
        return EntityId("ana", group)

    return [
        ("nodes", lambda: client.nodes([bad])),
        ("facts", lambda: client.facts([bad])),
        ("episodes", lambda: client.episodes([bad])),
        ("delete_nodes", lambda: client.delete_nodes([bad])),
        ("delete_episodes", lambda: client.delete_episodes([bad])),
        ("save_nodes", lambda: client.save_nodes([_node(bad)], {})),
        ("save_mentions", lambda: client.save_mentions([(bad, bad)])),
        ("delete_mentions", lambda: client.delete_mentions([(bad, bad)])),
        ("extract_episode", lambda: client.extract_episode(bad)),
        ("timeline", lambda: client.timeline(node=bad or "")),
        ("search", lambda: client.search("Ana", recipe=_DISTANCE, center=bad or "")),
        ("a blank group", blank_group),
    ]


def queries(being: Being, other: Being, chance: random.Random) -> str:
    """Return a query that would find the other entity's items if they could be found."""
    group = other.entity.group
    return chance.choice(
        (
            other.mark,
            f"The word is {other.mark}.",
            " ".join(NAMES),
            f'group_id:"{group}"',
            f'Ana" OR group_id:"{group}" AND (',
            "Ana) OR (group_id:*",
            f"{other.name} {being.name}",
            "ent_*",
            f"MATCH (n {{group_id: '{group}'}}) RETURN n",
            "Ana " * 150,
            "' }) RETURN n //",
            next(iter(other.nodes)),
        )
    )
