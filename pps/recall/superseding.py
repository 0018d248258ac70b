"""Successors of superseded statements: of closed facts, and of what a later turn amends.

A turn is superseded when a later turn closed a fact that it states, or amends what it says
(``amending``); a fact when it was closed, or when a later turn amends it. All reads are one a store
for all statements together, through one entity's own journal, graph and indexes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from pps.core.recalled import Successor
from pps.core.text import fold, one_line
from pps.core.time import now
from pps.core.values import Closing, Fact, Node, Turn, Vector
from pps.recall.amending import AmendingStatement, rules_for

if TYPE_CHECKING:
    from pps.index.indexes import EntityIndexes
    from pps.isolation.client import IsolatedGraphitiClient
    from pps.journal.journal import Journal
    from pps.models.protocols import Embedder

MAX_SUCCESSOR_CHARS = 200
"""Characters of a successor's text."""
_TURNS_AROUND = 8
"""Turns that are looked at around each statement of a listing."""
_MAX_STATEMENTS_LOOKED_AROUND = 200
_QUERY_CHARS = 300
"""Characters of a turn that are searched for without a model of meaning."""
_MAX_STEPS = 32
"""Successors of successors that are followed."""


@dataclass(frozen=True, slots=True)
class Superseding:
    """Finds the successors of one entity's statements."""

    client: IsolatedGraphitiClient
    journal: Journal
    indexes: EntityIndexes
    embedder: Embedder | None = None

    async def successors(
        self,
        turns: Sequence[Turn],
        facts: Sequence[Fact],
        *,
        nodes: Sequence[Node] = (),
        later: Sequence[Turn] = (),
        at: datetime | None = None,
    ) -> dict[str, Successor]:
        """Return id → successor of those of the turns, facts and nodes that are superseded.

        Args:
            turns: What was said; each may also amend the others.
            facts: Open or closed ones.
            nodes: A node is outdated if its summary names the value of a closed fact of it, and not
                the value that holds since.
            later: Further turns that may amend them.
            at: The instant as of which to answer (aware, world time); later turns are unknown then.

        Raises:
            StoreUnavailable: A store does not answer.
            IsolationError: A foreign row came back.
        """
        if not turns and not facts and not nodes:
            return {}
        moment = at or now()
        saying = {turn.uuid: turn for turn in (*turns, *later) if turn.occurred_at <= moment}
        closed, amended, outdated = await asyncio.gather(
            self._closed(turns, facts, moment),
            self._amended(turns, facts, saying),
            self._outdated_summaries(nodes, moment),
        )
        successors = dict(amended)
        for id_, successor in closed.items():
            known = successors.get(id_)
            if known is None or not known.sure or known.at <= successor.at:
                successors[id_] = successor
        return {id_: _last(successors, id_) for id_ in successors} | outdated

    async def in_listing(
        self, turns: Sequence[Turn], facts: Sequence[Fact], at: datetime | None = None
    ) -> dict[str, Successor]:
        """Return ``successors`` of what is listed, among the turns that are nearest to each.

        The first 200 statements are looked around; by closings all are looked up.
        """
        if not turns and not facts:
            return {}
        open_facts = [fact for fact in facts if fact.invalid_at is None and fact.kind == "fact"]
        near = await self._near(turns, open_facts) - {turn.uuid for turn in turns}
        later = await self.journal.turns(sorted(near)) if near else ()
        return await self.successors(turns, facts, later=later, at=at)

    async def _near(self, turns: Sequence[Turn], facts: Sequence[Fact]) -> set[str]:
        """Return the turns nearest to each statement in meaning, or in words without a model."""
        if self._has_model_of_meaning():
            vectors = await self._vectors(turns, facts)
            around = list(vectors.values())[:_MAX_STATEMENTS_LOOKED_AROUND]
            nearest = await self.indexes.nearest_of_each("episodes", around, _TURNS_AROUND)
            return {hit.owner for hits in nearest for hit in hits}
        texts = [_own_words(turn)[:_QUERY_CHARS] for turn in turns]
        texts += [fact.text for fact in facts]
        matches = await asyncio.gather(
            *(
                self.indexes.text_search("episodes", text, _TURNS_AROUND)
                for text in texts[:_MAX_STATEMENTS_LOOKED_AROUND]
            )
        )
        return {hit.owner for hits in matches for hit in hits}

    def _has_model_of_meaning(self) -> bool:
        return self.embedder is not None and self.embedder.fingerprint.pooling != "hash"

    async def _closed(
        self, turns: Sequence[Turn], facts: Sequence[Fact], moment: datetime
    ) -> dict[str, Successor]:
        """Return the successors by closings: of closed facts, and of the turns that state them."""
        stated = (
            await self.journal.facts_supported_by([turn.uuid for turn in turns]) if turns else {}
        )
        ids = {fact.uuid for fact in facts}.union(*stated.values())
        closings = await self._closings(sorted(ids), moment) if ids else []
        if not closings:
            return {}
        by_turn = {turn.uuid: turn for turn in await self._turns_of(closings)}
        by_fact = {fact.uuid: fact for fact in await self._facts_of(closings)}
        of_fact: dict[str, Closing] = {}
        for closing in closings:
            of_fact.setdefault(closing.fact, closing)
        successors: dict[str, Successor] = {}
        for fact in facts:
            closing = of_fact.get(fact.uuid)
            if closing:
                successor = _of_closing(closing, by_fact, by_turn)
                if successor:
                    successors[fact.uuid] = successor
        for turn in turns:
            for fact_id in stated.get(turn.uuid, ()):
                closing = of_fact.get(fact_id)
                source = by_turn.get(closing.by_turn) if closing else None
                if source and turn.occurred_at < source.occurred_at <= moment:
                    successors[turn.uuid] = successor_of(source)
        return successors

    async def _outdated_summaries(
        self, nodes: Sequence[Node], moment: datetime
    ) -> dict[str, Successor]:
        """Return node → the latest successor of a closed fact whose value its summary still names.

        A model writes summaries and adds to them; it does not take out what ended. A summary that
        names the new value too tells of the change itself. None is ``sure``: the rest of the
        summary may hold.
        """
        summaries = {node.uuid: fold(node.summary) for node in nodes if node.summary}
        if not summaries:
            return {}
        noted = await self.journal.closings.of_subjects(sorted(summaries))
        closings = await self._carried_out(noted, moment)
        if not closings:
            return {}
        by_turn = {turn.uuid: turn for turn in await self._turns_of(closings)}
        by_fact = {fact.uuid: fact for fact in await self._facts_of(closings)}
        facts = await self.client.facts(sorted({closing.fact for closing in closings}))
        by_id = {fact.uuid: fact for fact in facts}
        ends = {fact.object for fact in (*facts, *by_fact.values())}
        names = {node.uuid: fold(node.name) for node in await self.client.nodes(sorted(ends))}
        outdated: dict[str, Successor] = {}
        for closing in sorted(closings, key=lambda closing: closing.at):
            fact = by_id.get(closing.fact)
            if fact is None:
                continue
            summary = summaries.get(fact.subject, "")
            old_value = names.get(fact.object, "")
            replacement = by_fact.get(closing.by_fact)
            new_value = names.get(replacement.object, "") if replacement else ""
            successor = _of_closing(closing, by_fact, by_turn)
            if successor is None or not _names(summary, old_value) or _names(summary, new_value):
                continue
            outdated[fact.subject] = replace(successor, sure=False)
        return outdated

    async def _closings(self, facts: Sequence[str], moment: datetime) -> list[Closing]:
        """Return the closings that closed any of the facts by a moment."""
        return await self._carried_out(await self.journal.closings.of(facts), moment)

    async def _carried_out(self, noted: Sequence[Closing], moment: datetime) -> list[Closing]:
        """Return the noted closings at or before a moment whose end is the fact's end."""
        closings = [closing for closing in noted if closing.at <= moment]
        closed = list({closing.fact for closing in closings})
        outlines = await self.journal.fact_outlines(closed) if closed else {}
        ends = {fact: outline.invalid_at for fact, outline in outlines.items()}
        return [closing for closing in closings if ends.get(closing.fact) == closing.at]

    async def _turns_of(self, closings: Sequence[Closing]) -> Sequence[Turn]:
        ids = sorted({closing.by_turn for closing in closings if closing.by_turn})
        return await self.journal.turns(ids) if ids else ()

    async def _facts_of(self, closings: Sequence[Closing]) -> Sequence[Fact]:
        ids = sorted({closing.by_fact for closing in closings if closing.by_fact})
        return await self.client.facts(ids) if ids else ()

    async def _amended(
        self, turns: Sequence[Turn], facts: Sequence[Fact], saying: Mapping[str, Turn]
    ) -> dict[str, Successor]:
        """Return the successors of turns and open facts that a later turn amends."""
        open_facts = [fact for fact in facts if fact.invalid_at is None and fact.kind == "fact"]
        speaking = [turn for turn in saying.values() if _may_amend(turn)]
        if not speaking:
            return {}
        ids = [fact.uuid for fact in open_facts]
        supports = await self.journal.fact_supports(ids) if ids else {}
        vectors = await self._vectors([*turns, *speaking], open_facts)
        earlier = [statement_of(turn, vectors) for turn in turns]
        for fact in open_facts:
            support = supports.get(fact.uuid)
            said_at = (support.said_at if support else None) or fact.valid_at or fact.created_at
            earlier.append(
                AmendingStatement(
                    fact.uuid, fact.text, said_at, "", vectors.get(fact.uuid), amends=False
                )
            )
        rules = rules_for(self.embedder.fingerprint.model if self.embedder else "")
        new = [statement_of(turn, vectors) for turn in speaking]
        # Some milliseconds of pure Python: a thread would only take turns with this one.
        amendments = rules.amendments(earlier, new)
        states = {fact.uuid: set(fact.episodes) for fact in open_facts}
        amending = {id_: amendment.later for id_, amendment in amendments.items() if id_ in states}
        ended_beside = await self._ended_beside(amending, states)
        return {
            id_: successor_of(saying[amendment.later], sure=amendment.sure)
            for id_, amendment in amendments.items()
            if amendment.later not in states.get(id_, ()) and id_ not in ended_beside
        }

    async def _ended_beside(
        self, amending: Mapping[str, str], states: Mapping[str, set[str]]
    ) -> set[str]:
        """Return the open facts of which the amending turn closed another fact of the same turn.

        "I live in Hamburg and work as a nurse" is two facts. "I quit" ended one of them and says
        nothing of the other, though the sentence of both is amended.

        Args:
            amending: Open fact → the turn that amends its sentence.
            states: Open fact → the turns that state it.
        """
        if not amending:
            return set()
        closings = await self.journal.closings.by_turns(sorted(set(amending.values())))
        closed = sorted({closing.fact for closing in closings})
        supports = await self.journal.fact_supports(closed) if closed else {}
        stating: dict[str, set[str]] = {}
        for closing in closings:
            support = supports.get(closing.fact)
            stating.setdefault(closing.by_turn, set()).update(support.episodes if support else ())
        return {fact for fact, turn in amending.items() if states[fact] & stating.get(turn, set())}

    async def _vectors(self, turns: Sequence[Turn], facts: Sequence[Fact]) -> dict[str, Vector]:
        if not self._has_model_of_meaning():
            return {}
        of_turns, of_facts = await asyncio.gather(
            self.indexes.vectors("episodes", list({turn.uuid for turn in turns})),
            self.indexes.vectors("facts", [fact.uuid for fact in facts]),
        )
        return of_turns | of_facts


