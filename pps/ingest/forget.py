"""Forgetting: plan what an id takes with it, show that, then remove it in one transaction.

The transaction also moves softly forgotten items into the recycle bin, recomputes closings, and
notes which anchors' files and indexes still hold forgotten text. These follow at once. When one of
them fails, the receipt names it, and the next forget, an idle worker or the next start tries again.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeAlias, TypedDict, Unpack

from pydantic import TypeAdapter

from pps.core.bounds import check_keywords, check_length
from pps.core.errors import InvalidRequest, NotFound, StoreError
from pps.core.ids import is_uuid
from pps.core.reports import Forgotten, Restorable, Restored, ShownItem
from pps.core.sql import Connection
from pps.core.text import one_line
from pps.core.values import Fact, Node
from pps.graph.graph_store import GraphChange
from pps.ingest.anchors import Anchors
from pps.ingest.index_docs import WINDOW_TURNS
from pps.ingest.indexer import Indexer
from pps.ingest.linking import record_id
from pps.ingest.mentions import (
    MOST_SHOWN,
    MentionFinder,
    MentionKind,
    NameMentions,
    shown_anchor,
    shown_fact,
    shown_node,
    shown_turn,
)
from pps.ingest.recycle_bin import ClockReport, Plan, RecycleBin, Softly
from pps.ingest.redact import KeyedRedactor
from pps.ingest.statements import is_undated
from pps.ingest.support import broken_holders, supports_left, without_lost_names
from pps.ingest.worker import Worker
from pps.ingest.write_path import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal import feature_tables, meta, record_rows, tie_rows, turns, usage
from pps.journal.bin_rows import Binned, drop_given, rewrite
from pps.journal.change_log import log_changes
from pps.journal.db import Work
from pps.journal.entries import Change
from pps.journal.graph_queries import ambiguous
from pps.journal.job_queue import read_again
from pps.journal.journal import Journal
from pps.journal.merge_rows import forget_merges
from pps.journal.tie_rows import Ties

MAX_IDS = 500
MAX_WHY = 500
_MOST_LINES = 5
_LINE_LENGTH = 100
_TRACES = "forgotten"
"""Key in ``meta`` of the note about files that still hold forgotten text."""
_UNFINISHED = "forgetting"
"""Key in ``meta`` of a plan that an old PPS, without transactions of several steps, had begun."""
_ALL = 100_000
Check: TypeAlias = Callable[[Sequence[str], Sequence[str]], Awaitable[None]]
"""Called with ids of turns, facts and nodes, and kinds of records; raises if one is protected."""


class Forgetter:
    """Removes turns, facts, nodes and anchors of one entity, with what nothing else supports."""

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexer: Indexer,
        anchors: Anchors,
        recycle_bin: RecycleBin,
        worker: Worker,
        pipeline: Pipeline,
        self_node: str,
    ) -> None:
        self.bin = recycle_bin
        self._client = client
        self._journal = journal
        self._indexer = indexer
        self._anchors = anchors
        self._self_node = self_node
        self._worker = worker
        self._pipeline = pipeline
        self._mentions = MentionFinder(client, journal, anchors)

    async def whole(self, ids: Sequence[str]) -> list[str]:
        """Return ids with beginnings of ids replaced by whole ones.

        Waits up to 5 s for acknowledged turns to be saved.
        """
        await self._worker.saved(5.0)
        return await self._journal.begun(ids)

    async def with_names(self, ids: Sequence[str], *, dry_run: bool) -> list[str]:
        """Return ids with names of nodes and titles of records replaced by their ids.

        Anything else stays as it is.

        Raises:
            InvalidRequest: Several nodes or records have the name; or a name in a call that is no
                dry run: the caller must see first what the name stands for.
        """
        slugs = set(await self._slugs([id_ for id_ in ids if not is_uuid(id_)]))
        resolved: list[str] = []
        for number, name in enumerate(ids):
            is_id = is_uuid(name) or name.removeprefix("anchor:") in slugs
            matches = [] if is_id else await self._journal.titled(name)
            if len(matches) > 1:
                raise ambiguous(f"ids[{number}]", matches)
            if matches and not dry_run:
                raise InvalidRequest(
                    f"ids[{number}]", "is a name: a dry run shows what goes, and the id to give"
                )
            resolved.append(matches[0].id if matches else name)
        return resolved

    async def forget(
        self,
        ids: Sequence[str],
        *,
        dry_run: bool,
        check: Check | None = None,
        softly: Softly | None = None,
        along: Sequence[MentionKind] | None = None,
    ) -> Forgotten:
        """Plan the removal of ids and slugs and, unless it is a dry run, carry it out.

        Args:
            ids: Ids of turns, facts and nodes; slugs of anchors.
            dry_run: Nothing is changed.
            check: Raises when something that would go is protected.
            softly: Who forgets and why: it can be restored for a while. None erases it for good,
                from the recycle bin too.
            along: Kinds of mentioning items that go too. None does not search for mentions.

        Raises:
            InvalidRequest: No id, more than 500 or the entity's own node; or ``check`` raised it.
            NotFound: An id is not of this entity; nothing was changed.
            StoreConflict: A job did not end in time; nothing was changed, try again.
        """
        if not 1 <= len(dict.fromkeys(ids)) <= MAX_IDS:
            raise InvalidRequest("ids", f"give 1 to {MAX_IDS} ids")
        if dry_run:
            plan, rows, mentions = await self._checked(ids, check, softly, along)
            items = await self._items(plan)
            return replace(
                self._receipt(plan, rows, softly, dry_run=True),
                asked=tuple(dict.fromkeys(ids)),
                shown=_lines(plan, items),
                items=items,
                mentions=mentions and mentions.report(),
                upgrade_copy=not softly and self._journal.has_copy,
                moved_copy=not softly and self._journal.erase_other_copy is not None,
            )
        # A running job could write again what is forgotten meanwhile.
        async with self._worker.held():
            await self.resume()
            plan, rows, mentions = await self._checked(ids, check, softly, along)
            plan = replace(plan, told=await self._turns_losing_payload(plan))
            if softly:
                rows = [await self.bin.taken(plan, softly)]
            pending = await self._carry_out(plan, partial(_begin, plan=plan, rows=rows))
        self._worker.notify()  # turns may have to be read again, and the command waits for fewer
        receipt = self._receipt(plan, rows, softly, dry_run=False)
        return replace(receipt, mentions=mentions and mentions.report(), pending=pending)

    async def names(self, ids: Sequence[str]) -> list[str]:
        """Return the names of the nodes with some ids or names, aliases included."""
        uuids: list[str] = []
        for id_ in ids:
            if is_uuid(id_):
                uuids.append(id_)
            else:
                uuids += [match.id for match in await self._journal.titled(id_)]
        nodes = await self._client.nodes(uuids)
        return [name for node in nodes for name in (node.name, *node.aliases)]

    async def restorable(self, id: str, *, with_mentions: bool) -> Restorable:
        """Return a row of the bin with the mentions of its nodes; NotFound as ``restore``."""
        row = await self.bin.get(id)
        restorable = self.bin.describe(row)
        names = self.bin.names(row) if with_mentions else []
        if not names:
            return restorable
        return replace(restorable, mentions=(await self._mentions.find(names)).report())

    async def restore(self, id: str, check: Check | None = None) -> Restored:
        """Put back a row of the recycle bin, by its id or the beginning of it.

        Raises:
            NotFound: This entity has no such row, or its time is over.
            InvalidRequest: Something that it needs was forgotten later; or what ``check`` raises.
                Nothing was changed.
        """
        async with self._worker.held():
            await self.resume()
            row = await self.bin.get(id)
            if check:
                await check((), row.kinds)
            restored = await self.bin.restore(row)
        self._worker.notify()
        return restored

    async def erase_sessions(self, sessions: Collection[str]) -> None:
        """Erase the turns of some sessions from the recycle bin."""
        async with self._worker.held():
            await self._journal.bin.rewrite(
                await self.bin.without(await self.bin.turns_of(sessions))
            )
            await self._journal.erase_copies()

    async def _checked(
        self,
        ids: Sequence[str],
        check: Check | None,
        softly: Softly | None,
        along: Sequence[MentionKind] | None,
    ) -> tuple[Plan, list[Binned], NameMentions | None]:
        """Return the plan, the rows of the recycle bin that it changes, and remaining mentions."""
        plan = await self._plan(ids, softly)
        mentions = None if along is None else await self._mentions_of(plan)
        more = mentions.ids(along or ()) if mentions else ()
        if mentions and more:
            plan = await self._plan([*ids, *more], softly)
            mentions = mentions.without({*plan.turns, *plan.facts, *plan.nodes, *plan.anchors})
        rows = [] if softly else await self.bin.without(plan.asked)
        if check:
            kinds: set[str] = set()
            for row in rows:
                if not {row.id, *row.asked}.isdisjoint(plan.asked):
                    kinds.update(row.kinds)
            await check((*plan.turns, *plan.facts, *plan.nodes, *plan.stripped), sorted(kinds))
        return plan, rows, mentions

    async def _mentions_of(self, plan: Plan) -> NameMentions | None:
        """Return what mentions the requested nodes or supports the requested facts, and stays.

        None when neither a node nor a fact was requested.
        """
        requested = [id_ for id_ in plan.asked if is_uuid(id_)]
        nodes = [node for node in await self._client.nodes(requested) if node.uuid in plan.nodes]
        facts = await self._client.facts(requested)
        if not nodes and not facts:
            return None
        mentions = await self._mentions.find(
            [name for node in nodes for name in (node.name, *node.aliases)],
            [node.uuid for node in nodes],
            [turn for fact in facts for turn in fact.episodes],
        )
        return mentions.without({*plan.turns, *plan.facts, *plan.nodes, *plan.anchors})

    def _receipt(
        self, plan: Plan, rows: Sequence[Binned], softly: Softly | None, *, dry_run: bool
    ) -> Forgotten:
        receipt = Forgotten(
            dry_run=dry_run,
            turns=plan.turns,
            facts=plan.facts,
            facts_kept=plan.weakened,
            nodes=plan.nodes,
            anchors=plan.anchors,
            rows=plan.rows or None,
        )
        if not softly:
            return replace(receipt, no_longer_restorable=tuple(row.id for row in rows))
        if not rows:
            return receipt
        [row] = rows
        return replace(receipt, restorable_as=row.id, restorable_until=self.bin.until(row))

    async def _items(self, plan: Plan) -> tuple[ShownItem, ...]:
        """Return the first items of each kind that would go."""
        nodes = await self._client.nodes(list(plan.nodes[:MOST_SHOWN]))
        facts = await self._client.facts(list(plan.facts[:MOST_SHOWN]))
        turns = await self._journal.turns(list(plan.turns[:MOST_SHOWN]))
        titles = {anchor.slug: anchor.title for anchor in await self._anchors.list()}
        return (
            *map(shown_node, nodes),
            *map(shown_fact, facts),
            *map(shown_turn, turns),
            *(shown_anchor(slug, titles.get(slug, slug)) for slug in plan.anchors[:MOST_SHOWN]),
        )

    async def resume(self) -> None:
        """Finish what a crash interrupted, and erase again from files. The caller holds the worker.

        Raises:
            StoreError: A plan that an old PPS left unfinished could not be carried out.
        """
        await self.bin.resume()
        await self.bin.expire()
        unfinished = await self._journal.get_meta(_UNFINISHED)
        if unfinished:
            plan = Plan(**{name: tuple(value) for name, value in json.loads(unfinished).items()})
            await self._carry_out(plan, partial(meta.put, key=_UNFINISHED, value=""))
        elif await self._journal.get_meta(_TRACES):
            await self._erase_traces()

    async def tend(self) -> None:
        """Erase expired rows of the recycle bin, and forgotten text that files still hold."""
        await self.bin.expire()
        if await self._journal.get_meta(_TRACES):
            async with self._worker.held():
                await self._erase_traces()

    async def _plan(self, ids: Sequence[str], softly: Softly | None) -> Plan:
        wanted = list(dict.fromkeys(ids))
        if self._self_node in wanted:
            raise InvalidRequest("ids", "the entity's own node stays as long as the entity")
        uuids = [id_ for id_ in wanted if is_uuid(id_)]
        turns = [turn.uuid for turn in await self._journal.turns(uuids)]
        facts = [fact.uuid for fact in await self._client.facts(uuids)]
        nodes = [node.uuid for node in await self._client.nodes(uuids)]
        slugs = await self._slugs([id_ for id_ in wanted if not is_uuid(id_)])
        unknown = set(wanted).difference(
            turns, facts, nodes, slugs, (f"anchor:{slug}" for slug in slugs)
        )
        rows = await self._journal.features.existing_rows(sorted(unknown))
        unknown -= set(rows)
        binned = {} if softly else await self.bin.known(unknown)
        if unknown - binned.keys():
            raise NotFound()
        # A record and its source are one thing.
        sources = await self._journal.records.of_nodes(nodes)
        turns = list(dict.fromkeys([*turns, *sources.values()]))
        plan = await self._widened(turns, facts, nodes, slugs)
        of_features = await self._journal.features.rows_about([*plan.gone, *rows])
        return replace(plan, asked=(*plan.asked, *rows, *binned.values()), rows=tuple(of_features))

    async def _slugs(self, wanted: Sequence[str]) -> list[str]:
        if not wanted:
            return []
        known = {anchor.slug for anchor in await self._anchors.list()}
        slugs = [id_.removeprefix("anchor:") for id_ in wanted]
        return [slug for slug in slugs if slug in known]

    async def _widened(
        self, turns: Sequence[str], facts: Sequence[str], nodes: Sequence[str], slugs: Sequence[str]
    ) -> Plan:
        """Return a plan with all that loses its support: facts of the turns, orphaned nodes."""
        records = await self._journal.records.of_turns(turns)
        own = [
            node
            for turn, node in records.items()
            if node == record_id(self._client.entity.group, turn)
        ]
        nodes = list(dict.fromkeys([*nodes, *own]))
        gone: dict[str, Fact] = {fact.uuid: fact for fact in await self._client.facts(facts)}
        if nodes:
            gone.update(
                (fact.uuid, fact) for fact in await self._client.facts_of_nodes(nodes, _ALL)
            )
        weakened: list[str] = []
        reread: set[str] = set()
        supported, ties = await self._supported_by(turns)
        for fact in supported:
            if fact.uuid in gone:
                continue
            tied = ties.get(fact.uuid, {})
            reread |= broken_holders(tied, set(turns))
            if supports_left(fact, tied, set(turns)):
                weakened.append(fact.uuid)
            else:
                gone[fact.uuid] = fact
        # A fact that is forgotten by itself must not be extracted from its turns again.
        reread.difference_update(*(gone[uuid].episodes for uuid in facts if uuid in gone))
        orphans = await self._orphans(turns, gone, nodes)
        gone_nodes = (*nodes, *orphans)
        stripped = tuple(node for node in records.values() if node not in gone_nodes)
        return Plan(
            turns=tuple(turns),
            facts=tuple(gone),
            weakened=tuple(weakened),
            nodes=gone_nodes,
            anchors=tuple(slugs),
            stripped=stripped,
            asked=(*turns, *facts, *nodes, *slugs),
            reread=tuple(sorted(reread)),
        )

    async def _supported_by(self, turns: Sequence[str]) -> tuple[list[Fact], Ties]:
        """Return the facts that turns support, alone or with others, and the ties of the facts."""
        if not turns:
            return [], {}
        facts = {fact.uuid: fact for fact in await self._client.facts_of_episodes(turns)}
        needing = await self._journal.ties.needing(turns)
        more = [uuid for uuid in needing if uuid not in facts]
        facts.update((fact.uuid, fact) for fact in await self._client.facts(more))
        return list(facts.values()), await self._journal.ties.of_facts([*facts])

    async def _orphans(
        self, turns: Sequence[str], gone: dict[str, Fact], nodes: Sequence[str]
    ) -> list[str]:
        touched = {end for fact in gone.values() for end in (fact.subject, fact.object)}
        if turns:
            for mentioned in (await self._client.mentioned_nodes(turns)).values():
                touched.update(mentioned)
        candidates = sorted(touched - set(nodes) - {self._self_node})
        if not candidates:
            return []
        mentions = await self._client.episodes_of_nodes(candidates)
        stay = [
            fact
            for fact in await self._client.facts_of_nodes(candidates, _ALL)
            if fact.uuid not in gone
        ]
        joined = {end for fact in stay for end in (fact.subject, fact.object)}
        return [
            node
            for node in candidates
            if node not in joined and set(mentions.get(node, ())) <= set(turns)
        ]

    async def _turns_losing_payload(self, plan: Plan) -> tuple[str, ...]:
        """Return the turns that stay and support a fact or mention a node that goes.

        The nodes and facts in their jobs are erased: running such a job again would restore them.
        """
        facts = await self._client.facts(list(plan.facts))
        turns = {turn for fact in facts for turn in fact.episodes}
        if plan.nodes:  # a node without facts
            mentioning = await self._client.episodes_of_nodes(list(plan.nodes))
            turns.update(*mentioning.values())
        return tuple(sorted(turns.union(plan.reread) - set(plan.turns)))

    async def _carry_out(self, plan: Plan, begin: Work[object]) -> tuple[str, ...]:
        """Run ``begin`` and remove what a plan names in one transaction; then erase it from files.

        Returns:
            As ``_erase_traces``.
        """
        # The index entry of a turn contains the words of its neighbours and of its facts.
        supports = {
            turn for fact in await self._client.facts(list(plan.facts)) for turn in fact.episodes
        }
        touched = {*plan.turns, *supports}
        neighbours = await self._journal.near([*touched], WINDOW_TURNS)
        dropped = set(plan.told).difference(plan.reread)
        renamed = await without_lost_names(
            self._client, self._journal, plan.turns, plan.nodes, dropped
        )
        changed_nodes = [*plan.nodes, *plan.stripped, *(node.uuid for node in renamed)]
        changes = [
            *(Change("episode", uuid) for uuid in sorted({*neighbours, *plan.turns})),
            *(Change("fact", uuid) for uuid in (*plan.facts, *plan.weakened)),
            *(Change("node", uuid) for uuid in dict.fromkeys(changed_nodes)),
        ]
        await self._indexer.know_near([*touched])
        weakened = await self._client.facts(list(plan.weakened))
        ties = await self._journal.ties.of_facts(list(plan.weakened))
        lost = set(plan.turns)
        days = {turn.occurred_at for turn in await self._journal.turns(list(plan.turns))}
        nodes = {node.uuid: node for node in await self._client.nodes(list(plan.stripped))}
        nodes.update((node.uuid, node) for node in renamed)
        change = GraphChange(
            nodes=[_strip(node) if uuid in plan.stripped else node for uuid, node in nodes.items()],
            facts=[
                self._without_turns(fact, ties.get(fact.uuid, {}), lost, days) for fact in weakened
            ],
            gone_facts=plan.facts,
            gone_episodes=plan.turns,
            gone_nodes=plan.nodes,
        )
        anchors = [name for slug in plan.anchors for name in (slug, f"anchor:{slug}")]

        def forget_rows(db: Connection) -> None:
            record_rows.forget(db, plan.turns, plan.facts, plan.nodes)
            tie_rows.forget(db, plan.facts, plan.turns)
            turns.forget(db, plan.turns)
            forget_merges(db, plan.nodes)
            usage.forget(db, [*plan.turns, *plan.facts, *plan.nodes, *anchors])
            # After the turns: a follower can add no row about a turn that is gone.
            feature_tables.forget(db, plan.gone)

        journal = self._journal
        async with self._indexer.draining, journal.transaction():
            await journal.write(begin, secure=True)
            await self._client.apply(change, partial(log_changes, changes=changes), forget_rows)
            # A forgotten statement closes nothing: facts that only it closed are open again.
            settled = await self._pipeline.resettle(plan.turns, (*plan.facts, *plan.weakened))
            rows = await journal.bin.holding(plan.asked)
            is_restorable = any(row.asked == plan.asked for row in rows)
            await journal.closings.forget(
                list({*plan.turns, *plan.asked}),
                list({*plan.facts, *plan.asked}),
                restorable=is_restorable,
            )
            await journal.set_meta(_TRACES, await self._traces(plan, copies=not is_restorable))
        journal.records.touch()
        await self._worker.forgotten()
        await self._pipeline.keep_vectors(settled)
        return await self._erase_traces()

    async def _traces(self, plan: Plan, *, copies: bool) -> str:
        """Return the note about files to erase from, including those of the present note."""
        waiting = _Traces.load(await self._journal.get_meta(_TRACES))
        anchors = (*waiting.anchors, *plan.anchors)
        return _Traces(tuple(dict.fromkeys(anchors)), copies or waiting.copies).dump()

    async def _erase_traces(self) -> tuple[str, ...]:
        """Erase forgotten text from anchors' files, indexes and copies.

        Returns:
            Those that still hold some of it. The note stays until none is left, so that the next
            call tries again.
        """
        traces = _Traces.load(await self._journal.get_meta(_TRACES))
        pending: list[str] = []
        for slug in traces.anchors:
            try:
                await self._anchors.delete(slug, missing_ok=True)
            except StoreError:
                pending.append(f"anchor:{slug}")
        pending += await self._indexer.purge()
        if traces.copies:
            try:
                await self._journal.erase_copies()
            except StoreError:
                pending.append("a copy from before an upgrade or a move")
        if not pending:
            await self._journal.set_meta(_TRACES, "")
        return tuple(pending)

    def _without_turns(
        self,
        fact: Fact,
        ties: Mapping[str, frozenset[str]],
        lost: set[str],
        days: set[datetime],
    ) -> Fact:
        """Return a fact without the support of lost turns.

        A day that such a turn gave it goes too: its first remaining turn dates it again.
        """
        if fact.valid_at in days and is_undated(self._client.entity.group, fact):
            fact = replace(fact, valid_at=None)
        return replace(fact, episodes=supports_left(fact, ties, lost))


@dataclass(frozen=True, slots=True)
class _Traces:
    """The files that still hold forgotten text, beside the indexes.

    Attributes:
        anchors: Slugs.
        copies: Whether copies of the memory from before an upgrade or a move are erased too.
    """

    anchors: tuple[str, ...] = ()
    copies: bool = False

    @classmethod
    def load(cls, noted: str | None) -> _Traces:
        return TypeAdapter(cls).validate_json(noted) if noted else cls()

    def dump(self) -> str:
        return json.dumps(asdict(self))


def _strip(node: Node) -> Node:
    """Return a record's node as a plain node: only its names and facts stay."""
    return replace(node, kind="Thing", summary="", tags=(), attributes={})


