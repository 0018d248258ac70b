"""Changing texts that are kept: update and append, each a version; what a text was, and what changed."""

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
    """What records are kept with.

    Attributes:
        extraction: Where nodes and facts beside the record itself come from.
        redactor: Makes what takes the secrets out of a request before anything of it is kept.
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
    """What ``update`` may change; what is not given stays.

    Attributes:
        content: The whole new text, 1 to 65,536 characters.
        tags: In place of those that were given; the ``#tags`` of the text join them.
        title, kind: Of a record.
        metadata: Of a record; joined with what is there, a null takes a field out.
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
    """A version and how it differs from the one before it, as a unified diff (empty for the first)."""

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
        """Change a record or a turn; what it was stays as a version. Nothing to change makes no version.

        Other words are read again, by rules or a model. A fact that only the old ones say ends now, one that other
        texts say too loses this support, and what was given with the text stays.

        Raises:
            NotFound: The id is not this entity's.
            InvalidRequest: A bound is broken, nothing is given, or it is a node without a text of its own.
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
            given = tuple(clean["tags"]) if "tags" in clean else _given(before)
            return self._text(
                before, clean.get("content", before.content), given, _record(before, clean)
            )

        actor = redactor.text(changes.get("actor", ""))
        return await self._revised((id, "modified", actor, updated), wait, timeout_s, redactor)

    async def append(
        self,
        id: str,
        content: str,
        *,
        actor: str = "",
        wait: Wait = "done",
        timeout_s: float | None = None,
    ) -> EventReceipt:
        """Add a paragraph to the text of a record or a turn; what it was stays as a version.

        Raises: As ``update``; also when the whole would be longer than 65,536 characters.
        """
        bounds.check_length("content", content, 1, bounds.MAX_CONTENT)
        bounds.check_length("actor", actor, 0, 200)
        redactor = self._parts.redactor()
        paragraph = redactor.text(normalise(content))

        def longer(before: Text) -> Text:
            _check_free(before)
            whole = before.content.rstrip("\n") + _GAP + paragraph
            return self._text(before, whole, _given(before), before.payload.record)

        return await self._revised(
            (id, "appended", redactor.text(actor), longer), wait, timeout_s, redactor
        )

    async def texts(self, nodes: Sequence[str]) -> dict[str, Turn]:
        """Return record → the turn whose text it is, of those ids that are this entity's records."""
        return await self._parts.journal.records.texts(nodes)

    async def history(
        self, id: str, *, limit: int = 20, newest: int | None = None
    ) -> list[HistoryEntry]:
        """Return the versions of a record or a turn, newest first, each with what it changed.

        Args:
            id: Of a record, of its source, or of a turn.
            limit: Most versions, 1 to 1,000.
            newest: Number of the version to begin with; None for the latest.

        Raises:
            NotFound: The id is not this entity's.
            InvalidRequest: It is a node without a text of its own.
        """
        bounds.check_range("limit", limit, 1, 1_000)
        versions = await self._parts.journal.versions.of(await self._turn(id))
        if newest is not None:
            versions = [version for version in versions if version.number <= newest]
        return await asyncio.to_thread(_entries, versions, limit)

    async def _revised(
        self,
        what: tuple[str, ChangeType, str, Rework],
        wait: Wait,
        timeout_s: float | None,
        redactor: Redactor,
    ) -> EventReceipt:
        started = clock.perf_counter()
        id_, change, actor, rework = what
        turn = await self._turn(id_)
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
        """Change texts; while the job of one is in hand, wait for that."""
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
        self, before: Text, content: str, given: tuple[str, ...], record: RecordDraft | None
    ) -> Text:
        """Return a text with new words: what was read in other words is read again."""
        automatic = self._parts.automatic
        read = before.payload.read if content == before.content else None
        payload = replace(
            before.payload, record=record, links=automatic.links_of(content), read=read
        )
        return Text(content, automatic.tags_of(given, content), payload)


def _check_free(text: Text) -> None:
    """Raise InvalidRequest for the text of a record of a pack's kind: its own operations change it."""
    if text.payload.record and (pack := text.payload.record.pack):
        what = f"is a {text.payload.record.kind} of the pack {pack}"
        raise InvalidRequest(
            "id", f"{what}: use record_save, which checks its fields, or record_move"
        )


def check_metadata(metadata: Mapping[str, JSON]) -> None:
    """Raise InvalidRequest when a record's own fields are not JSON, too large, or use a name that PPS uses."""
    bounds.check_attributes("metadata", metadata)
    for name in _OWN_FIELDS:
        if name in metadata:
            raise InvalidRequest(f"metadata.{name}", "is reserved: it has an argument of its own")


def receipt_of(
    turn: Turn, payload: JobPayload, job: Job | None, ids: tuple[int, str]
) -> EventReceipt:
    """Return what became of a text so far; ``ids`` are its job's, and its record's where that is known already."""
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


def _given(text: Text) -> tuple[str, ...]:
    """Return the tags that a text has beside those in it."""
    own = set(tags_in(text.content))
    return tuple(tag for tag in text.tags if tag not in own)


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
    names = f"version {old.number}", f"version {new.number}"
    return "\n".join(difflib.unified_diff(_lines(old), _lines(new), *names, lineterm=""))


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
