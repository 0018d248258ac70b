"""From journal to graph and indexes: extract, plan, embed, write, index; every step can be run again.

One transaction writes what the jobs of a batch bring: closings, entries of the change log, nodes, facts, episodes, records, and that
the jobs are done. The indexes and a published graph follow the log. No model is asked within the transaction.
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
from pps.ingest.statements import Drafts, pair_of, plan_drafts, said
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
_AHEAD, _FACTS_AHEAD = 256, 1_000
"""Jobs, and about as many given facts with them, whose words are embedded while those before them are written."""


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
        """Write what the jobs' turns bring, all but what a model reads in them, and end the jobs in one transaction.

        ``index`` brings it into the indexes. A text that the model cannot embed is met before anything is written.

        Args:
            jobs: In the order of receipt.
            end: Returns what the journal notes of the jobs, from their results.

        Raises:
            StoreUnavailable, ModelUnavailable: Safe to run again; nothing is doubled.
        """
        drafts = {job.id: _drafts(job, self._journal.zone) async for job in _one_by_one(jobs)}
        batch, outcomes = await self._planned(jobs, drafts)
        turns = [job.turn for job in jobs]
        again = [job.turn.uuid for job in jobs if job.attempts > 1]
        settled = await self._slots.settle(batch, again)
        ended = end([(job.id, _result(job, outcomes[job.id])) for job in jobs])

        def noted(db: Connection) -> None:
            _note_corrections(db, batch, [turn.uuid for turn in turns])
            if batch.reread:
                read_again(db, sorted(batch.reread), sorted(batch.reworded))

        links_follow = await self._linker.is_linked_to(batch)
        after = noted if links_follow else in_turn(noted, ended)
        await self._commit(batch, turns, settled, again, after)
        self._last_job = jobs[-1].id if len(jobs) > 1 else None
        if links_follow:
            await self.link(batch.fresh)
            await self._journal.write(ended)
        await self.project_relations()

    async def index(self) -> None:
        """Bring what was written into the indexes; meanwhile the words of the jobs that wait are embedded."""
        written = self._written
        last_job = self._last_job
        self._written = NOTHING_WRITTEN
        self._last_job = None
        coming = (
            self._vectors.ahead(partial(self._coming, last_job))
            if self._vectors and last_job
            else nullcontext()
        )
        async with coming:
            await self._indexer.drain(written)

    async def read(self, job: Job) -> JobResult:
        """Let Graphiti's own pipeline read a turn whose episode is saved; return what the job made in all.

        What it took is noted, also when it failed.

        Raises:
            BudgetSpent: Nothing was asked.
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
        """Let the slots of some facts, and what some turns closed, be as what is stated now has them.

        For what is no turn's work: forgetting, restoring, merging. Safe to run again; the caller holds the worker and
        ``Indexer.draining``.

        Args:
            turns: Those that were forgotten, put back or changed.
            facts: Ids of facts that were forgotten, put back, moved to another node or lost a support.

        Returns:
            What ``keep_vectors`` takes before the indexes follow.
        """
        batch = self._batch()
        closed = await self._journal.closings.by_facts(facts)
        ids = dict.fromkeys((*facts, *(closing.fact for closing in closed)))
        found = await with_days(await self._client.facts(list(ids)), self._client, self._journal)
        batch.stored = {fact.uuid: fact for fact in found}
        settled = await self._slots.settle(batch, turns, [*ids])
        await self._write_settled(batch, settled)
        return [*batch.facts.values(), *batch.stored.values()]

    async def keep_vectors(self, facts: Sequence[Fact]) -> None:
        """Let facts that were closed or opened keep the vectors that the indexes have: no model is asked for them."""
        self._indexer.know(await self._indexer.known_vectors((), facts, ()))

    async def _save_settled(self, batch: Batch, settled: Settled) -> None:
        """Write facts that were closed or opened, and their closings; the indexes keep the vectors that they have."""
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
        """Plan the corrections again that came in before what they are about."""
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
        """Plan until the plan needs no fact that was not looked up in the graph."""
        known = await self._known(list(drafts.values()), jobs)
        before = await self._said_before(known, jobs, drafts)
        old = await load_old_words(self._client, self._journal, known, jobs)
        looked_up: set[str] = set()
        while True:
            batch = known.copy()
            outcomes = {
                job.id: self._plan(batch, job, drafts[job.id], old, before.get(job.id, ()))
                async for job in _one_by_one(jobs)
            }
            missing = set(batch.facts) - looked_up - set(known.stored)
            if not missing:
                return batch, outcomes
            looked_up |= missing
            found = await self._client.facts(sorted(missing))
            if not found:
                return batch, outcomes
            known.stored.update((fact.uuid, fact) for fact in found)

    async def _said_before(
        self, known: Batch, jobs: Sequence[Job], drafts: Mapping[int, Drafts]
    ) -> dict[int, list[Turn]]:
        """Return job → what its session said before a correction in it; load the facts that those turns state."""
        before: dict[int, list[Turn]] = {}
        for job in jobs:
            if drafts[job.id].corrections:
                before[job.id] = await self._journal.closings.said_before(
                    job.turn, CORRECTION_REACH
                )
        turns = list({turn.uuid for some in before.values() for turn in some})
        if turns:
            facts = await self._client.facts_of_episodes(turns)
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
            outcome.skipped = [one for one in outcome.skipped if not _only_tried(one, job.payload)]
        self._linker.plan(batch, job, outcome)
        if words := old.get(job.turn.uuid):
            plan_rewording(batch, job, words)
        if len(job.turn.tags) >= bounds.MAX_TAGS:
            left_out = [tag for tag in tags_in(job.turn.content) if fold(tag) not in job.turn.tags]
            outcome.skipped += [
                Skipped(f"#{tag}", f"a text has at most {bounds.MAX_TAGS} tags") for tag in left_out
            ]
        if (
            job.attempts > 1
        ):  # a start that was cut short may have made names and linked nothing to them
            batch.fresh.update(map(fold, (*_names(drafts), *self._linker.names([job]))))
        return outcome

    async def _known(self, drafts: Sequence[Drafts], jobs: Sequence[Job]) -> Batch:
        """Return a batch that holds what the graph knows of the names and replaced facts of the drafts."""
        known = self._batch()
        names = {fold(name): name for some in drafts for name in _names(some)}
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
        present = {**{k: v for k, v in minted.items() if v in known.known}, **resolved}
        known.names = {folded: uuid for folded, uuid in present.items() if uuid in known.known}
        for node in nodes:
            for name in (node.name, *node.aliases):
                known.names.setdefault(fold(name), node.uuid)
        await self._load_stated(known, drafts)
        await self._linker.load(known, jobs)
        return known

    async def _load_stated(self, known: Batch, drafts: Sequence[Drafts]) -> None:
        """Load the facts that the drafts may say again, and those that they say they replace."""
        given = [fact for some in drafts for fact in some.facts]
        named = {name for fact in given for name in fact.invalidates}
        pairs = {
            name: pair for name in named if (pair := pair_of(name)) and known.node_named(pair[0])
        }
        joined = {
            (known.node_named(one.subject), one.relation, known.node_named(one.object))
            for one in given
        }
        joined |= {
            (known.node_named(subject), relation, "") for subject, relation in pairs.values()
        }
        wanted = [(one[0], one[1], one[2]) for one in joined if one[0] and one[2] is not None]
        retracted = [one.fact for some in drafts for one in some.retractions]
        joining = await self._journal.facts_joining(wanted)
        ids = [*joining, *filter(is_uuid, named), *retracted]
        texts = named - set(ids) - set(pairs)
        for text in texts:
            ids += [hit.owner for hit in await self._indexes.text_search("facts", text, _SAME_TEXT)]
        found = await self._client.facts(list(dict.fromkeys(ids))) if ids else []
        replacing = [fact for fact in given if texts.intersection(fact.invalidates)]
        ends = {
            known.node_named(name) for fact in replacing for name in (fact.subject, fact.object)
        }
        if ends := sorted(filter(None, ends)):
            found += await self._client.facts_of_nodes(ends, _FACTS_OF_A_NODE)
        known.stored.update((fact.uuid, fact) for fact in found)

    async def write(self, batch: Batch) -> None:
        """Write a planned batch that no job brings, and index it."""
        await self._commit(batch)
        await self.index()
        await self.link(batch.fresh)

    async def _commit(
        self,
        batch: Batch,
        turns: Sequence[Turn] = (),
        settled: Settled | None = None,
        again: Sequence[str] = (),
        after: Work[object] = nothing,
    ) -> None:
        """Write a planned batch in one transaction: closings, ties, the change log, the graph, records and links.

        The words of its facts and its turns are embedded first. ``after`` is what else the journal notes then.
        """
        nodes = list(batch.nodes.values())
        facts = list(batch.facts.values())
        kinds = (
            self._indexer.records.kinds
        )  # their vectors follow: a model that is away keeps no record waiting
        names = [node.name for node in nodes if node.kind not in kinds]
        spoken_words = [spoken(turn) for turn in turns if turn.kind not in self._kinds]
        if self._vectors:  # one call for what the indexes ask for next
            words = [*names, *(fact.text for fact in facts)]
            await self._vectors.of(words, soon=spoken_words)
        records = {
            batch.records[turn.uuid]: turn.content for turn in turns if turn.uuid in batch.records
        }
        marked = range(0)

        def noted(db: Connection) -> None:
            nonlocal marked
            if settled is not None:
                _note_closings(db, batch, settled, again)
            if batch.ties:
                tie_rows.put(db, batch.ties)
            marked = log_changes(db, _changes(batch, records))

        def finished(db: Connection) -> None:
            if batch.records or batch.links:
                put_records(db, batch.records, batch.links)
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
            await self._client.apply(change, noted, finished)
        self._written = Written(marked, batch.nodes, batch.facts, records)

    async def _coming(self, last_job: int) -> list[str]:
        """Return what the jobs after one say, and the facts that were given with them."""
        jobs = await self._journal.queue.after("save", last_job, _AHEAD, _FACTS_AHEAD)
        facts = [said(fact) for job in jobs for fact in job.payload.facts]
        return [*facts, *(spoken(job.turn) for job in jobs)]

    async def link(self, fresh: Iterable[str]) -> None:
        """Give texts that link to names that have just appeared their relations and mentions."""
        linked = await self._linker.waiting(fresh) if fresh else None
        if linked:
            await self.write(linked)

    async def project_relations(self) -> None:
        """Write the relations made by hand that the graph does not have as the journal does, once it has their ends."""
        while waiting := await self._journal.records.pending(_RELATIONS_AT_ONCE):
            batch = Batch(self._entity, now())
            ends = dict.fromkeys(
                end for one in waiting for end in (one.relation.source, one.relation.target)
            )
            batch.known = {node.uuid: node for node in await self._client.nodes(list(ends))}
            known = await self._client.facts([one.relation.id for one in waiting])
            batch.stored = {fact.uuid: fact for fact in known}
            for one in waiting:
                plan_made(batch, one)
            if batch.facts:
                await self.write(batch)
            await self._journal.records.projected(waiting)

    async def write_nodes(self, nodes: Sequence[Node]) -> None:
        """Write nodes that no turn brought, such as the entity's own."""
        batch = Batch(self._entity, now())
        for node in nodes:
            batch.put_node(node)
        await self.write(batch)

    async def _extract_by_model(self, job: Job) -> GraphitiChanges:
        """Let Graphiti's own pipeline read a turn whose episode is saved; index and return what it changed."""
        changes = await self._client.extract_episode(job.turn.uuid)
        await self._keep_records(changes.nodes)
        await self._note_said(job.turn.uuid)
        await self._settle_model(job.turn, changes)
        marked = [
            *(Change("node", uuid) for uuid in changes.nodes),
            *(Change("fact", uuid) for uuid in changes.facts),
            Change("episode", job.turn.uuid),
        ]
        await self._journal.log_changes(marked)
        nodes = await self._client.nodes(list(changes.nodes))
        await self._indexer.drain()
        await self.link({fold(node.name) for node in nodes})
        return changes

    async def _keep_records(self, nodes: Sequence[str]) -> None:
        """Let records be as they were before a model read a text; what it called by a pack's kind is a plain thing."""
        records = await self._journal.records.read(lambda rows: rows.find(nodes))
        found = await self._client.nodes(list(nodes))
        kept = [
            typed_node(one, records[one.uuid].tags, draft_of(records[one.uuid]))
            if one.uuid in records
            else replace(one, kind="Thing")
            for one in found
            if one.uuid in records or one.kind in self._kinds
        ]
        if kept:
            await self._client.save_nodes(kept, {})

    async def _settle_model(self, turn: Turn, changes: GraphitiChanges) -> None:
        """Close and open the facts of the slots that a model's reading of a turn changed.

        Graphiti closes what the model says is contradicted, in the order in which it reads. In a single-valued slot
        the turns' own times decide instead; elsewhere its closing stands, and is noted with the turn.
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
        """Return the end that a fact had without closings before a model read on."""
        if known is None or known.invalid_at is None:
            return None
        closings = await self._journal.closings.of([fact.uuid])
        closing = next((one for one in closings if one.at == known.invalid_at), None)
        return closing.own_end if closing else known.invalid_at

    async def _note_said(self, turn: str) -> None:
        """Let what a reading found hold again where the text had taken it back: Graphiti takes it as it finds it."""
        episodes = await self._client.episodes([turn])
        facts = await self._client.facts([fact for one in episodes for fact in one.facts])
        said = [(fact, said_by(fact, turn)) for fact in facts if turn in fact.episodes]
        await self._client.save_facts([after for before, after in said if after != before], {})


def in_turn(*works: Work[object]) -> Work[object]:
    """Return the work that does some works one after the other."""

    def work(db: Connection) -> None:
        for one in works:
            one(db)

    return work


def _note_closings(db: Connection, batch: Batch, settled: Settled, again: Sequence[str]) -> None:
    """Note what closes facts, and the endings of turns; those of a turn that is read again replace its earlier ones."""
    endings = {turn: some for turn, some in batch.endings.items() if some or turn in again}
    if endings or settled.closings:
        closing_rows.note(db, endings, settled.closings)


def _erase_stale_closings(db: Connection, settled: Settled) -> None:
    """Erase what closes facts no more."""
    if settled.stale:
        closing_rows.keep_only(db, settled.facts, settled.closings)


def _note_corrections(db: Connection, batch: Batch, saved: Sequence[str]) -> None:
    if batch.corrections or closing_rows.any_correction_waits(db):
        closing_rows.wait_for_fact(db, batch.corrections, saved)


def _closed_by(fact: Fact, others: Sequence[Fact]) -> Fact | None:
    """Return the fact at whose beginning Graphiti ended another."""
    return next(
        (
            other
            for other in others
            if other.uuid != fact.uuid and other.valid_at == fact.invalid_at
        ),
        None,
    )


def _changes(batch: Batch, records: Iterable[str]) -> list[Change]:
    """Return every id whose index entry changes. A turn's own entry was noted with the turn: here its facts count."""
    return [
        *(Change("node", uuid) for uuid in dict.fromkeys((*batch.nodes, *records))),
        *(Change("fact", uuid) for uuid in batch.facts),
        *(
            Change("episode", uuid)
            for uuid, one in batch.episodes.items()
            if one.facts or uuid in batch.reworded
        ),
        *(Change("episode", uuid) for uuid in batch.restated),
    ]


