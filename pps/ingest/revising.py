"""Change stored texts: update and append make versions; the history shows each with its diff."""

from __future__ import annotations

import asyncio
import difflib
import json
import time as clock
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypedDict, TypeVar, Unpack

from pps.core import bounds
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import check_uuid
from pps.core.kinds import NO_KINDS, Kinds
from pps.core.text import normalise
from pps.core.values import JSON, EventReceipt, ReceiptState, RecordDraft, Turn
from pps.ingest.drafts import Automatic, Extraction, Intake, tags_in
from pps.ingest.redact import KeyedRedactor, Redactor
from pps.ingest.worker import Worker
from pps.ingest.write_path import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import Job, JobPayload, JobResult
from pps.journal.journal import Journal
from pps.journal.versions import ChangeType, Revising, Rework, Text, Version

Wait = Literal["done", "journal"]
T = TypeVar("T")
_TRIES = 50
_GAP = "\n\n"
_OWN_FIELDS = ("source", "source_ref", "project_path")


@dataclass(frozen=True, slots=True)
class RecordParts:
    """The parts of a memory that the writers of records use.

    Attributes:
        extraction: How nodes and facts beside the record itself are read.
        redactor: Makes a redactor for one request; it replaces secrets before anything is stored.
    """

    journal: Journal
    client: IsolatedGraphitiClient
    pipeline: Pipeline
    intake: Intake
    worker: Worker
    extraction: Extraction
    redactor: Callable[[], KeyedRedactor]
    automatic: Automatic
    kinds: Kinds = NO_KINDS


