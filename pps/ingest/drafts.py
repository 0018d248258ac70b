"""Turn a text and its options into a draft and a job, and append them to the journal.

Holds the options of ``remember``, the reading of ``#tags`` and ``[[links]]``, and the bounds on how
many jobs may wait.
"""

from __future__ import annotations

import math
import re
import time as clock
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Literal, Protocol, TypeAlias, TypedDict, TypeVar

from pps.core import bounds
from pps.core.bounds import in_tag, is_tag, tag_of
from pps.core.errors import InvalidRequest, Overloaded
from pps.core.text import fold, normalise
from pps.core.time import offset_of, utc, zoned
from pps.core.values import Chunk, FactDraft, NodeDraft, Receipt, ReceiptState
from pps.ingest.redact import KeyedRedactor
from pps.journal.entries import Appended, Job, JobPayload, TurnDraft
from pps.journal.journal import Journal
from pps.journal.versions import ChangeType, Revised, Rework

Extraction: TypeAlias = Literal["given", "rules", "command", "model", "none"]
_T = TypeVar("_T")
TYPED_SOURCE = "record"
"""Source of the turns of records whose kind a pack of kinds defines."""
_RETRY_AFTER_S = 5.0
_FLOWS_S = 0.25
_KEEPS_UP = 1_000

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]\n|]{1,200})(?:\|[^\[\]\n]*)?\]\]")
_BEFORE_TAG = re.compile(r"[\w#/&]")


@dataclass(frozen=True, slots=True)
class Automatic:
    """Which parts of a text are read without a request: ``#tags``, relations by ``[[links]]``."""

    tags: bool = True
    relations: bool = True

    def tags_of(self, request_tags: tuple[str, ...], text: str) -> tuple[str, ...]:
        """Return the tags of a request, then the ``#tags`` of its text, ``MAX_TAGS`` at most."""
        text_tags = tags_in(text) if self.tags else ()
        return tuple(dict.fromkeys((*request_tags, *text_tags)))[: bounds.MAX_TAGS]

    def links_of(self, text: str) -> tuple[str, ...]:
        return links_in(text) if self.relations else ()


def without_code(text: str) -> str:
    """Return a Markdown text with a space for each piece of code."""
    return _CODE.sub(" ", text)


def with_plain_links(text: str) -> str:
    """Return a text with the titles of its ``[[links]]`` alone."""
    return _LINK.sub(r"\1", text)


def tags_in(text: str) -> tuple[str, ...]:
    """Return the ``#tags`` of a text, lower-case, once each, in order; code is not read."""
    if "#" not in text:
        return ()
    prose = _CODE.sub(" ", text)
    tags: dict[str, None] = {}
    at = prose.find("#")
    while at >= 0:
        end = at + 1
        while end < len(prose) and in_tag(prose[end]):
            end += 1
        tag = tag_of(prose[at + 1 : end])
        if is_tag(tag) and not (at and _BEFORE_TAG.match(prose[at - 1])):
            tags[tag] = None
        at = prose.find("#", end)
    return tuple(tags)


def links_in(text: str) -> tuple[str, ...]:
    """Return the titles of ``[[links]]`` outside of code, in order.

    Titles that are equal with case and white space folded come once.
    """
    if "[[" not in text:
        return ()
    titles: dict[str, str] = {}
    for match in _LINK.findall(_CODE.sub(" ", text)):
        title = " ".join(match.split())
        titles.setdefault(fold(title), title)
    titles.pop("", None)
    return tuple(titles.values())


class TextOptions(TypedDict, total=False):
    """Options of any text that is stored.

    Attributes:
        actor: Who wrote it inside the entity, at most 200 characters.
        session: The conversation, at most 200 characters.
        source, source_ref: Where it came from and its id there, at most 200 characters each; a
            second call with the same reference is a duplicate.
        kind: Kind of the text; at most 200 characters.
        tags: Tags beside the ``#tags`` of the text.
    """

    actor: str
    session: str
    source: str
    source_ref: str
    kind: str
    tags: Sequence[str]


class RememberOptions(TextOptions, total=False):
    """Options of ``remember``; the kind defaults to ``turn``.

    Attributes:
        role: ``user`` (default), ``assistant``, ``system`` or ``tool``.
        occurred_at: When it happened, by default now. A time without a zone is in the entity's
            zone; a ``date`` or ``CoarseTime`` has none.
        nodes, facts: Nodes and facts that the calling agent read in the text (*given*).
        extraction: ``given``, ``rules``, ``command``, ``model`` or ``none``; by default the
            entity's setting.
        chunk: Which part of a document it is.
        importance: 0 to 1, 0.5 by default. Topics, dreams and exploration weigh turns by it.
    """

    role: str
    occurred_at: datetime | None
    nodes: Sequence[NodeDraft]
    facts: Sequence[FactDraft]
    extraction: Extraction
    chunk: Chunk | None
    importance: float


def unset(mode: Extraction) -> frozenset[str]:
    """Return the extractions that are not configured if ``extractor.mode`` is ``mode``."""
    return frozenset(("command", "model")) - {mode}


