"""From journal to graph and indexes: extract, plan, embed, write, index.

Every step can be run again.

One transaction writes the results of a batch of jobs: closings, entries of the change log, nodes,
facts, episodes, records, and the state of the jobs. The indexes and a published graph follow the
log. No model is called within the transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, tzinfo
from functools import partial

from pps.config.relation_files import shipped_relations
from pps.core import bounds
from pps.core.ids import is_uuid
from pps.core.kinds import NO_KINDS, Kinds
from pps.core.relation_table import Relations
from pps.core.sql import Connection
from pps.core.text import fold
from pps.core.time import now
from pps.core.values import Closing, Fact, Node, Skipped, Turn, spoken
from pps.graph.graph_store import GraphChange
from pps.index.indexes import EntityIndexes
from pps.ingest.batch import Batch, TurnOutcome
from pps.ingest.budget import Costs
from pps.ingest.drafts import tags_in
from pps.ingest.indexer import NOTHING_WRITTEN, Indexer, Written
from pps.ingest.linking import Linker, draft_of, plan_made, typed_node
from pps.ingest.passage_vectors import PassageVectors
from pps.ingest.rules import extract
from pps.ingest.slots import Settled, Slots
from pps.ingest.statements import Drafts, pair_of, plan_drafts, sentence_of
from pps.ingest.supersession import CORRECTION_REACH, end_of_the_past, speaks_of_the_past
from pps.ingest.support import OldWords, load_old_words, plan_rewording, said_by, with_days
from pps.ingest.worker import End
from pps.isolation.client import GraphitiChanges, IsolatedGraphitiClient
from pps.journal import closing_rows, tie_rows
from pps.journal.change_log import log_changes
from pps.journal.db import Work, nothing
from pps.journal.entries import Change, Job, JobPayload, JobResult, Reading
from pps.journal.job_queue import read_again
from pps.journal.journal import Journal
from pps.journal.record_rows import put_records

_FACTS_OF_A_NODE = 2_000
_SAME_TEXT = 8
_RELATIONS_AT_ONCE = 500
_JOBS_AHEAD = 256
_FACTS_AHEAD = 1_000
"""Waiting jobs, and facts in them, that are embedded while the jobs before them are written."""


class Pipeline:
    """Carries batches of jobs of one entity into its graph and indexes."""

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexes: EntityIndexes,
        indexer: Indexer,
        vectors: PassageVectors | None,
        costs: Costs,
        kinds: Kinds = NO_KINDS,
        relations: Relations | None = None,
    ) -> None:
        """``relations`` is the installation's table, the shipped one when None."""
        self._entity = client.entity
        self._client = client
        self._journal = journal
        self._indexes = indexes
        self._indexer = indexer
        self._vectors = vectors
        self._costs = costs
        self._kinds = kinds
        self._relations = relations or shipped_relations()
        self._slots = Slots(client, journal)
        self._linker = Linker(client, journal)
        self._written = NOTHING_WRITTEN
        self._last_job: int | None = None

    async def save(self, jobs: Sequence[Job], end: End) -> None:
        """Write everything about the jobs' turns but a model's reading; end the jobs with it.

        All is one transaction. Call ``index`` afterwards. A text that the embedder refuses raises
        before anything is written.

        Args:
            jobs: In the order of receipt.
            end: Returns the work that notes the end of the jobs, from their results.

        Raises:
            StoreUnavailable, ModelUnavailable: Safe to run again; nothing is doubled.
        """
        drafts = {job.id: _drafts(job, self._journal.zone) async for job in _yielding(jobs)}
        batch, outcomes = await self._planned(jobs, drafts)
        turns = [job.turn for job in jobs]
        retried = [job.turn.uuid for job in jobs if job.attempts > 1]
        settled = await self._slots.settle(batch, retried)
        end_jobs = end([(job.id, _result(job, outcomes[job.id])) for job in jobs])
        links_follow = await self._linker.is_linked_to(batch)

        def after(db: Connection) -> None:
            if batch.corrections or closing_rows.any_correction_waits(db):
                closing_rows.wait_for_fact(db, batch.corrections, [turn.uuid for turn in turns])
            if batch.reread:
                read_again(db, sorted(batch.reread), sorted(batch.reworded))
            if not links_follow:
                end_jobs(db)

        await self._commit(batch, turns, settled, retried, after)
        self._last_job = jobs[-1].id if len(jobs) > 1 else None
        if links_follow:
            await self.link(batch.fresh)
            await self._journal.write(end_jobs)
        await self.project_relations()

    async def index(self) -> None:
        """Index what was written; meanwhile embed the texts of the waiting jobs."""
        written = self._written
        last_job = self._last_job
        self._written = NOTHING_WRITTEN
        self._last_job = None
        if self._vectors and last_job:
            embedding_ahead = self._vectors.ahead(partial(self._waiting_texts, last_job))
        else:
            embedding_ahead = nullcontext()
        async with embedding_ahead:
            await self._indexer.drain(written)

    async def read(self, job: Job) -> JobResult:
        """Let Graphiti's own pipeline read a turn whose episode is saved; return the job's totals.

        The tokens used are noted, also when it fails.

        Raises:
            BudgetSpent: No model was called.
        """
        await self._costs.check()
        try:
            changes = await self._extract_by_model(job)
        finally:
            await self._costs.note(job.id, self._client.take_tokens_used())
        saved = job.result or JobResult(tags=job.turn.tags)
        return replace(
            saved, nodes=saved.nodes + len(changes.nodes), facts=saved.facts + len(changes.facts)
        )

    async def resettle(self, turns: Sequence[str] = (), facts: Sequence[str] = ()) -> list[Fact]:
        """Recompute the closings in the slots of some facts, and those that some turns cause.

        Called after forgetting, restoring and merging. Safe to run again; the caller holds the
        worker and ``Indexer.draining``.

        Args:
            turns: Turns that were forgotten, restored or changed.
            facts: Ids of facts that were forgotten, restored, moved to another node or lost a
                support.

        Returns:
            The facts to pass to ``keep_vectors`` before the indexes follow.
        """
        batch = self._batch()
        closed = await self._journal.closings.by_facts(facts)
        ids = dict.fromkeys((*facts, *(closing.fact for closing in closed)))
        stored = await with_days(await self._client.facts(list(ids)), self._client, self._journal)
        batch.stored = {fact.uuid: fact for fact in stored}
        settled = await self._slots.settle(batch, turns, [*ids])
        await self._write_settled(batch, settled)
        return [*batch.facts.values(), *batch.stored.values()]

    async def keep_vectors(self, facts: Sequence[Fact]) -> None:
        """Reuse the indexed vectors of closed or opened facts: no model is called for them."""
        self._indexer.know(await self._indexer.known_vectors((), facts, ()))

    async def _save_settled(self, batch: Batch, settled: Settled) -> None:
        """Write closed and opened facts with their closings; their indexed vectors are reused."""
        await self.keep_vectors([*batch.facts.values(), *batch.stored.values()])
        async with self._indexer.draining:
            await self._write_settled(batch, settled)

    async def _write_settled(self, batch: Batch, settled: Settled) -> None:
        changed = list(batch.facts.values())
        marked = [
            *(Change("fact", fact.uuid) for fact in changed),
            *(Change("episode", turn) for fact in changed for turn in fact.episodes),
        ]

        def before(db: Connection) -> None:
            _note_closings(db, batch, settled, ())
            log_changes(db, marked)

        change = GraphChange(facts=changed, episodes=list(batch.restated.values()))
        await self._client.apply(change, before, partial(_erase_stale_closings, settled=settled))

    async def _put_right(self) -> None:
        """Plan corrections again that were ingested before the turns that they correct."""
        for turn in await self._journal.closings.corrections_due():
            job = await self._journal.queue.of_turn(turn)
            if job is not None and (job.state in ("done", "failed") or job.stage == "read"):
                await self.save([replace(job, attempts=max(2, job.attempts))], lambda _: nothing)
                await self.index()

    def _batch(self) -> Batch:
        return Batch(self._entity, now(), kinds=self._kinds, relations=self._relations)

    async def settle(self) -> float | None:
        await self._put_right()
        await self._journal.expire_bin(now())
        return await self._indexer.settle()

    async def _planned(
        self, jobs: Sequence[Job], drafts: dict[int, Drafts]
    ) -> tuple[Batch, dict[int, TurnOutcome]]:
        """Plan again until every fact in the plan has been looked up in the graph."""
        known = await self._known(list(drafts.values()), jobs)
        before = await self._said_before(known, jobs, drafts)
        old = await load_old_words(self._client, self._journal, known, jobs)
        looked_up: set[str] = set()
        while True:
            batch = known.copy()
            outcomes = {
                job.id: self._plan(batch, job, drafts[job.id], old, before.get(job.id, ()))
                async for job in _yielding(jobs)
            }
            missing = set(batch.facts) - looked_up - set(known.stored)
            if not missing:
                return batch, outcomes
            looked_up |= missing
            stored = await self._client.facts(sorted(missing))
            if not stored:
                return batch, outcomes
            known.stored.update((fact.uuid, fact) for fact in stored)

    async def _said_before(
        self, known: Batch, jobs: Sequence[Job], drafts: Mapping[int, Drafts]
    ) -> dict[int, list[Turn]]:
        """Return job → earlier turns of its session, for jobs with a correction.

        The facts that those turns state are loaded into ``known``.
        """
        before: dict[int, list[Turn]] = {}
        turns: set[str] = set()
        for job in jobs:
            if drafts[job.id].corrections:
                earlier = await self._journal.closings.said_before(job.turn, CORRECTION_REACH)
                before[job.id] = earlier
                turns.update(turn.uuid for turn in earlier)
        if turns:
            facts = await self._client.facts_of_episodes(list(turns))
            known.stored.update((fact.uuid, fact) for fact in facts)
            ends = {end for fact in facts for end in (fact.subject, fact.object)}
            nodes = await self._client.nodes(sorted(ends - set(known.known)))
            known.known.update((node.uuid, node) for node in nodes)
            for node in nodes:
                for name in (node.name, *node.aliases):
                    known.names.setdefault(fold(name), node.uuid)
        return before

    def _plan(
        self,
        batch: Batch,
        job: Job,
        drafts: Drafts,
        old: Mapping[str, OldWords],
        said_before: Sequence[Turn],
    ) -> TurnOutcome:
        outcome = plan_drafts(batch, job.turn, drafts, said_before)
        if _is_read_by_rules(job.payload):
            outcome.skipped = [
                skipped
                for skipped in outcome.skipped
                if not _is_guess_of_rules(skipped, job.payload)
            ]
        self._linker.plan(batch, job, outcome)
        old_words = old.get(job.turn.uuid)
        if old_words is not None:
            plan_rewording(batch, job, old_words)
        if len(job.turn.tags) >= bounds.MAX_TAGS:
            left_out = [tag for tag in tags_in(job.turn.content) if fold(tag) not in job.turn.tags]
            outcome.skipped += [
                Skipped(f"#{tag}", f"a text has at most {bounds.MAX_TAGS} tags") for tag in left_out
            ]
        if job.attempts > 1:
            # An interrupted attempt may have created names without linking texts to them.
            batch.fresh.update(map(fold, (*_names(drafts), *self._linker.names([job]))))
        return outcome

    async def _known(self, drafts: Sequence[Drafts], jobs: Sequence[Job]) -> Batch:
        """Return a batch with the nodes that the drafts name and the facts that they may change."""
        known = self._batch()
        names = {fold(name): name for of_job in drafts for name in _names(of_job)}
        names |= {fold(name): name for name in self._linker.names(jobs)}
        resolved = await self._journal.resolve(list(names.values()))
        minted = {
            folded: known.new_node_id(name)
            for folded, name in names.items()
            if folded not in resolved
        }
        nodes = await self._client.nodes(
            list(dict.fromkeys([*resolved.values(), *minted.values(), *self._linker.ids(jobs)]))
        )
        known.known = {node.uuid: node for node in nodes}
        ids = minted | resolved
        known.names = {folded: uuid for folded, uuid in ids.items() if uuid in known.known}
        for node in nodes:
            for name in (node.name, *node.aliases):
                known.names.setdefault(fold(name), node.uuid)
        await self._load_stated(known, drafts)
        await self._linker.load(known, jobs)
        return known

    async def _load_stated(self, known: Batch, drafts: Sequence[Drafts]) -> None:
        """Load the facts that the drafts may restate, and those that they retract or replace."""
        stated = [fact for of_job in drafts for fact in of_job.facts]
        replaced = {name for fact in stated for name in fact.invalidates}
        joining: set[tuple[str, str, str]] = set()
        pairs: set[str] = set()
        for fact in stated:
            subject = known.node_named(fact.subject)
            object_ = known.node_named(fact.object)
            if subject and object_ is not None:
                joining.add((subject, fact.relation, object_))
        for name in replaced:
            pair = pair_of(name)
            subject = known.node_named(pair[0]) if pair else None
            if pair and subject:
                pairs.add(name)
                joining.add((subject, pair[1], ""))
        ids = list(await self._journal.facts_joining(list(joining)))
        ids += filter(is_uuid, replaced)
        ids += [retraction.fact for of_job in drafts for retraction in of_job.retractions]
        texts = replaced - set(ids) - pairs
        for text in texts:
            ids += [hit.owner for hit in await self._indexes.text_search("facts", text, _SAME_TEXT)]
        facts = await self._client.facts(list(dict.fromkeys(ids))) if ids else []
        ends: set[str] = set()
        for fact in stated:
            if not texts.isdisjoint(fact.invalidates):
                ends.update(filter(None, map(known.node_named, (fact.subject, fact.object))))
        if ends:
            facts += await self._client.facts_of_nodes(sorted(ends), _FACTS_OF_A_NODE)
        known.stored.update((fact.uuid, fact) for fact in facts)

    async def write(self, batch: Batch) -> None:
        """Write and index a planned batch that belongs to no job."""
        await self._commit(batch)
        await self.index()
        await self.link(batch.fresh)

    async def _commit(
        self,
        batch: Batch,
        turns: Sequence[Turn] = (),
        settled: Settled | None = None,
        retried: Sequence[str] = (),
        after: Work[object] = nothing,
    ) -> None:
        """Embed the texts of a planned batch, then write it in one transaction.

        The transaction writes closings, ties, the change log, the graph, records and links. It runs
        ``after`` at its end.
        """
        nodes = list(batch.nodes.values())
        facts = list(batch.facts.values())
        # Records are embedded later: an unavailable model must not delay saving them.
        kinds = self._indexer.records.kinds
        names = [node.name for node in nodes if node.kind not in kinds]
        if self._vectors:  # one call for all that the indexes need next
            await self._vectors.of(
                [*names, *(fact.text for fact in facts)],
                soon=[spoken(turn) for turn in turns if turn.kind not in self._kinds],
            )
        records = {
            turn.uuid: batch.records[turn.uuid] for turn in turns if turn.uuid in batch.records
        }
        texts = {records[turn.uuid]: turn.content for turn in turns if turn.uuid in records}
        positions = range(0)

        def before_graph(db: Connection) -> None:
            nonlocal positions
            if settled is not None:
                _note_closings(db, batch, settled, retried)
            if batch.ties:
                tie_rows.put(db, batch.ties)
            positions = log_changes(db, _changes(batch, texts))

        def after_graph(db: Connection) -> None:
            if records or batch.links:
                put_records(db, records, batch.links)
            if settled is not None:
                _erase_stale_closings(db, settled)
            after(db)

        change = GraphChange(
            nodes=nodes,
            facts=facts,
            parted=batch.parted,
            episodes=[*batch.episodes.values(), *batch.restated.values()],
            mentions=list(batch.mentions),
        )
        async with self._indexer.draining:
            await self._client.apply(change, before_graph, after_graph)
        self._written = Written(positions, batch.nodes, batch.facts, texts)

    async def _waiting_texts(self, last_job: int) -> list[str]:
        """Return the facts and then the texts of the jobs after one."""
        jobs = await self._journal.queue.after("save", last_job, _JOBS_AHEAD, _FACTS_AHEAD)
        facts = [sentence_of(fact) for job in jobs for fact in job.payload.facts]
        return [*facts, *(spoken(job.turn) for job in jobs)]

    async def link(self, fresh: Iterable[str]) -> None:
        """Write relations and mentions of texts that link to names which now exist."""
        linked = await self._linker.waiting(fresh) if fresh else None
        if linked:
            await self.write(linked)

    async def project_relations(self) -> None:
        """Write relations between records into the graph that it lacks or has in an older state."""
        while waiting := await self._journal.records.pending(_RELATIONS_AT_ONCE):
            batch = Batch(self._entity, now())
            relations = [pending.relation for pending in waiting]
            ends = dict.fromkeys(
                end for relation in relations for end in (relation.source, relation.target)
            )
            batch.known = {node.uuid: node for node in await self._client.nodes(list(ends))}
            stored = await self._client.facts([relation.id for relation in relations])
            batch.stored = {fact.uuid: fact for fact in stored}
            for pending in waiting:
                plan_made(batch, pending)
            if batch.facts:
                await self.write(batch)
            await self._journal.records.projected(waiting)

    async def write_nodes(self, nodes: Sequence[Node]) -> None:
        """Write nodes that come from no turn, such as the entity's own."""
        batch = Batch(self._entity, now())
        for node in nodes:
            batch.put_node(node)
        await self.write(batch)

    async def _extract_by_model(self, job: Job) -> GraphitiChanges:
        """Let Graphiti's own pipeline read a turn; index and return its changes."""
        changes = await self._client.extract_episode(job.turn.uuid)
        await self._undo_changes_of_records(changes.nodes)
        await self._support_again(job.turn.uuid)
        await self._settle_model(job.turn, changes)
        await self._journal.log_changes(
            [
                *(Change("node", uuid) for uuid in changes.nodes),
                *(Change("fact", uuid) for uuid in changes.facts),
                Change("episode", job.turn.uuid),
            ]
        )
        nodes = await self._client.nodes(list(changes.nodes))
        await self._indexer.drain()
        await self.link({fold(node.name) for node in nodes})
        return changes

    async def _undo_changes_of_records(self, ids: Sequence[str]) -> None:
        """Reset records that a model changed; other nodes of a record's kind become Things."""
        records = await self._journal.records.read(lambda rows: rows.find(ids))
        reset: list[Node] = []
        for node in await self._client.nodes(list(ids)):
            record = records.get(node.uuid)
            if record is not None:
                reset.append(typed_node(node, record.tags, draft_of(record)))
            elif node.kind in self._kinds:
                reset.append(replace(node, kind="Thing"))
        if reset:
            await self._client.save_nodes(reset, {})

    async def _settle_model(self, turn: Turn, changes: GraphitiChanges) -> None:
        """Close and open the facts of the slots that a model's reading of a turn changed.

        Graphiti closes the facts that the model calls contradicted, in reading order. In a
        single-valued slot the times of the turns decide instead; elsewhere Graphiti's closing stays
        and is noted with the turn.
        """
        batch = self._batch()
        facts = await self._client.facts(list(changes.facts))
        batch.stored = {fact.uuid: fact for fact in facts}
        for fact in facts:
            relation = batch.relations.find(fact.relation)
            is_single = relation is not None and relation.single
            if fact.invalid_at is None:
                if is_single and speaks_of_the_past(fact.text):
                    end = end_of_the_past(fact.text, fact.valid_at, turn.occurred_at)
                    batch.own_ends[fact.uuid] = end
                    batch.put_fact(replace(fact, invalid_at=end))
                continue
            slot_mates = await self._slot_mates(batch, fact) if is_single else []
            closer = _closed_by(fact, [*facts, *slot_mates])
            known = changes.before.get(fact.uuid)
            if known is not None and known.invalid_at == fact.invalid_at:
                continue
            if known is None and closer is None:
                continue  # its own words name its end
            own_end = await self._own_end_before(fact, known)
            batch.own_ends[fact.uuid] = own_end
            batch.put_fact(fact)
            if not is_single:
                by_fact = closer.uuid if closer else ""
                batch.closings[fact.uuid] = [
                    Closing(fact.uuid, by_fact, turn.uuid, "explicit", fact.invalid_at, batch.at)
                ]
        settled = await self._slots.settle(batch, facts=changes.facts)
        await self._save_settled(batch, settled)

    async def _slot_mates(self, batch: Batch, fact: Fact) -> list[Fact]:
        """Return the facts of the single-valued slot of a fact."""
        relation = batch.relations.find(fact.relation)
        keys = batch.relations.keys(relation) if relation else ()
        return await self._client.facts(await self._journal.facts_in_slots([(fact.subject, keys)]))

    async def _own_end_before(self, fact: Fact, known: Fact | None) -> datetime | None:
        """Return the end that a fact had without closings before the model read the turn."""
        if known is None or known.invalid_at is None:
            return None
        for closing in await self._journal.closings.of([fact.uuid]):
            if closing.at == known.invalid_at:
                return closing.own_end
        return known.invalid_at

    async def _support_again(self, turn: str) -> None:
        """Reopen retracted facts that the model found in the turn; Graphiti leaves them ended."""
        episodes = await self._client.episodes([turn])
        ids = [fact for episode in episodes for fact in episode.facts]
        changed: list[Fact] = []
        for fact in await self._client.facts(ids):
            supported = said_by(fact, turn)
            if turn in fact.episodes and supported != fact:
                changed.append(supported)
        await self._client.save_facts(changed, {})