class TextChanges(TypedDict, total=False):
    """The changes of ``update``; fields that are left out stay.

    Attributes:
        content: The whole new text, 1 to 65,536 characters.
        tags: Replace the tags of the request; the ``#tags`` of the text join them.
        title, kind: Of a record.
        metadata: Fields of a record, merged into the present ones; a null removes a field.
        actor: Who changes it.
    """

    content: str
    tags: Sequence[str]
    title: str
    kind: str
    metadata: Mapping[str, JSON]
    actor: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A version, and its unified diff against the one before it (empty for the first)."""

    version: Version
    diff: str


class Revisions:
    """Changes of one entity's texts: records, by their node's id or their source's, and turns."""

    def __init__(self, parts: RecordParts) -> None:
        self._parts = parts
        self._actor = ""

    async def update(
        self,
        id: str,
        *,
        wait: Wait = "done",
        timeout_s: float | None = None,
        **changes: Unpack[TextChanges],
    ) -> EventReceipt:
        """Change a record or a turn; its present state stays as a version.

        A change to the same text and fields makes no version. A changed text is read again, by
        rules or a model: a fact that only the old text states ends now, one that other texts state
        too loses this support, and nodes and facts that were given with the text stay.

        Raises:
            NotFound: The id is not this entity's.
            InvalidRequest: A bound is broken, there is nothing to change, or the id is that of a
                node without a text of its own.
        """
        if not changes.keys() - {"actor"}:
            raise InvalidRequest(
                "content", "give a content, title, kind, tags or metadata to change"
            )
        _check(changes)
        self._parts.kinds.check_free("kind", changes.get("kind", ""))
        redactor = self._parts.redactor()
        clean = _redacted(changes, redactor)

        def updated(before: Text) -> Text:
            _check_free(before)
            tags = tuple(clean["tags"]) if "tags" in clean else _request_tags(before)
            content = clean.get("content", before.content)
            return self._text(before, content, tags, _record(before, clean))

        actor = redactor.text(changes.get("actor", ""))
        return await self._revise(
            id,
            "modified",
            updated,
            actor=actor,
            wait=wait,
            timeout_s=timeout_s,
            redactor=redactor,
        )

    async def append(
        self,
        id: str,
        content: str,
        *,
        actor: str = "",
        wait: Wait = "done",
        timeout_s: float | None = None,
    ) -> EventReceipt:
        """Add a paragraph to the text of a record or a turn; its present state stays as a version.

        Raises as ``update``, also if the whole would be longer than 65,536 characters.
        """
        bounds.check_length("content", content, 1, bounds.MAX_CONTENT)
        bounds.check_length("actor", actor, 0, 200)
        redactor = self._parts.redactor()
        paragraph = redactor.text(normalise(content))

        def longer(before: Text) -> Text:
            _check_free(before)
            whole = before.content.rstrip("\n") + _GAP + paragraph
            return self._text(before, whole, _request_tags(before), before.payload.record)

        return await self._revise(
            id,
            "appended",
            longer,
            actor=redactor.text(actor),
            wait=wait,
            timeout_s=timeout_s,
            redactor=redactor,
        )

    async def texts(self, nodes: Sequence[str]) -> dict[str, Turn]:
        """Return record → the turn with its text, of the ids that are this entity's records."""
        return await self._parts.journal.records.texts(nodes)

    async def history(
        self, id: str, *, limit: int = 20, newest: int | None = None
    ) -> list[HistoryEntry]:
        """Return the versions of a record or a turn, newest first, each with its diff.

        Args:
            id: Of a record, of its source, or of a turn.
            limit: Most versions, 1 to 1,000.
            newest: Number of the version to begin with; None for the latest.

        Raises:
            NotFound: The id is not this entity's.
            InvalidRequest: ``limit`` is out of bounds, or the id is that of a node without a text
                of its own.
        """
        bounds.check_range("limit", limit, 1, 1_000)
        versions = await self._parts.journal.versions.of(await self._turn(id))
        if newest is not None:
            versions = [version for version in versions if version.number <= newest]
        return await asyncio.to_thread(_entries, versions, limit)

    async def _revise(
        self,
        id: str,
        change: ChangeType,
        rework: Rework,
        *,
        actor: str,
        wait: Wait,
        timeout_s: float | None,
        redactor: Redactor,
    ) -> EventReceipt:
        started = clock.perf_counter()
        turn = await self._turn(id)
        revised = await self._when_idle(
            partial(self._parts.intake.revise, turn, change, actor, rework)
        )
        job = await self._parts.worker.ended(revised.job_id, timeout_s) if wait == "done" else None
        node = (await self._parts.journal.records.of_turns([turn])).get(turn, "")
        receipt = receipt_of(revised.turn, revised.payload, job, (revised.job_id, node))
        took_ms = (clock.perf_counter() - started) * 1000
        return replace(
            receipt, version=revised.version, redacted=redactor.count, duration_ms=took_ms
        )

    async def _when_idle(self, revise: Callable[[], Awaitable[T]]) -> T:
        """Change a text; if its job is running, wait for the job and try again."""
        for _ in range(_TRIES):
            try:
                return await revise()
            except Revising as busy:
                await self._parts.worker.ended(busy.job_id, 60.0)
        return await revise()

    async def _turn(self, id: str) -> str:
        """Return the turn behind an id: its own, or that of the record whose node it is."""
        [id] = await self._parts.journal.whole([id], path="id")
        check_uuid(id)
        source = (await self._parts.journal.records.of_nodes([id])).get(id)
        if source or await self._parts.journal.turn(id):
            return source or id
        if await self._parts.client.nodes([id]):
            raise InvalidRequest(
                "id", "is a node without a text of its own; turns say what is known of it"
            )
        raise NotFound()

    def _text(
        self, before: Text, content: str, tags: tuple[str, ...], record: RecordDraft | None
    ) -> Text:
        """Return a text with new content, tags of the request, and record.

        The command's reading is dropped if the content changes, so that it is read again.
        """
        automatic = self._parts.automatic
        read = before.payload.read if content == before.content else None
        payload = replace(
            before.payload, record=record, links=automatic.links_of(content), read=read
        )
        return Text(content, automatic.tags_of(tags, content), payload)


def _check_free(text: Text) -> None:
    """Raise InvalidRequest for a record whose kind a pack defines: its own operations change it."""
    record = text.payload.record
    if record and record.pack:
        raise InvalidRequest(
            "id",
            f"is a {record.kind} of the pack {record.pack}: use record_save, which checks its "
            "fields, or record_move",
        )


