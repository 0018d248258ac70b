"""Records and links of one entity's jobs: what the graph knows of them is loaded, planned, kept, and found again.

A link is kept with its turn for good. When a name appears that texts link to, each of those texts gets its
relation (a record) or its mention (any other turn), whatever came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pps.core.ids import EntityId, is_uuid
from pps.core.text import fold
from pps.core.time import now
from pps.core.values import Turn
from pps.ingest.batch import Batch, TurnOutcome
from pps.ingest.records import REFERENCES, Relation, plan_mentions, plan_record, plan_relation, record_id
from pps.ingest.steps import title_of
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.values import Job

_RELATIONS_OF_A_RECORD = 2_000


class Linker:
    """Plans records and links into the pipeline's batches."""

    def __init__(self, entity: EntityId, client: IsolatedGraphitiClient, journal: Journal) -> None:
        self._entity = entity
        self._client = client
        self._journal = journal

    def names(self, jobs: Iterable[Job]) -> list[str]:
        """Return every name that the jobs' records and links may resolve to a node."""
        found: list[str] = []
        for job in jobs:
            found += job.payload.links
            if record := job.payload.record:
                parent = () if is_uuid(record.parent) else (record.parent,)
                found += [record.title or title_of(job.turn.content), *parent]
        return [name for name in found if fold(name)]

    def ids(self, jobs: Iterable[Job]) -> list[str]:
        """Return every node's uuid that the jobs' records may be, or name as their parent."""
        records = [job for job in jobs if job.payload.record]
        own = [record_id(self._entity.group, job.turn.uuid) for job in records]
        parents = [job.payload.record.parent for job in records if job.payload.record]
        return own + [one for one in parents if is_uuid(one)]

    async def load(self, known: Batch, jobs: Sequence[Job]) -> None:
        """Add to a batch which of its nodes are records, those of the jobs, and the relations they have."""
        turns = [job.turn.uuid for job in jobs if job.payload.record]
        if not turns:
            return
        records = await self._journal.records.of_turns(turns)
        missing = [node for node in records.values() if node not in known.known]
        known.known.update((node.uuid, node) for node in await self._client.nodes(missing))
        known.records = {turn: node for turn, node in records.items() if node in known.known}
        known.record_nodes = set(await self._journal.records.of_nodes(list(known.known)))
        if known.records:
            nodes = list(known.records.values())
            facts = await self._client.facts_of_nodes(nodes, _RELATIONS_OF_A_RECORD)
            known.stored.update((fact.uuid, fact) for fact in facts if fact.kind == "relation")

    def plan(self, batch: Batch, job: Job, outcome: TurnOutcome) -> None:
        """Plan a job's record, or the mentions that its links are."""
        payload = job.payload
        if payload.record:
            plan_record(batch, job.turn, payload.record, payload.links, outcome)
        elif payload.links:
            plan_mentions(batch, job.turn, payload.links, outcome)
        if payload.record or payload.links:
            batch.links[job.turn.uuid] = payload.links

    async def keep(self, batch: Batch) -> None:
        """Note the batch's records and links in the journal."""
        if batch.records or batch.links:
            await self._journal.records.put(batch.records, batch.links)

    async def waiting(self, fresh: Iterable[str]) -> Batch | None:
        """Return what the texts that link to these folded names lack; None when they lack nothing."""
        rows = await self._journal.records.linking(list(fresh))
        if not rows:
            return None
        turns = {turn.uuid: turn for turn in await self._journal.turns([turn for _, turn in rows])}
        batch = await self._around(rows, turns)
        for folded, uuid in rows:
            self._link(batch, turns[uuid], batch.names.get(folded))
        return batch if batch.facts or batch.mentions else None

    async def _around(self, rows: Sequence[tuple[str, str]], turns: dict[str, Turn]) -> Batch:
        """Return a batch that knows the names, the records that link to them, and their relations."""
        batch = Batch(self._entity, now())
        names = await self._journal.resolve([folded for folded, _ in rows])
        records = await self._journal.records.of_turns(list(turns))
        nodes = await self._client.nodes(list(dict.fromkeys([*names.values(), *records.values()])))
        batch.known = {node.uuid: node for node in nodes}
        batch.names = {folded: uuid for folded, uuid in names.items() if uuid in batch.known}
        batch.records = {turn: node for turn, node in records.items() if node in batch.known}
        pairs = [(batch.records[turn], batch.names[name]) for name, turn in rows if self._both(batch, name, turn)]
        if pairs:
            stored = await self._client.facts_between(list(dict.fromkeys(pairs)))
            batch.stored = {fact.uuid: fact for fact in stored}
        return batch

    def _both(self, batch: Batch, folded: str, turn: str) -> bool:
        return turn in batch.records and folded in batch.names

    def _link(self, batch: Batch, turn: Turn, target: str | None) -> None:
        source = batch.records.get(turn.uuid)
        if target is None or source == target:
            return
        if source is None:
            batch.mention(turn.uuid, [target])
        else:
            plan_relation(batch, Relation(source, target, REFERENCES), turn)