def _note_closings(db: Connection, batch: Batch, settled: Settled, retried: Sequence[str]) -> None:
    """Store closings and endings; the endings of a retried turn replace its earlier ones."""
    endings = {
        turn: of_turn for turn, of_turn in batch.endings.items() if of_turn or turn in retried
    }
    if endings or settled.closings:
        closing_rows.note(db, endings, settled.closings)


def _erase_stale_closings(db: Connection, settled: Settled) -> None:
    """Erase stored closings that are no longer valid."""
    if settled.stale:
        closing_rows.keep_only(db, settled.facts, settled.closings)


def _closed_by(fact: Fact, others: Sequence[Fact]) -> Fact | None:
    """Return the fact whose beginning is the end that Graphiti gave another."""
    for other in others:
        if other.uuid != fact.uuid and other.valid_at == fact.invalid_at:
            return other
    return None


def _changes(batch: Batch, records: Iterable[str]) -> list[Change]:
    """Return every id whose index entry changes.

    The entry of a new turn was logged when it was received; it is logged again if it has facts.
    """
    episodes = [
        uuid for uuid, episode in batch.episodes.items() if episode.facts or uuid in batch.reworded
    ]
    return [
        *(Change("node", uuid) for uuid in dict.fromkeys((*batch.nodes, *records))),
        *(Change("fact", uuid) for uuid in batch.facts),
        *(Change("episode", uuid) for uuid in episodes),
        *(Change("episode", uuid) for uuid in batch.restated),
    ]