class Manner(TypedDict, total=False):
    """How to forget.

    Attributes:
        soft: It can be restored for a while (``forgetting.restorable_d``); nothing shows it
            meanwhile.
        why, by: Stored with it, 500 characters at most; an empty ``by`` is the actor.
        along: Kinds of mentioning items that go too: ``turns``, ``facts``, ``nodes``, ``anchors``.
    """

    soft: bool
    why: str
    by: str
    along: Sequence[MentionKind]


class Forgetting:
    """Forgetting and restoring by one actor."""

    def __init__(
        self, forgetter: Forgetter, actor: str, check: Check, redactor: Callable[[], KeyedRedactor]
    ) -> None:
        self._forgetter = forgetter
        self._actor = actor
        self._check = check
        self._redactor = redactor

    async def forget(
        self, ids: Sequence[str], *, dry_run: bool = True, **how: Unpack[Manner]
    ) -> Forgotten:
        """Do what ``Memory.forget`` says."""
        check_keywords("forget", how, Manner)
        by = how.get("by", "")
        why = how.get("why", "")
        check_length("by", by, 0, MAX_WHY)
        check_length("why", why, 0, MAX_WHY)
        clean = self._redactor().text
        softly = Softly(clean(by) or self._actor, clean(why)) if how.get("soft") else None
        whole = await self._forgetter.whole(ids)
        resolved = await self._forgetter.with_names(whole, dry_run=dry_run)
        receipt = await self._forgetter.forget(
            resolved, dry_run=dry_run, check=self._check, softly=softly, along=how.get("along", ())
        )
        return replace(receipt, by_name=dry_run and resolved != whole)

    async def tend(self) -> None:
        """Erase expired rows of the bin (``Bin.expire``) and forgotten text left in files."""
        await self._forgetter.tend()

    async def look_at_clock(self) -> ClockReport:
        """Compare the clock with the latest entry."""
        return await self._forgetter.bin.look_at_clock()

    async def list(self) -> list[Restorable]:
        """Return what can be restored, the latest first."""
        return await self._forgetter.bin.list()

    async def names(self, ids: Sequence[str]) -> list[str]:
        """Return the names of the nodes among some ids, names or slugs, aliases included."""
        return await self._forgetter.names(await self._forgetter.whole(ids))

    async def get(self, id: str, *, with_mentions: bool = True) -> Restorable:
        """Return an item of ``list`` by its id, with its mentions; NotFound as ``restore``."""
        await self._forgetter.whole([])
        return await self._forgetter.restorable(id, with_mentions=with_mentions)

    async def restore(self, id: str) -> Restored:
        """Restore an item of ``list``, by its id or the first 8 or more characters of it.

        Raises:
            NotFound: This entity has no such item, or its time is over.
            InvalidRequest: Something that it needs was forgotten later; nothing was changed.
        """
        await self._forgetter.whole([])
        return await self._forgetter.restore(id, self._check)


def _lines(plan: Plan, items: Sequence[ShownItem]) -> tuple[str, ...]:
    """Return the first items of each kind, a line each with its id."""
    lines: list[str] = []
    for kind in ("node", "fact", "turn", "anchor"):
        first = [item for item in items if item.kind == kind][:_MOST_LINES]
        lines += [f"{kind} {one_line(item.text, _LINE_LENGTH)} [{item.id}]" for item in first]
    lines += [f"row of a feature [{row}]" for row in plan.rows[:_MOST_LINES]]
    more = len(plan.gone) + len(plan.anchors) - len(lines)
    if more > 0:
        lines.append(f"… and {more} more")
    return tuple(lines)


def _begin(db: Connection, plan: Plan, rows: Sequence[Binned]) -> None:
    """Erase the payloads of turns that stay, queue turns to be read again, and write the bin.

    InvalidRequest when the job of such a turn has not ended.
    """
    for turn in plan.told:
        if turn not in plan.reread:
            drop_given(db, turn)
    read_again(db, plan.reread, plan.turns)
    rewrite(db, rows)