def check_extraction(wanted: str, mode: Extraction) -> None:
    """Raise InvalidRequest for an extraction that is unknown or not configured."""
    bounds.check_choice("extraction", wanted, bounds.EXTRACTIONS)
    if wanted in unset(mode):
        raise InvalidRequest(
            "extraction",
            f'nothing is set for {wanted!r}: set extractor.mode = "{wanted}" '
            "(PPS_EXTRACTOR__MODE), or leave it out",
        )


def make_draft(
    content: str,
    options: RememberOptions,
    extraction: Extraction,
    redactor: KeyedRedactor,
    automatic: Automatic,
    zone: tzinfo = UTC,
) -> tuple[TurnDraft, JobPayload]:
    """Return the journal's draft of a turn and its job, without secrets.

    Args:
        content: 1 to 65,536 characters.
        options: See RememberOptions.
        extraction: The setting ``extractor.mode``; used if the options name no extraction.
        redactor: Replaces secrets by markers.
        automatic: Whether tags and links are read from the text.
        zone: The entity's zone, for times without one.

    Raises:
        InvalidRequest: The first bound that is broken, or a kind or relation that holds a secret.
    """
    check_words(content, options)
    nodes = tuple(options.get("nodes", ()))
    facts = tuple(
        _zoned_fact(number, fact, zone) for number, fact in enumerate(options.get("facts", ()))
    )
    bounds.check_drafts(nodes, facts)
    bounds.check_choice("role", options.get("role", "user"), bounds.ROLES)
    mode = extraction
    extraction = options.get("extraction", extraction)
    check_extraction(extraction, mode)
    importance = options.get("importance", 0.5)
    if not 0 <= importance <= 1:
        raise InvalidRequest("importance", "must be 0 to 1")
    redactor.label("kind", options.get("kind", ""))
    draft = drafted(content, options, redactor, automatic)
    occurred_at, utc_offset_s = time_and_offset(options.get("occurred_at"), zone, "occurred_at")
    chunk = options.get("chunk")
    draft = replace(
        draft,
        role=options.get("role", "user"),
        session=draft.session or "default",
        source=draft.source or "api",
        occurred_at=occurred_at,
        utc_offset_s=utc_offset_s,
        kind=options.get("kind") or "turn",
        importance=importance,
        chunk=replace(chunk, path=redactor.identifier(chunk.path)) if chunk else None,
    )
    nodes = redactor.nodes(nodes)
    facts = redactor.facts(facts)
    links = automatic.links_of(draft.content)
    return draft, JobPayload(nodes=nodes, facts=facts, extraction=extraction, links=links)


def time_and_offset(
    moment: datetime | None, zone: tzinfo, field: str
) -> tuple[datetime | None, int | None]:
    """Return a time in UTC, and its own UTC offset in seconds unless it is in ``zone``."""
    if moment is None:
        return None, None
    moment = zoned(moment, zone, field)
    return utc(moment, field), None if moment.tzinfo is zone else offset_of(moment)


def _zoned_fact(number: int, fact: FactDraft, zone: tzinfo) -> FactDraft:
    """Return a fact whose times are aware; a time without a zone is in ``zone``."""
    return replace(
        fact,
        valid_at=fact.valid_at and zoned(fact.valid_at, zone, f"facts[{number}].valid_at"),
        invalid_at=fact.invalid_at and zoned(fact.invalid_at, zone, f"facts[{number}].invalid_at"),
    )


def check_words(content: str, options: TextOptions) -> None:
    """Raise InvalidRequest for a text or a text option that is too long, or an empty text."""
    bounds.check_length("content", content, 1, bounds.MAX_CONTENT)
    for name in ("actor", "session", "source", "source_ref", "kind"):
        bounds.check_length(name, str(options.get(name, "")), 0, 200)


def drafted(
    content: str, options: TextOptions, redactor: KeyedRedactor, automatic: Automatic
) -> TurnDraft:
    """Return the draft of a turn with its tags and its source, without secrets."""
    if options.get("source") == TYPED_SOURCE:  # their turns' ids follow from it
        raise InvalidRequest(
            "source", f"{TYPED_SOURCE!r} is that of records of packs' kinds: give another one"
        )
    text, session, source, source_ref = redactor.known_text(
        normalise(content),
        options.get("session") or "",
        options.get("source") or "",
        options.get("source_ref") or "",
    )
    request_tags = bounds.check_tags(redactor.tags(options.get("tags", ())))
    actor = redactor.text(options.get("actor", ""))
    tags = automatic.tags_of(request_tags, text)
    return TurnDraft(text, "user", actor, session, source, source_ref, tags=tags)


def accepted(appended: Appended, redacted: int) -> Receipt:
    state: ReceiptState = "duplicate" if appended.duplicate else "accepted"
    return Receipt(
        appended.turn.uuid, appended.job_id, state, tags=appended.turn.tags, redacted=redacted
    )