def successor_of(turn: Turn, *, sure: bool = True) -> Successor:
    """Return a turn as what took the place of another statement."""
    text = one_line(_own_words(turn), MAX_SUCCESSOR_CHARS)
    return Successor(turn.uuid, text, turn.occurred_at, sure)


def _of_closing(
    closing: Closing, by_fact: Mapping[str, Fact], by_turn: Mapping[str, Turn]
) -> Successor | None:
    turn = by_turn.get(closing.by_turn)
    fact = by_fact.get(closing.by_fact)
    if fact is not None:
        at = turn.occurred_at if turn else closing.at
        return Successor(fact.uuid, one_line(fact.text, MAX_SUCCESSOR_CHARS), at, sure=True)
    return successor_of(turn) if turn else None


def _last(successors: Mapping[str, Successor], id_: str) -> Successor:
    """Return the successor that is itself not superseded.

    On a ring, the last before a repetition.
    """
    successor = successors[id_]
    passed = {id_}
    for _ in range(_MAX_STEPS):
        following = successors.get(successor.id)
        if following is None or not following.sure or following.id in passed:
            break
        passed.add(successor.id)
        successor = replace(following, sure=successor.sure)
    return successor


def _names(text: str, name: str) -> bool:
    """Tell whether a folded text has a folded name in it, as words."""
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _may_amend(turn: Turn) -> bool:
    """Tell whether a person said it: documents, summaries and what tools do amend nothing."""
    return turn.role == "user" and turn.kind != "summary" and turn.chunk is None


def statement_of(turn: Turn, vectors: Mapping[str, Vector]) -> AmendingStatement:
    """Return a turn as a statement; a person without a name may be any person."""
    speaker = turn.actor or ("" if turn.role == "user" else turn.role)
    return AmendingStatement(
        turn.uuid,
        _own_words(turn),
        turn.occurred_at,
        speaker,
        vectors.get(turn.uuid),
        amends=_may_amend(turn),
    )


def _own_words(turn: Turn) -> str:
    return turn.content.removeprefix(f"{turn.actor or turn.role}:").strip()