async def _yielding(jobs: Sequence[Job]) -> AsyncIterator[Job]:
    """Yield jobs, and let other tasks run in between: planning a batch can take 0.25 s."""
    for job in jobs:
        yield job
        await asyncio.sleep(0)


def _drafts(job: Job, zone: tzinfo) -> Drafts:
    """Return the drafts of a job: the caller's, the command's and, when rules apply, theirs."""
    payload = job.payload
    read = payload.read or Reading()
    nodes = (*payload.nodes, *read.nodes)
    facts = (*payload.facts, *read.facts)
    endings = (*payload.endings, *read.endings)
    corrections = payload.corrections
    if _is_read_by_rules(payload):
        by_rules = extract(job.turn, zone)
        nodes = (*nodes, *by_rules.nodes)
        facts = (*facts, *by_rules.facts)
        endings = (*endings, *by_rules.endings)
        corrections = (*corrections, *by_rules.corrections)
    return Drafts(nodes, facts, endings, corrections, payload.retractions)


def _is_guess_of_rules(skipped: Skipped, payload: JobPayload) -> bool:
    """Tell whether the rules guessed the skipped draft, so that the caller need not hear of it.

    The rules know neither the facts that could be closed nor the names that are taken.
    """
    if skipped.what in ("invalidates", "correction"):
        return True
    return skipped.what.startswith("alias ") and not payload.nodes


def _is_read_by_rules(payload: JobPayload) -> bool:
    """Tell whether the rules read a turn: it has no facts of the caller, and they are configured.

    They also read it while the extraction command is unavailable.
    """
    return (payload.extraction == "rules" or payload.rules_meanwhile) and not payload.facts


def _names(drafts: Drafts) -> list[str]:
    names = [name for draft in drafts.nodes for name in (draft.name, *draft.aliases)]
    for fact in drafts.facts:
        names += [fact.subject, fact.object]
        names += [pair[0] for pair in map(pair_of, fact.invalidates) if pair]
    for ending in drafts.endings:
        names += filter(None, (ending.subject, ending.object))
    for correction in drafts.corrections:
        names += filter(None, (correction.object, correction.instead))
    return names


def _result(job: Job, outcome: TurnOutcome) -> JobResult:
    left_out = job.payload.read.dropped if job.payload.read else ()
    return JobResult(
        nodes=outcome.nodes,
        facts=outcome.facts,
        edges=outcome.edges,
        tags=job.turn.tags,
        skipped=(*left_out, *outcome.skipped),
        record=outcome.record,
        title=outcome.title,
    )
