"""Forgetting: what hangs on an id is found first, shown, and then removed everywhere, or not at all.

The intent is written to the journal before the first removal, so a forget that a crash cut short is
carried through at the next start.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TypeAlias

from pps.core.errors import InvalidRequest, NotFound, StoreError, StoreUnavailable
from pps.core.ids import is_uuid
from pps.core.reports import Forgotten
from pps.core.values import Fact
from pps.ingest.anchors import Anchors
from pps.ingest.index_docs import WINDOW_TURNS
from pps.ingest.indexer import Indexer
from pps.ingest.linking import record_id
from pps.ingest.statements import is_undated
from pps.ingest.worker import Worker
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import Change
from pps.journal.journal import Journal

MAX_IDS = 500
_INTENT = "forgetting"
_ALL = 100_000
Check: TypeAlias = Callable[[Sequence[str]], Awaitable[None]]
"""Raises when one of the turns, facts and nodes that would go may not be changed."""


@dataclass(frozen=True, slots=True)
class _Plan:
    turns: tuple[str, ...]
    facts: tuple[str, ...]
    weakened: tuple[str, ...]
    nodes: tuple[str, ...]
    anchors: tuple[str, ...]
    stripped: tuple[str, ...] = ()
    """Nodes that stay, for others know them too, and lose what the text that made them records said of them."""


class Forgetter:
    """Removes turns, facts, nodes and anchors of one entity, with what nothing else supports."""

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexer: Indexer,
        anchors: Anchors,
        worker: Worker,
        self_node: str,
    ) -> None:
        self._client = client
        self._journal = journal
        self._indexer = indexer
        self._anchors = anchors
        self._self_node = self_node
        self._worker = worker

    async def forget(self, ids: Sequence[str], *, dry_run: bool, check: Check | None = None) -> Forgotten:
        """Plan, and unless it is a dry run carry out, the removal of ids and slugs.

        Raises:
            InvalidRequest: No id, more than 500, or the entity's own node; or what ``check`` raises.
            NotFound: One of them is not this entity's; nothing was changed.
            StoreConflict: A text is being taken in and it does not end; nothing was changed, try again.
        """
        if dry_run:
            return _said(await self._checked(ids, check), dry_run=True)
        async with self._worker.held():  # a job in hand would bring back what is forgotten meanwhile
            done = await self.resume()  # what an earlier call noted must not be lost to this one
            if done and {*done.turns, *done.facts, *done.nodes, *done.anchors}.issuperset(ids):
                return _said(done, dry_run=False)
            plan = await self._checked(ids, check)
            await self._drop_given(plan)
            await self._journal.set_meta(_INTENT, json.dumps(asdict(plan)))
            try:
                await self._carry_out(plan)
            except StoreError as error:
                why = "it is noted and may be forgotten in part; the next forget or start finishes it"
                raise StoreUnavailable(f"{why} ({error.message})") from error
        return _said(plan, dry_run=False)

    async def _checked(self, ids: Sequence[str], check: Check | None) -> _Plan:
        plan = await self._plan(ids)
        if check:
            await check((*plan.turns, *plan.facts, *plan.nodes, *plan.stripped))
        return plan

    async def resume(self) -> _Plan | None:
        """Carry through a forget that was cut short, if there is one; return what it was."""
        if not (intent := await self._journal.get_meta(_INTENT)):
            return None
        plan = _Plan(**{name: tuple(value) for name, value in json.loads(intent).items()})
        await self._carry_out(plan)
        return plan

    async def _plan(self, ids: Sequence[str]) -> _Plan:
        wanted = list(dict.fromkeys(ids))
        if not 1 <= len(wanted) <= MAX_IDS:
            raise InvalidRequest("ids", f"give 1 to {MAX_IDS} ids")
        if self._self_node in wanted:
            raise InvalidRequest("ids", "the entity's own node stays as long as the entity")
        uuids = [one for one in wanted if is_uuid(one)]
        turns = [turn.uuid for turn in await self._journal.turns(uuids)]
        facts = [fact.uuid for fact in await self._client.facts(uuids)]
        nodes = [node.uuid for node in await self._client.nodes(uuids)]
        slugs = await self._slugs([one for one in wanted if not is_uuid(one)])
        if len({*turns, *facts, *nodes}) != len(uuids):
            raise NotFound()
        sources = await self._journal.records.of_nodes(nodes)  # a record and its source are one thing
        turns = list(dict.fromkeys([*turns, *sources.values()]))
        return await self._widened(turns, facts, nodes, slugs)

    async def _slugs(self, wanted: Sequence[str]) -> list[str]:
        known = {anchor.slug for anchor in await self._anchors.list()} if wanted else set[str]()
        slugs = [one.removeprefix("anchor:") for one in wanted]
        if not known.issuperset(slugs):
            raise NotFound()
        return slugs

    async def _widened(
        self, turns: Sequence[str], facts: Sequence[str], nodes: Sequence[str], slugs: Sequence[str]
    ) -> _Plan:
        """Add what would be left without support: facts of forgotten turns, nodes that nothing mentions."""
        records = await self._journal.records.of_turns(turns)
        own = [node for turn, node in records.items() if node == record_id(self._client.entity.group, turn)]
        nodes = list(dict.fromkeys([*nodes, *own]))
        gone: dict[str, Fact] = {fact.uuid: fact for fact in await self._client.facts(facts)}
        if nodes:
            gone.update((fact.uuid, fact) for fact in await self._client.facts_of_nodes(nodes, _ALL))
        weakened: list[str] = []
        for fact in await self._client.facts_of_episodes(turns) if turns else []:
            if set(fact.episodes) <= set(turns):
                gone[fact.uuid] = fact
            elif fact.uuid not in gone:
                weakened.append(fact.uuid)
        orphans = await self._orphans(turns, gone, nodes)
        gone_nodes = (*nodes, *orphans)
        stripped = tuple(node for node in records.values() if node not in gone_nodes)
        return _Plan(tuple(turns), tuple(gone), tuple(weakened), gone_nodes, tuple(slugs), stripped)

    async def _orphans(self, turns: Sequence[str], gone: dict[str, Fact], nodes: Sequence[str]) -> list[str]:
        touched = {end for fact in gone.values() for end in (fact.subject, fact.object)}
        if turns:
            for mentioned in (await self._client.mentioned_nodes(turns)).values():
                touched.update(mentioned)
        candidates = sorted(touched - set(nodes) - {self._self_node})
        if not candidates:
            return []
        mentions = await self._client.episodes_of_nodes(candidates)
        stay = [fact for fact in await self._client.facts_of_nodes(candidates, _ALL) if fact.uuid not in gone]
        kept = {end for fact in stay for end in (fact.subject, fact.object)}
        return [node for node in candidates if node not in kept and set(mentions.get(node, ())) <= set(turns)]

    async def _drop_given(self, plan: _Plan) -> None:
        """Erase what was given with the turns that supported a fact that goes; the turns themselves stay.

        Raises InvalidRequest, before anything is forgotten, when one of them is still being worked on.
        """
        facts = await self._client.facts(list(plan.facts))
        told = {turn for fact in facts for turn in fact.episodes}
        if plan.nodes:  # a node that was given alone would come back when the graph is rebuilt
            told.update(*(await self._client.episodes_of_nodes(list(plan.nodes))).values())
        for turn in sorted(told - set(plan.turns)):
            await self._journal.drop_payload(turn)

    async def _carry_out(self, plan: _Plan) -> None:
        # Turns are found by the words of their neighbours and of their facts.
        supports = {turn for fact in await self._client.facts(list(plan.facts)) for turn in fact.episodes}
        touched = {*plan.turns, *supports}
        neighbours = await self._journal.near([*touched], WINDOW_TURNS)
        changes = [
            *(Change("episode", uuid) for uuid in sorted({*neighbours, *plan.turns})),
            *(Change("fact", uuid) for uuid in (*plan.facts, *plan.weakened)),
            *(Change("node", uuid) for uuid in (*plan.nodes, *plan.stripped)),
        ]
        await self._journal.mark_dirty(changes)
        weakened = await self._client.facts(list(plan.weakened))
        said = {turn.uuid: turn.occurred_at for turn in await self._journal.turns(list(plan.turns))}
        await self._client.save_facts(
            [self._without(fact, set(plan.turns), set(said.values())) for fact in weakened], {}
        )
        await self._strip(plan.stripped)
        await self._client.delete_facts(list(plan.facts))
        await self._client.delete_episodes(list(plan.turns))
        await self._client.delete_nodes(list(plan.nodes))
        await self._journal.mirror_drop("fact", list(plan.facts))
        await self._journal.mirror_drop("node", list(plan.nodes))
        await self._journal.mirror_facts(await self._client.facts(list(plan.weakened)))
        await self._journal.typed.forget(plan.turns, plan.facts, plan.nodes)
        await self._journal.forget_turns(list(plan.turns))
        await self._worker.forgotten()
        await self._journal.merges.forget(plan.nodes)
        for slug in plan.anchors:
            await self._anchors.delete(slug, missing_ok=True)
        # Again: the worker may have indexed what was still there meanwhile, and cleared the marks.
        await self._journal.mark_dirty(changes)
        await self._indexer.drain()
        await self._indexer.purge()
        await self._journal.set_meta(_INTENT, "")

    def _without(self, fact: Fact, lost: set[str], days: set[datetime]) -> Fact:
        """Return a fact without some supports, and without a day that is theirs: its next first text gives it one."""
        since = None if fact.valid_at in days and is_undated(self._client.entity.group, fact) else fact.valid_at
        return replace(fact, valid_at=since, episodes=tuple(one for one in fact.episodes if one not in lost))

    async def _strip(self, nodes: Sequence[str]) -> None:
        """Let nodes be plain again: name, aliases and what others made of them stay."""
        plain = [
            replace(node, kind="Thing", summary="", tags=(), attributes={})
            for node in await self._client.nodes(list(nodes))
        ]
        await self._client.save_nodes(plain, {})
        await self._journal.mirror_nodes(plain)


def _said(plan: _Plan, *, dry_run: bool) -> Forgotten:
    return Forgotten(dry_run, plan.turns, plan.facts, plan.weakened, plan.nodes, plan.anchors)