def finished(receipt: Receipt, job: Job) -> Receipt:
    """Return the receipt with the result of its job, or with state ``failed``."""
    if job.state == "failed":
        return replace(receipt, state="failed")
    result = job.result
    if result is None:
        return receipt
    return replace(
        receipt,
        state="done",
        tags=result.tags,
        skipped=result.skipped,
        nodes=result.nodes,
        facts=result.facts,
        edges=result.edges,
    )


class Backlog:
    """Counts the jobs that wait in the queues of all open entities; ``most`` is the bound."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting = 0
        self._came_at = -math.inf

    def note_single(self) -> None:
        """Note a turn that came by itself: its caller waits for the acknowledgement."""
        self._came_at = clock.monotonic()

    def flows(self) -> bool:
        """Tell whether single turns keep coming and few jobs wait, so that work may slow down."""
        return clock.monotonic() - self._came_at < _FLOWS_S and self.waiting < _KEEPS_UP


class EntityBacklog:
    """Counts the jobs that wait in one entity's queue.

    A place is reserved before the journal is written, so a full queue refuses a turn before it is
    acknowledged. Not thread-safe: it lives in one event loop.
    """

    def __init__(self, total: Backlog, most: int) -> None:
        self._total = total
        self.most = most
        self.waiting = 0

    def reserve(self, count: int) -> None:
        """Take ``count`` places in the queue.

        Raises:
            Overloaded: Fewer places are free; none was taken.
        """
        if self.waiting and self.waiting + count > self.most:
            raise _overloaded(self.waiting, "this memory", "jobs.queue_entity", self.most)
        if self._total.waiting and self._total.waiting + count > self._total.most:
            raise _overloaded(
                self._total.waiting, "all memories", "jobs.queue_total", self._total.most
            )
        if count == 1:
            self._total.note_single()
        self._add(count)

    def release(self, count: int) -> None:
        """Give places back, of jobs that ended or were never stored."""
        self._add(-min(count, self.waiting))

    def set(self, waiting: int) -> None:
        """Set the count to the number of waiting jobs in the journal; 0 for a closed entity."""
        self._add(waiting - self.waiting)

    def _add(self, count: int) -> None:
        self.waiting += count
        self._total.waiting += count


def _overloaded(waiting: int, memories: str, setting: str, most: int) -> Overloaded:
    return Overloaded(
        f"{waiting:,} turns of {memories} wait to be taken in, and {setting} allows {most:,}: "
        f"nothing was stored; try again in {_RETRY_AFTER_S:.0f} s, "
        "`pps doctor` says what they wait for",
        _RETRY_AFTER_S,
    )


class JobListener(Protocol):
    """Is notified of new jobs in the journal; the worker implements it."""

    def notify(self, *, one_by_one: bool = False) -> None:
        """Wake up. After ``one_by_one`` more turns may follow, whose acknowledgements go first."""
        ...


class Intake:
    """Appends turns to one entity's journal.

    A turn is on disk when a call returns; a turn that a call refuses was never written.
    """

    def __init__(self, journal: Journal, worker: JobListener, backlog: EntityBacklog) -> None:
        self._journal = journal
        self._worker = worker
        self._backlog = backlog

    async def append(self, draft: TurnDraft, payload: JobPayload) -> Appended:
        """Store one turn with its job.

        Raises:
            Overloaded: The queue is full; nothing was changed.
            InvalidRequest: A bound is broken; nothing was changed.
        """
        append = partial(self._journal.append, draft, payload)
        return await self.queued(1, append, lambda done: int(not done.duplicate), one_by_one=True)

    async def append_many(self, entries: Sequence[tuple[TurnDraft, JobPayload]]) -> list[Appended]:
        """Store turns in the order given, all of them or none; raises as ``append``."""
        append = partial(self._journal.append_many, entries)
        return await self.queued(
            len(entries), append, lambda done: sum(not appended.duplicate for appended in done)
        )

    async def revise(self, turn: str, change: ChangeType, actor: str, rework: Rework) -> Revised:
        """Change a turn's text and queue its job again.

        Raises:
            Overloaded: The queue is full; nothing was changed.
            NotFound, Revising, InvalidRequest: As ``Versions.revise``.
        """
        revise = partial(self._journal.versions.revise, turn, change, actor, rework)
        return await self.queued(1, revise, lambda done: int(done.changed))

    async def queued(
        self,
        most: int,
        write: Callable[[], Awaitable[_T]],
        count: Callable[[_T], int],
        *,
        one_by_one: bool = False,
    ) -> _T:
        """Reserve places for ``most`` jobs, write, and release the places that were not needed.

        Args:
            most: Places to reserve.
            write: Writes the jobs.
            count: Returns how many jobs the result of ``write`` has queued.
            one_by_one: More single turns may follow.

        Raises Overloaded, as ``append``, and the errors of ``write``.
        """
        self._backlog.reserve(most)
        queued = 0
        try:
            done = await write()
            queued = count(done)
        finally:
            self._backlog.release(most - queued)
        if queued:
            self._worker.notify(one_by_one=one_by_one)
        return done