def check_metadata(metadata: Mapping[str, JSON]) -> None:
    """Raise InvalidRequest for fields of a record that are not JSON, too large, or reserved."""
    bounds.check_attributes("metadata", metadata)
    for name in _OWN_FIELDS:
        if name in metadata:
            raise InvalidRequest(f"metadata.{name}", "is reserved: it has an argument of its own")


def receipt_of(
    turn: Turn, payload: JobPayload, job: Job | None, ids: tuple[int, str]
) -> EventReceipt:
    """Return the receipt of a text; ``ids`` are its job's, and its record's if known, else ""."""
    state: ReceiptState = "accepted"
    if job is not None and job.state in ("done", "failed"):
        state = "done" if job.state == "done" else "failed"
    result = (job.result if job else None) or JobResult()
    return EventReceipt(
        node_id=result.record or ids[1],
        title=result.title or (payload.record.title if payload.record else ""),
        edges_created=result.edges,
        tags_applied=turn.tags,
        duration_ms=0.0,
        skipped=result.skipped,
        turn_id=turn.uuid,
        job_id=ids[0],
        state=state,
    )


def _request_tags(text: Text) -> tuple[str, ...]:
    """Return the tags of a text that came with a request: all but the ``#tags`` in it."""
    text_tags = set(tags_in(text.content))
    return tuple(tag for tag in text.tags if tag not in text_tags)


def _record(text: Text, changes: TextChanges) -> RecordDraft | None:
    before = text.payload.record
    if before is None:
        for name in ("title", "kind", "metadata"):
            if name in changes:
                raise InvalidRequest(name, "only a record has one; this id is a turn's")
        return None
    fields = {**before.attributes, **changes.get("metadata", {})}
    return replace(
        before,
        title=changes.get("title", before.title),
        kind=changes.get("kind", before.kind),
        attributes={name: value for name, value in fields.items() if value is not None},
    )


def _check(changes: TextChanges) -> None:
    if "content" in changes:
        bounds.check_length("content", changes["content"], 1, bounds.MAX_CONTENT)
    if "title" in changes:
        bounds.check_length("title", changes["title"], 1, bounds.MAX_NAME)
    if "kind" in changes:
        bounds.check_kind("kind", changes["kind"])
    bounds.check_length("actor", changes.get("actor", ""), 0, 200)
    check_metadata(changes.get("metadata", {}))


def _redacted(changes: TextChanges, redactor: Redactor) -> TextChanges:
    clean: TextChanges = {**changes}
    if "content" in changes:
        clean["content"] = redactor.text(normalise(changes["content"]))
    if "title" in changes:
        clean["title"] = " ".join(redactor.text(normalise(changes["title"])).split())
    if "kind" in changes:
        redactor.label("kind", changes["kind"])
    if "tags" in changes:
        clean["tags"] = bounds.check_tags(redactor.tags(changes["tags"]))
    if "metadata" in changes:
        clean["metadata"] = redactor.attributes(changes["metadata"])
    return clean


def _entries(versions: Sequence[Version], limit: int) -> list[HistoryEntry]:
    newest = range(len(versions) - 1, max(-1, len(versions) - 1 - limit), -1)
    return [
        HistoryEntry(versions[at], _diff(versions[at - 1], versions[at]) if at else "")
        for at in newest
    ]


def _diff(old: Version, new: Version) -> str:
    lines = difflib.unified_diff(
        _lines(old),
        _lines(new),
        fromfile=f"version {old.number}",
        tofile=f"version {new.number}",
        lineterm="",
    )
    return "\n".join(lines)


def _lines(version: Version) -> list[str]:
    named = {
        "title": version.title,
        "kind": version.kind,
        "status": version.status,
        "state": version.state,
    }
    head = [f"{name}: {value}" for name, value in named.items() if value]
    head += [
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in sorted(version.fields.items())
    ]
    return [*head, f"tags: {', '.join(version.tags)}", *version.content.split("\n")]
