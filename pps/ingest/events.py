"""Events: what happened somewhere, checked and made ready to become a record with its source in the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from pps.core import bounds
from pps.core.errors import InvalidRequest
from pps.core.text import normalise
from pps.core.time import utc
from pps.core.values import JSON, RecordDraft, RelationDraft
from pps.ingest.drafts import Extraction
from pps.ingest.redact import KeyedRedactor
from pps.ingest.steps import Automatic, classify, links_in, merged_tags, tags_in, title_of
from pps.journal.values import JobPayload, TurnDraft

MAX_PATH = 4_096
_ROLES = {"agent": "assistant", "ambient": "tool"}
_OWN_FIELDS = ("source", "source_ref", "project_path")


class EventOptions(TypedDict, total=False):
    """What ``add_event`` may be told about a text.

    Attributes:
        source, source_ref: Where it came from (``whisper``, ``screenpipe``, ``mcp``, ``editor``, … ; ``other``
            when not given) and its id there; a ref makes a second call a duplicate.
        title: At most 500 characters; the first 80 of the content when not given.
        timestamp: Aware instant of the event; now when not given.
        kind: The record's kind; by its source when not given.
        project_path: Kept with the record; whose memory this is was settled before.
        parent_node_id: Id or title of the record that it is a child of.
        tags: Tags beside the ``#tags`` of the text.
        metadata: Fields of your own.
        session: The conversation; the source when not given.
        actor: Who wrote it inside the entity.
    """

    source: str
    source_ref: str
    title: str
    timestamp: datetime | None
    kind: str
    project_path: str
    parent_node_id: str
    tags: Sequence[str]
    metadata: Mapping[str, JSON]
    session: str
    actor: str


def make_event(
    content: str, options: EventOptions, extraction: Extraction, redactor: KeyedRedactor, automatic: Automatic
) -> tuple[TurnDraft, JobPayload]:
    """Return the journal's draft of an event and its job, without secrets.

    Raises:
        InvalidRequest: The first bound that is broken.
    """
    _check(content, options)
    source, timestamp = options.get("source") or "other", options.get("timestamp")
    kind = classify(source, options.get("kind", ""))
    bounds.check_kind("kind", kind)
    redactor.label("kind", kind)
    kept, session, origin, source_ref = redactor.known_text(
        normalise(content), options.get("session") or "", source, options.get("source_ref") or ""
    )
    title = " ".join(redactor.text(normalise(options.get("title", ""))).split())
    found = tags_in(kept) if automatic.tags else ()
    given = bounds.check_tags(redactor.tags(options.get("tags", ())))
    draft = TurnDraft(
        content=kept,
        role=_ROLES.get(kind, "user"),
        actor=redactor.text(options.get("actor", "")),
        session=session or origin,
        source=origin,
        source_ref=source_ref,
        occurred_at=utc(timestamp, "timestamp") if timestamp else None,
        kind=kind,
        tags=merged_tags(given, found, bounds.MAX_TAGS)[0],
        title=title,
    )
    attributes = redactor.attributes(options.get("metadata", {}))
    if path := options.get("project_path"):
        attributes["project_path"] = redactor.text(path)
    record = RecordDraft(title or title_of(kept), kind, redactor.text(options.get("parent_node_id", "")), attributes)
    links = links_in(kept) if automatic.relations else ()
    return draft, JobPayload(extraction=extraction, record=record, links=links)


def check_relations(relations: Sequence[RelationDraft]) -> None:
    """Raise InvalidRequest at the first relation that breaks a bound; the message counts from 0."""
    if not 1 <= len(relations) <= bounds.MAX_FACTS:
        raise InvalidRequest("relations", f"give 1 to {bounds.MAX_FACTS} of them")
    for number, relation in enumerate(relations):
        field = f"relations[{number}]"
        bounds.check_length(f"{field}.source", relation.source, 1, bounds.MAX_NAME)
        bounds.check_length(f"{field}.target", relation.target, 1, bounds.MAX_NAME)
        bounds.check_label(f"{field}.relation_type", relation.relation_type)
        if not 0 <= relation.weight <= 1:
            raise InvalidRequest(f"{field}.weight", "must be 0 to 1")


def check_metadata(metadata: Mapping[str, JSON]) -> None:
    """Raise InvalidRequest when a record's own fields are not JSON, too large, or use a name that PPS uses."""
    bounds.check_attributes("metadata", metadata)
    for name in _OWN_FIELDS:
        if name in metadata:
            raise InvalidRequest(f"metadata.{name}", "is reserved: it has an argument of its own")


def _check(content: str, options: EventOptions) -> None:
    bounds.check_length("content", content, 1, bounds.MAX_CONTENT)
    bounds.check_length("title", options.get("title", ""), 0, bounds.MAX_NAME)
    bounds.check_length("parent_node_id", options.get("parent_node_id", ""), 0, bounds.MAX_NAME)
    bounds.check_length("project_path", options.get("project_path", ""), 0, MAX_PATH)
    for name in ("source", "source_ref", "kind", "session", "actor"):
        bounds.check_length(name, str(options.get(name, "")), 0, 200)
    check_metadata(options.get("metadata", {}))