async def _one_by_one(jobs: Sequence[Job]) -> AsyncIterator[Job]:
    """Yield jobs, and let answers go out between them: a batch of jobs takes a quarter of a second to plan."""
    for job in jobs:
        yield job
        await asyncio.sleep(0)


def _drafts(job: Job, zone: tzinfo) -> Drafts:
    """Return what was given with a turn, what a command found, and what rules read in it where no fact was given."""
    payload = job.payload
    read = payload.read or Reading()
    nodes = (*payload.nodes, *read.nodes)
    facts = (*payload.facts, *read.facts)
    endings = (*payload.endings, *read.endings)
    corrections = payload.corrections
    if _is_read_by_rules(payload):
        found = extract(job.turn, zone)
        nodes = (*nodes, *found.nodes)
        facts = (*facts, *found.facts)
        endings = (*endings, *found.endings)
        corrections = (*corrections, *found.corrections)
    return Drafts(nodes, facts, endings, corrections, payload.retractions)


def _only_tried(skipped: Skipped, payload: JobPayload) -> bool:
    """Tell whether rules tried what was skipped: they do not know what there is to be closed, or which names are taken."""
    if skipped.what in ("invalidates", "correction"):
        return True
    return skipped.what.startswith("alias ") and not payload.nodes


def _is_read_by_rules(payload: JobPayload) -> bool:
    """Tell whether rules read a turn: where they are set, or the command could not be asked, and nothing was given."""
    return (payload.extraction == "rules" or payload.rules_meanwhile) and not payload.facts


def _names(drafts: Drafts) -> list[str]:
    names = [name for draft in drafts.nodes for name in (draft.name, *draft.aliases)]
    for fact in drafts.facts:
        names += [fact.subject, fact.object]
        names += [pair[0] for name in fact.invalidates if (pair := pair_of(name))]
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
