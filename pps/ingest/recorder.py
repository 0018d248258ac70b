"""Records: titled texts with a kind, tags, a parent and typed relations; the journal keeps them."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Unpack

from pps.core import bounds
from pps.core.errors import InvalidRequest
from pps.core.kinds import PLAIN_KIND, Kinds
from pps.core.record_values import Relation
from pps.core.text import fold, normalise, title_of
from pps.core.time import now
from pps.core.values import JSON, EventReceipt, RecordDraft, Related, RelationDraft, Skipped
from pps.ingest.drafts import (
    Automatic,
    Extraction,
    TextOptions,
    check_words,
    drafted,
    time_and_offset,
)
from pps.ingest.duplicates import Merging
from pps.ingest.linking import record_id, relation_id
from pps.ingest.redact import KeyedRedactor
from pps.ingest.revising import RecordParts, Revisions, Wait, check_metadata, receipt_of
from pps.journal.entries import Appended, Job, JobPayload, TurnDraft
from pps.journal.graph_queries import ambiguous
from pps.journal.record_rows import RecordRows

MAX_EVENTS = 500
MAX_PATH = 4_096


class EventOptions(TextOptions, total=False):
    """Options of ``add_event``.

    The source (``whisper``, ``screenpipe``, ``mcp``, ``editor``, …) defaults to ``other``, the
    session to the source, the kind to that of the source.

    Attributes:
        title: At most 500 characters; by default the first 80 of the content.
        timestamp: When it happened, by default now; a time without a zone is in the entity's zone.
        project_path: A field of the record; it does not choose the entity.
        parent_node_id: Id or title of the parent record.
        metadata: Further fields of the record.
    """

    title: str
    timestamp: datetime | None
    project_path: str
    parent_node_id: str
    metadata: Mapping[str, JSON]


def check_event(content: str, options: EventOptions) -> None:
    """Raise InvalidRequest for the first bound that an event breaks."""
    check_words(content, options)
    bounds.check_length("title", options.get("title", ""), 0, bounds.MAX_NAME)
    bounds.check_length("parent_node_id", options.get("parent_node_id", ""), 0, bounds.MAX_NAME)
    bounds.check_length("project_path", options.get("project_path", ""), 0, MAX_PATH)
    check_metadata(options.get("metadata", {}))
    if kind := options.get("kind", ""):
        bounds.check_kind("kind", kind)


def make_event(
    content: str,
    options: EventOptions,
    extraction: Extraction,
    redactor: KeyedRedactor,
    automatic: Automatic,
    kinds: Kinds,
    zone: tzinfo = UTC,
) -> tuple[TurnDraft, JobPayload]:
    """Return the journal's draft of an event and its job, without secrets.

    Args:
        content: 1 to 65,536 characters.
        options: See EventOptions.
        extraction: How facts beside the record are read.
        redactor: Replaces secrets by markers.
        automatic: Whether tags and links are read from the text.
        kinds: The default kind of each source, and the role of a kind's turns.
        zone: The entity's zone, for times without one.

    Raises:
        InvalidRequest: The first bound that is broken.
    """
    check_event(content, options)
    source = options.get("source") or "other"
    occurred_at, utc_offset_s = time_and_offset(options.get("timestamp"), zone, "timestamp")
    kind = options.get("kind", "") or kinds.of_source(source)
    redactor.label("kind", kind)
    title = " ".join(redactor.text(normalise(options.get("title", ""))).split())
    draft = drafted(content, {**options, "source": source}, redactor, automatic)
    draft = replace(
        draft,
        role=kinds.role_of(kind),
        session=draft.session or draft.source,
        occurred_at=occurred_at,
        utc_offset_s=utc_offset_s,
        kind=kind,
        title=title,
    )
    attributes = redactor.attributes(options.get("metadata", {}))
    if path := options.get("project_path"):
        attributes["project_path"] = redactor.text(path)
    parent = redactor.text(options.get("parent_node_id", ""))
    record = RecordDraft(title or title_of(draft.content), kind, parent, attributes)
    return draft, JobPayload(
        extraction=extraction, record=record, links=automatic.links_of(draft.content)
    )


def check_relations(relations: Sequence[RelationDraft]) -> None:
    if not 1 <= len(relations) <= bounds.MAX_FACTS:
        raise InvalidRequest("relations", f"give 1 to {bounds.MAX_FACTS} of them")
    for number, relation in enumerate(relations):
        field = f"relations[{number}]"
        bounds.check_length(f"{field}.source", relation.source, 1, bounds.MAX_NAME)
        bounds.check_length(f"{field}.target", relation.target, 1, bounds.MAX_NAME)
        bounds.check_label(f"{field}.relation_type", relation.relation_type)
        if not 0 <= relation.weight <= 1:
            raise InvalidRequest(f"{field}.weight", "must be 0 to 1")


class RecordWriter(Revisions):
    """The records of one entity. No method takes a group or a name of an entity.

    Attributes:
        merging: Nodes that may be one thing: proposed, merged, undone.
    """

    def __init__(self, parts: RecordParts, merging: Merging) -> None:
        super().__init__(parts)
        self.merging = merging

    async def add_event(
        self,
        content: str,
        *,
        wait: Wait = "done",
        timeout_s: float | None = None,
        **options: Unpack[EventOptions],
    ) -> EventReceipt:
        """Store an event as a record with its source.

        Args:
            content: 1 to 65,536 characters.
            wait: ``journal`` returns when it is on disk, ``done`` when graph and indexes have it.
            timeout_s: After it a ``done`` wait returns state ``accepted``; the work goes on.
            options: See EventOptions.

        Raises:
            InvalidRequest: A bound is broken; nothing was changed.
            Overloaded: Too much waits to be taken in; nothing was changed.
        """
        return (await self.add_events([(content, options)], wait=wait, timeout_s=timeout_s))[0]

    async def add_events(
        self,
        events: Sequence[tuple[str, EventOptions]],
        *,
        wait: Wait = "done",
        timeout_s: float | None = None,
    ) -> list[EventReceipt]:
        """Store 1 to 500 events in order in one transaction: all are on disk on return, or none is.

        Events of one call may link to each other's titles; a parent may be an earlier one of them.
        Raises as ``add_event``.
        """
        started = clock.perf_counter()
        if not 1 <= len(events) <= MAX_EVENTS:
            raise InvalidRequest("events", f"give 1 to {MAX_EVENTS} of them")
        redactors = [self._parts.redactor() for _ in events]
        drafts = [
            make_event(
                content,
                options,
                self._parts.extraction,
                redactor,
                self._parts.automatic,
                self._parts.kinds,
                self._parts.journal.zone,
            )
            for (content, options), redactor in zip(events, redactors, strict=True)
        ]
        for draft, _ in drafts:
            self._parts.kinds.check_free("kind", draft.kind)
        appended = await self._parts.intake.append_many(drafts)
        jobs: Mapping[int, Job] = {}
        if wait == "done":
            jobs = await self._ended_within([event.job_id for event in appended], timeout_s)
        turns = [event.turn.uuid for event in appended]
        records = await self._parts.journal.records.of_turns(turns)
        records = await self._future_records(appended, [payload for _, payload in drafts]) | records
        took_ms = (clock.perf_counter() - started) * 1000
        return [
            replace(
                _receipt(event, payload, jobs.get(event.job_id), records.get(event.turn.uuid, "")),
                redacted=redactor.count,
                duration_ms=took_ms,
            )
            for event, (_, payload), redactor in zip(appended, drafts, redactors, strict=True)
        ]

    async def _future_records(
        self, appended: Sequence[Appended], payloads: Sequence[JobPayload]
    ) -> dict[str, str]:
        """Return turn → the node of its future record: a plain node of its title, else its own."""
        titles: dict[str, str] = {}
        for event, payload in zip(appended, payloads, strict=True):
            title = payload.record.title if payload.record else ""
            titles[event.turn.uuid] = title or title_of(event.turn.content)
        journal = self._parts.journal
        plain = await journal.records.plain_nodes_named(titles.values())
        return {
            turn: plain.get(fold(title)) or record_id(journal.group, turn)
            for turn, title in titles.items()
        }

    async def relate(
        self, relations: Sequence[RelationDraft], *, created_by: str = "agent"
    ) -> Related:
        """Make 1 to 500 typed relations between existing nodes.

        Of a relation that exists only the weight changes.

        Args:
            relations: Ends by id or, with case and white space folded, by name or alias.
            created_by: Who makes them, 1 to 200 characters.

        Returns:
            Ids in order; a relation to a node that this entity does not have is in ``skipped``.

        Raises:
            InvalidRequest: A bound is broken or a type holds a secret; nothing was changed.
            StoreConflict: Another change of the graph does not end; nothing was changed, try again.
        """
        check_relations(relations)
        bounds.check_length("created_by", created_by, 1, 200)
        redactor = self._parts.redactor()
        redactor.labels(
            {
                relation.relation_type: f"relations[{number}].relation_type"
                for number, relation in enumerate(relations)
            }
        )
        created_by = redactor.text(created_by)
        async with self._parts.worker.held():  # an end may be forgotten or merged away until then
            made = await self._parts.journal.records.write(
                partial(self._related, relations=relations, maker=created_by)
            )
            await self._parts.pipeline.project_relations()
        return made

    def _related(self, rows: RecordRows, relations: Sequence[RelationDraft], maker: str) -> Related:
        """Write the relations whose ends exist into the journal."""
        made = 0
        ids = list[str]()
        skipped = list[Skipped]()
        at = now()
        for number, relation in enumerate(relations):
            place = f"relations[{number}]"
            type_ = relation.relation_type
            try:
                source = _end(rows, relation.source, "source")
                target = _end(rows, relation.target, "target")
            except InvalidRequest as error:  # the title of several records
                skipped.append(Skipped(place, error.message))
                continue
            if why := self._why_refused(rows, source, target, type_):
                skipped.append(Skipped(place, why))
                continue
            id_ = relation_id(self._parts.journal.group, source, type_, target)
            known = rows.holds(id_)
            weight: dict[str, JSON] = {"weight": relation.weight}
            new = rows.relate(Relation(id_, source, type_, target, at, weight, maker))
            made += new and not known
            ids.append(id_)
        return Related(made, tuple(ids), tuple(skipped))

    def _why_refused(self, rows: RecordRows, source: str, target: str, relation_type: str) -> str:
        """Return the reason why two nodes may not be related; empty if they may."""
        if not (source and target):
            return f"{'target' if source else 'source'}: nothing of this memory has that id or name"
        if source == target:
            return "joins a node to itself"
        known = self._parts.kinds
        kinds = rows.kinds_of([source, target])
        first, second = (
            kinds[end] if kinds[end] in known else PLAIN_KIND for end in (source, target)
        )
        turned = known.is_turned(relation_type, first, second)
        leads = f"{relation_type} leads {second} → {first}" if turned else ""
        if first in known:
            also = f"; {leads}" if leads else ""
            return f"source: is a {first}, whose relations record_relate makes and checks{also}"
        return f"{leads}: record_relate makes it" if leads else ""

    async def _ended_within(
        self, jobs: Sequence[int], timeout_s: float | None
    ) -> Mapping[int, Job]:
        """Return job id → job, of the jobs that end within ``timeout_s``."""
        waits = {
            number: asyncio.create_task(self._parts.worker.wait_for(number)) for number in jobs
        }
        if not waits:
            return {}
        try:
            await asyncio.wait(waits.values(), timeout=timeout_s)
            return {number: task.result() for number, task in waits.items() if task.done()}
        finally:
            for task in waits.values():
                task.cancel()


def _receipt(appended: Appended, payload: JobPayload, job: Job | None, node: str) -> EventReceipt:
    receipt = receipt_of(appended.turn, payload, job, (appended.job_id, node))
    return (
        replace(receipt, state="duplicate")
        if appended.duplicate and receipt.state != "failed"
        else receipt
    )


def _end(rows: RecordRows, name: str, path: str) -> str:
    """Return the id of the node with an id or title, "" if none has it.

    Raises:
        InvalidRequest: Several nodes have the title.
    """
    candidates = rows.candidates(name, path)
    if len(candidates) > 1:
        raise ambiguous(path, candidates)
    return candidates[0].id if candidates else ""
