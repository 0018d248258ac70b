"""The work of an entity under attack: writes, reads, and a check of its content."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

from graphiti_core.nodes import CommunityNode, SagaNode

from pps.core.values import Fact, Node
from pps.isolation.recipes import RECIPES
from pps.journal.entries import JobPayload, TurnDraft
from pps.proof.arena import Arena, Being

Operation: TypeAlias = Callable[[Being, random.Random], Awaitable[object]]
_MOST = 120
_WORDS = ("coffee", "tea", "kitchen", "Lisbon", "Ana", "evening", "the", "Secret")


class Honest:
    """The honest operations of one arena. Each updates what the entity should hold."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    def operations(self) -> tuple[Operation, ...]:
        return (
            *(
                self.add_node,
                self.change_node,
                self.add_fact,
                self.end_fact,
                self.add_episode,
                self.delete_fact,
            ),
            *(self.delete_node, self.append_turn, self.read_back, self.walk, self.search),
        )

    async def add_node(self, being: Being, chance: random.Random) -> object:
        if len(being.nodes) >= _MOST:
            return await self.delete_node(being, chance)
        planted = next(iter(being.nodes.values()))
        name = chance.choice(_WORDS).title()
        node = replace(
            planted, uuid=being.mint("node"), name=name, summary=f"{being.mark} {chance.random()}"
        )
        return await self._arena.save(being, [node], [], [])

    async def change_node(self, being: Being, chance: random.Random) -> object:
        node = replace(
            chance.choice(list(being.nodes.values())), summary=f"{being.mark} {chance.random()}"
        )
        return await self._arena.save(being, [node], [], [])

    async def add_fact(self, being: Being, chance: random.Random) -> object:
        if len(being.facts) >= _MOST:
            return await self.delete_fact(being, chance)
        subject, target = chance.sample(list(being.nodes.values()), 2)
        text = chance.choice(
            ("Ana drinks coffee in the kitchen.", f"{being.mark} {chance.random()}")
        )
        fact = _fact(being, subject, target, text)
        return await self._arena.save(being, [], [fact], [])

    async def end_fact(self, being: Being, chance: random.Random) -> object:
        fact = chance.choice(list(being.facts.values()))
        ended = replace(fact, invalid_at=(fact.valid_at or fact.created_at) + timedelta(days=30))
        return await self._arena.save(being, [], [ended], [])

    async def add_episode(self, being: Being, chance: random.Random) -> object:
        if len(being.episodes) >= _MOST:
            return None
        episode = self._arena.episode(
            being, f"Ana came into the kitchen. {being.mark} {chance.random()}"
        )
        await self._arena.save(being, [], [], [episode])
        return await being.client.save_mentions([(episode.uuid, chance.choice(list(being.nodes)))])

    async def delete_fact(self, being: Being, chance: random.Random) -> object:
        if len(being.facts) <= 4:
            return None
        uuid = chance.choice(list(being.facts))
        del being.facts[uuid]
        return await being.client.delete_facts([uuid])

    async def delete_node(self, being: Being, chance: random.Random) -> object:
        """Delete a node with its facts, of more than those that were planted."""
        fresh = list(being.nodes)[6:]
        if not fresh:
            return None
        uuid = chance.choice(fresh)
        touching = [
            fact.uuid for fact in being.facts.values() if uuid in (fact.subject, fact.object)
        ]
        if len(being.facts) - len(touching) < 4:
            return None
        for fact in touching:
            del being.facts[fact]
        del being.nodes[uuid]
        return await being.client.delete_nodes([uuid])

    async def append_turn(self, being: Being, chance: random.Random) -> object:
        draft = TurnDraft(f"{being.mark} {chance.random()}", source_ref=being.mint("ref"))
        appended = await being.journal.append(draft, JobPayload())
        being.turns.append(appended.turn.uuid)
        self._arena.watch.own(being.name, appended.turn.uuid)
        return appended

    async def read_back(self, being: Being, chance: random.Random) -> object:
        return [
            await being.client.nodes([chance.choice(list(being.nodes))], strict=True),
            await being.client.facts([chance.choice(list(being.facts))], strict=True),
            await being.client.episodes([chance.choice(list(being.episodes))], strict=True),
            await being.client.timeline(limit=20),
        ]

    async def walk(self, being: Being, chance: random.Random) -> object:
        node = chance.choice(list(being.nodes))
        facts = await being.client.facts_of_nodes([node], 20)
        return [
            facts,
            await being.client.nodes(
                [end for fact in facts for end in (fact.subject, fact.object)]
            ),
        ]

    async def search(self, being: Being, chance: random.Random) -> object:
        recipe = chance.choice(RECIPES)
        center = chance.choice(list(being.nodes))
        return await being.client.search(
            " ".join(chance.sample(_WORDS, 3)), recipe=recipe, limit=5, center=center
        )

    async def differences(self, being: Being) -> list[str]:
        """Return how the store differs from what the entity should hold."""
        held = {
            "nodes": await being.client.scan_nodes("", 10_000),
            "facts": await being.client.scan_facts("", 10_000),
            "episodes": await being.client.scan_episodes("", 10_000),
        }
        expected: Mapping[str, Mapping[str, object]] = {
            "nodes": being.nodes,
            "facts": being.facts,
            "episodes": being.episodes,
        }
        differences: list[str] = []
        for kind, items in held.items():
            if {item.uuid: item for item in items} != expected[kind]:
                differences.append(
                    f"{kind}: holds {len(items)}, should hold {len(expected[kind])}, "
                    "and they are not the same"
                )
        turns = {turn.uuid for turn in await being.journal.scan(0, 10_000)}
        if not turns.issuperset(being.turns[-5_000:]):
            differences.append("journal: a turn is missing")
        if await _of_graphiti(being) != {being.community, being.saga}:
            differences.append(
                "what Graphiti made: not the community and the saga that were planted"
            )
        await asyncio.sleep(0)
        return differences


async def _of_graphiti(being: Being) -> set[str]:
    groups = [being.entity.group]
    communities = await CommunityNode.get_by_group_ids(being.bare, groups)
    sagas = await SagaNode.get_by_group_ids(being.bare, groups)
    return {node.uuid for node in (*communities, *sagas)}


def _fact(being: Being, subject: Node, target: Node, text: str) -> Fact:
    planted = next(iter(being.facts.values()))
    return replace(
        planted,
        uuid=being.mint("fact"),
        subject=subject.uuid,
        object=target.uuid,
        text=text,
        invalid_at=None,
    )
