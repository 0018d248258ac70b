"""What ``remember`` may be told, checked and made ready for the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict

from pps.core import bounds
from pps.core.errors import InvalidRequest
from pps.core.text import normalise
from pps.core.time import utc
from pps.core.values import Chunk, FactDraft, NodeDraft, Receipt, ReceiptState
from pps.ingest.redact import KeyedRedactor
from pps.ingest.steps import Automatic, links_in, merged_tags, tags_in
from pps.journal.values import Appended, Job, JobPayload, TurnDraft

Extraction: TypeAlias = Literal["given", "rules", "command", "model", "none"]


class RememberOptions(TypedDict, total=False):
    """What ``remember`` may be told about a text.

    Attributes:
        role: ``user`` (default), ``assistant``, ``system`` or ``tool``.
        actor: Who wrote it inside the entity, at most 200 characters.
        session: The conversation, at most 200 characters; ``default`` when not given.
        source, source_ref: Where it came from and its id there; a ref makes a second call a duplicate.
        occurred_at: Aware instant of the event; now when not given.
        kind: ``turn`` (default) or what else it is, such as ``summary``.
        tags: Tags beside the ``#tags`` of the text.
        nodes, facts: What a calling agent read in it (*given*).
        extraction: ``given``, ``rules``, ``command``, ``model`` or ``none``; the entity's setting when not given.
        chunk: Which part of a document it is.
    """

    role: str
    actor: str
    session: str
    source: str
    source_ref: str
    occurred_at: datetime | None
    kind: str
    tags: Sequence[str]
    nodes: Sequence[NodeDraft]
    facts: Sequence[FactDraft]
    extraction: Extraction
    chunk: Chunk | None


READERS = ("command", "model")
"""Ways to read that need a setting: each is there when ``extractor.mode`` names it."""


def unset(mode: Extraction) -> frozenset[str]:
    """Return the ways to read that are not set up where ``extractor.mode`` is this."""
    return frozenset(READERS) - {mode}


def check_extraction(wanted: str, mode: Extraction) -> None:
    """Raise InvalidRequest, before anything is kept, for a way to read that is unknown or not set up."""
    bounds.check_choice("extraction", wanted, bounds.EXTRACTIONS)
    if wanted in unset(mode):
        raise InvalidRequest(
            "extraction",
            f'nothing is set for {wanted!r}: set extractor.mode = "{wanted}" (PPS_EXTRACTOR__MODE), or leave it out',
        )


def make_draft(
    content: str, options: RememberOptions, extraction: Extraction, redactor: KeyedRedactor, automatic: Automatic
) -> tuple[TurnDraft, JobPayload]:
    """Return the journal's draft and its job, without secrets.

    Args:
        content: 1 to 65,536 characters.
        options: See RememberOptions.
        extraction: What an option that is not given means: the setting ``extractor.mode``.
        automatic: What is read out of the text by itself.
        redactor: Takes the secrets out of text, names, tags, attributes and identifiers, and counts them.

    Raises:
        InvalidRequest: The first bound that is broken, or a kind or relation that holds a secret.
    """
    bounds.check_length("content", content, 1, bounds.MAX_CONTENT)
    nodes, facts = tuple(options.get("nodes", ())), tuple(options.get("facts", ()))
    bounds.check_drafts(nodes, facts)
    bounds.check_choice("role", options.get("role", "user"), bounds.ROLES)
    mode, extraction = extraction, options.get("extraction", extraction)
    check_extraction(extraction, mode)
    for name in ("actor", "session", "source", "source_ref", "kind"):
        bounds.check_length(name, str(options.get(name, "")), 0, 200)
    occurred_at = options.get("occurred_at")
    redactor.label("kind", options.get("kind", ""))
    kept, session, source, source_ref = redactor.known_text(
        normalise(content), options.get("session") or "", options.get("source") or "", options.get("source_ref") or ""
    )
    given_tags = bounds.check_tags(redactor.tags(options.get("tags", ())))
    draft = TurnDraft(
        content=kept,
        role=options.get("role", "user"),
        actor=redactor.text(options.get("actor", "")),
        session=session or "default",
        source=source or "api",
        source_ref=source_ref,
        occurred_at=utc(occurred_at, "occurred_at") if occurred_at else None,
        kind=options.get("kind") or "turn",
        tags=merged_tags(given_tags, tags_in(kept) if automatic.tags else (), bounds.MAX_TAGS)[0],
        chunk=_known_chunk(options.get("chunk"), redactor),
    )
    nodes, facts = redactor.nodes(nodes), redactor.facts(facts)
    links = links_in(kept) if automatic.relations else ()
    return draft, JobPayload(nodes=nodes, facts=facts, extraction=extraction, links=links)


def _known_chunk(chunk: Chunk | None, redactor: KeyedRedactor) -> Chunk | None:
    """Return a part of a document without secrets in the document's path."""
    return replace(chunk, path=redactor.identifier(chunk.path)) if chunk else None


def accepted(appended: Appended, redacted: int) -> Receipt:
    """Return the receipt of a turn that is on disk."""
    state: ReceiptState = "duplicate" if appended.duplicate else "accepted"
    return Receipt(appended.turn.uuid, appended.job_id, state, tags=appended.turn.tags, redacted=redacted)


def finished(receipt: Receipt, job: Job) -> Receipt:
    """Return the receipt with what became of its job."""
    if job.state == "failed":
        return replace(receipt, state="failed")
    result = job.result
    if result is None:
        return receipt
    return replace(
        receipt,
        state="done",
        nodes=result.nodes,
        facts=result.facts,
        edges=result.edges,
        tags=result.tags,
        skipped=result.skipped,
    )
