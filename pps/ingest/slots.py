"""Close and open the facts of the slots that a batch touches.

``supersession`` decides; this module loads its input (facts of the graph and of the batch, the
times of their turns, endings and closings of the journal) and puts the result into the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pps.core.relation_table import RelationRule, relation_key
from pps.core.values import Closing, Fact
from pps.ingest.batch import Batch
from pps.ingest.statements import fact_id
from pps.ingest.supersession import (
    FactStatement,
    Order,
    OrderedEnding,
    Stated,
    closed,
    closing_of_other,
    closings_of_slot,
    runs_of_slot,
)
from pps.ingest.support import taken_back
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal

_ASSERTED = ("explicit", "corrected")
"""Causes that a turn states itself; the others follow from all statements of a slot."""


@dataclass(slots=True)
class Settled:
    """The result of settling the slots of a batch.

    Attributes:
        facts: The ids of all facts of these slots.
        closings: Their closings, also those whose closing fact is in the recycle bin.
        stale: Whether the journal holds other closings of these facts.
    """

    facts: list[str] = field(default_factory=list[str])
    closings: list[Closing] = field(default_factory=list[Closing])
    stale: bool = False


class Slots:
    """The slots of one entity."""

    def __init__(self, client: IsolatedGraphitiClient, journal: Journal) -> None:
        self._client = client
        self._journal = journal

    async def settle(
        self, batch: Batch, turns: Sequence[str] = (), facts: Iterable[str] = ()
    ) -> Settled:
        """Close and open the facts of every slot that a batch touches; add changes to the batch.

        Args:
            batch: Planned; its facts, closings and endings replace the stored ones.
            turns: Turns whose statements were changed, forgotten or restored.
            facts: Ids of facts that were changed otherwise.
        """
        touched = await self._touched(batch, turns, facts)
        if not touched:
            return Settled()
        slots, relations, others = await self._slots(batch, touched)
        everything = [*others, *(fact for slot_facts in slots.values() for fact in slot_facts)]
        context = await self._context(batch, everything)
        settled = Settled([fact.uuid for fact in everything])
        decided: dict[str, Closing | None] = {}
        for slot, slot_facts in slots.items():
            relation = relations[slot]
            slot_stated = context.all_stated(slot_facts)
            runs = runs_of_slot(slot_stated, relation)
            if runs:
                added = await self._split(batch, runs, context)
                settled.facts += [fact.uuid for fact in added]
                everything += added
                facts_now = [batch.fact(fact.uuid) or fact for fact in (*slot_facts, *added)]
                slot_stated = context.all_stated({fact.uuid: fact for fact in facts_now}.values())
            decided |= closings_of_slot(slot_stated, context.endings, relation, batch.at)
        for fact in others:
            stated = context.stated(fact)
            if stated is not None and not taken_back(fact):
                relation = batch.relation_of(fact)
                decided[fact.uuid] = closing_of_other(stated, context.endings, relation, batch.at)
        for uuid in dict.fromkeys(fact.uuid for fact in everything):
            fact = batch.fact(uuid)
            if fact is not None and uuid in decided:
                self._apply(batch, fact, decided[uuid], context, settled)
        return settled

    async def _split(
        self, batch: Batch, runs: Mapping[str, Sequence[Sequence[FactStatement]]], context: _Context
    ) -> list[Fact]:
        """Give each run of statements after the first a fact of its own; return the new facts."""
        added: list[Fact] = []
        for uuid, parts in runs.items():
            fact = batch.fact(uuid)
            if fact is None:
                continue
            for run in parts[1:]:
                turns = tuple(statement.turn for statement in run)
                since = run[0].order.at
                joins = fact.subject, fact.relation, fact.object
                new_id = fact_id(batch.entity.group, joins, fact.text, since)
                await self._load(batch, [new_id])
                known = batch.fact(new_id)
                new = replace(
                    known or fact,
                    uuid=new_id,
                    episodes=tuple(dict.fromkeys((*(known.episodes if known else ()), *turns))),
                    valid_at=since,
                    invalid_at=None,
                    expired_at=None,
                )
                batch.put_fact(new)
                added.append(new)
                for turn in turns:
                    context.places[turn, new_id] = context.places.get((turn, uuid), 0)
                await self._restate(batch, turns, uuid, new_id)
            moved = {statement.turn for run in parts[1:] for statement in run}
            remaining = tuple(turn for turn in fact.episodes if turn not in moved)
            batch.put_fact(replace(fact, episodes=remaining))
        return added

    async def _restate(self, batch: Batch, turns: Sequence[str], old: str, new: str) -> None:
        """Replace a fact by another in the episodes of turns."""
        missing = [turn for turn in turns if turn not in batch.episodes]
        stored = await self._client.episodes(missing) if missing else []
        batch.restated.update((episode.uuid, episode) for episode in stored)
        for turn in turns:
            episodes = batch.episodes if turn in batch.episodes else batch.restated
            if turn in episodes:
                facts = tuple(new if fact == old else fact for fact in episodes[turn].facts)
                episodes[turn] = replace(episodes[turn], facts=tuple(dict.fromkeys(facts)))

    def _apply(
        self,
        batch: Batch,
        fact: Fact,
        closing: Closing | None,
        context: _Context,
        settled: Settled,
    ) -> None:
        """Put the closed or opened fact into the batch, and its valid closings into the result."""
        known = context.closings.get(fact.uuid, ())
        if closing is not None:
            stored = next((other for other in known if _key(other) == _key(closing)), None)
            closing = replace(
                closing,
                closed_at=stored.closed_at if stored else closing.closed_at,
                own_end=context.own_end(fact),
            )
        after = closed(fact, closing, context.own_end(fact))
        if after != fact:
            batch.put_fact(after)
        closings = context.asserted(fact, dormant=True)
        if closing is not None:
            closings = [other for other in closings if _key(other) != _key(closing)]
            closings.append(closing)
        settled.closings += closings
        settled.stale |= not {_key(other) for other in known} <= {_key(other) for other in closings}

    async def _touched(
        self, batch: Batch, turns: Sequence[str], facts: Iterable[str]
    ) -> dict[str, Fact]:
        """Return the facts whose slots may change."""
        closings = self._journal.closings
        ids = {*batch.facts, *batch.closings, *facts}
        endings = [ending for of_turn in batch.endings.values() for ending in of_turn]
        if turns:
            ids.update(closing.fact for closing in await closings.by_turns(turns))
            stored = await closings.endings_of(turns)
            endings += [ending for ending in stored if ending.turn not in batch.endings]
        if ids:
            ids.update(closing.fact for closing in await closings.by_facts(sorted(ids)))
        if endings:
            wanted = [(ending.subject, ending.object, ending.relations) for ending in endings]
            ids.update(await self._journal.facts_ended(wanted))
        await self._load(batch, ids)
        touched = [batch.fact(uuid) for uuid in sorted(ids)]
        return {fact.uuid: fact for fact in touched if fact and fact.kind == "fact"}

    async def _slots(
        self, batch: Batch, touched: Mapping[str, Fact]
    ) -> tuple[dict[tuple[str, str], list[Fact]], dict[tuple[str, str], RelationRule], list[Fact]]:
        """Return the slots of some facts, their relations, and the facts that belong to no slot.

        Returns:
            (subject, name of the relation) → all facts of the slot; the same key → its relation;
            the facts of no slot.
        """
        await self._load_ends(batch, touched.values())
        wanted: dict[tuple[str, str], RelationRule] = {}
        for fact in touched.values():
            relation = batch.relation_of(fact)
            if relation is not None and relation.single:
                wanted[fact.subject, relation.name] = relation
        keys: dict[str, set[str]] = {}
        for (subject, _), relation in wanted.items():
            keys.setdefault(subject, set()).update(batch.relations.keys(relation))
        slots_keys = [(subject, sorted(relation_keys)) for subject, relation_keys in keys.items()]
        await self._load(batch, await self._journal.facts_in_slots(slots_keys) if keys else [])
        candidates = {
            uuid: fact
            for uuid, fact in {**batch.stored, **batch.facts}.items()
            if fact.kind == "fact" and relation_key(fact.relation) in keys.get(fact.subject, ())
        }
        await self._load_ends(batch, candidates.values())
        slots: dict[tuple[str, str], list[Fact]] = {slot: [] for slot in wanted}
        for fact in candidates.values():
            relation = batch.relation_of(fact)
            slot = None if relation is None else (fact.subject, relation.name)
            if slot in slots:
                slots[slot].append(fact)
        within = {fact.uuid for slot_facts in slots.values() for fact in slot_facts}
        return slots, wanted, [fact for uuid, fact in touched.items() if uuid not in within]

    async def _load(self, batch: Batch, ids: Collection[str]) -> None:
        missing = sorted(uuid for uuid in ids if batch.fact(uuid) is None)
        if missing:
            facts = await self._client.facts(missing)
            batch.stored.update((fact.uuid, fact) for fact in facts)

    async def _load_ends(self, batch: Batch, facts: Iterable[Fact]) -> None:
        """Load the ends of facts whose relation depends on their kinds."""
        ends = {
            end
            for fact in facts
            if batch.relations.depends_on_kinds(fact.relation)
            for end in (fact.subject, fact.object)
            if end not in batch.known
        }
        if ends:
            nodes = await self._client.nodes(sorted(ends))
            batch.known.update((node.uuid, node) for node in nodes)

    async def _context(self, batch: Batch, facts: Sequence[Fact]) -> _Context:
        closings = self._journal.closings
        ids = [fact.uuid for fact in facts]
        nodes = sorted({end for fact in facts for end in (fact.subject, fact.object)})
        endings = [
            ending for ending in await closings.about(nodes) if ending.turn not in batch.endings
        ]
        endings += [ending for of_turn in batch.endings.values() for ending in of_turn]
        stored_closings: dict[str, list[Closing]] = {}
        for closing in await closings.of(ids):
            stored_closings.setdefault(closing.fact, []).append(closing)
        stating_turns = {turn for fact in facts for turn in fact.episodes}
        stating_turns.update(ending.turn for ending in endings)
        closing_facts: set[str] = set()
        for of_fact in (*stored_closings.values(), *batch.closings.values()):
            for closing in of_fact:
                if closing.by_fact:
                    closing_facts.add(closing.by_fact)
                else:
                    stating_turns.add(closing.by_turn)
        said_at = await closings.said_at(sorted(stating_turns))
        await self._load(batch, closing_facts)
        return _Context(
            batch=batch,
            closings=stored_closings,
            said_at=said_at,
            beside=await self._beside(batch, ids),
            places=await self._places(batch, facts),
            endings=[
                OrderedEnding(ending, Order(*said_at[ending.turn]))
                for ending in endings
                if ending.turn in said_at
            ],
        )

    async def _beside(self, batch: Batch, facts: Sequence[str]) -> dict[str, set[str]]:
        """Return fact → the turns that support it only through another turn, which states it."""
        ties = {*batch.ties}
        for fact, holders in (await self._journal.ties.of_facts(facts)).items():
            for holder, needs in holders.items():
                ties.update((fact, holder, needed) for needed in needs)
        beside: dict[str, set[str]] = {}
        for fact, _, needed in ties:
            beside.setdefault(fact, set()).add(needed)
        for fact, holder, _ in ties:
            beside[fact].discard(holder)
        return beside

    async def _places(self, batch: Batch, facts: Sequence[Fact]) -> dict[tuple[str, str], int]:
        """Return (turn, fact) → the fact's position, for turns that state several of the facts.

        Facts with the same text are the same sentence and share a position.
        """
        stating: dict[str, list[Fact]] = {}
        for fact in facts:
            for turn in fact.episodes:
                stating.setdefault(turn, []).append(fact)
        shared = {turn: stated for turn, stated in stating.items() if len(stated) > 1}
        order = {turn: batch.episodes[turn].facts for turn in shared if turn in batch.episodes}
        missing = sorted(set(shared) - set(order))
        if missing:
            episodes = await self._client.episodes(missing)
            order |= {episode.uuid: episode.facts for episode in episodes}
        places: dict[tuple[str, str], int] = {}
        for turn, stated in shared.items():
            by_id = {uuid: place for place, uuid in enumerate(order.get(turn, ()))}
            by_text: dict[str, int] = {}
            for fact in sorted(stated, key=lambda fact: by_id.get(fact.uuid, len(by_id))):
                place = by_id.get(fact.uuid, len(by_id))
                places[turn, fact.uuid] = by_text.setdefault(fact.text, place)
        return places


@dataclass(slots=True)
class _Context:
    """The input for deciding about the facts of some slots.

    Attributes:
        closings: Fact → its stored closings.
        said_at: Turn → its time and its position in the journal.
        beside: As ``Slots._beside``.
        places: As ``Slots._places``.
    """

    batch: Batch
    closings: Mapping[str, Sequence[Closing]]
    said_at: Mapping[str, tuple[datetime, int]]
    beside: Mapping[str, set[str]]
    places: dict[tuple[str, str], int]
    endings: Sequence[OrderedEnding]

    def all_stated(self, facts: Iterable[Fact]) -> list[Stated]:
        stated = map(self.stated, facts)
        return [fact for fact in stated if fact is not None]

    def stated(self, fact: Fact) -> Stated | None:
        """Return a fact with its statements; None when no turn states it."""
        beside = self.beside.get(fact.uuid, ())
        statements: list[FactStatement] = []
        for turn in fact.episodes:
            if turn in self.said_at and turn not in beside:
                place = self.places.get((turn, fact.uuid), 0)
                statements.append(FactStatement(turn, Order(*self.said_at[turn], place)))
        if not statements:
            return None
        statements.sort(key=lambda statement: statement.order)
        return Stated(fact, tuple(statements), self.own_end(fact), tuple(self.asserted(fact)))

    def own_end(self, fact: Fact) -> datetime | None:
        """Return the end that a fact has without any closing."""
        batch = self.batch
        if fact.uuid in batch.own_ends:
            return batch.own_ends[fact.uuid]
        stored = batch.stored.get(fact.uuid)
        if stored is None or taken_back(stored):
            return None
        rows = self.closings.get(fact.uuid, ())
        for closing in rows:
            if closing.at == stored.invalid_at:
                return closing.own_end
        return stored.invalid_at

    def asserted(self, fact: Fact, *, dormant: bool = False) -> list[Closing]:
        """Return the valid closings of a fact that turns state themselves.

        ``dormant`` adds those whose closing fact is absent: it may come back from the recycle bin.
        """
        stored = [
            closing
            for closing in self.closings.get(fact.uuid, ())
            if closing.by_turn not in self.batch.episodes
        ]
        of_batch = self.batch.closings.get(fact.uuid, ())
        return [
            closing
            for closing in (*stored, *of_batch)
            if closing.cause in _ASSERTED and self._holds(closing, fact, dormant=dormant)
        ]

    def _holds(self, closing: Closing, fact: Fact, *, dormant: bool) -> bool:
        if not closing.by_fact:
            return closing.by_turn in self.said_at or dormant
        by = self.batch.fact(closing.by_fact)
        if by is None:
            return dormant
        return not taken_back(by) and closing.by_turn in (*by.episodes, *fact.episodes)


def _key(closing: Closing) -> tuple[str, str, str, str, datetime]:
    return closing.fact, closing.by_fact, closing.by_turn, closing.cause, closing.at
