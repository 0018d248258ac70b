"""Where texts come in: what may be told with one, its tags and links, a place in the queue, then the journal."""

from __future__ import annotations

import math
import re
import time as clock
import unicodedata
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
"""Where the turns of records of packs' kinds come from."""
MAX_TITLE = 80
MAX_SUMMARY = 200
_RETRY_AFTER_S = 5.0
_FLOWS_S = 0.25
_KEEPS_UP = 1_000

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]\n|]{1,200})(?:\|[^\[\]\n]*)?\]\]")
_BEFORE_TAG = re.compile(r"[\w#/&]")
_SPACE = re.compile(r"\s+")
# A full stop of a script with spaces ends a sentence before white space; one of a script without, at once.
_END = re.compile(r"[.!?…؟।۔։]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[」』”’）]*|\n\s*\n")
_ABBREVIATED = re.compile(
    r"(?:^|\W)(?:[^\W\d_]|mr|mrs|ms|dr|prof|st|vs|no|etc|e\.g|i\.e|z\.B|ca|bzw|p|pp|fig)\.$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^[ \t]*\d{1,3}\.$", re.MULTILINE)
_AFTER_ORDINAL = (
    "Jan",
    "Feb",
    "Mär",
    "Apr",
    "Mai",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Okt",
    "Nov",
    "Dez",
)


@dataclass(frozen=True, slots=True)
class Automatic:
    """What is read out of a text without being asked: ``#tags``, and relations by ``[[links]]``."""

    tags: bool = True
    relations: bool = True

    def tags_of(self, given: tuple[str, ...], text: str) -> tuple[str, ...]:
        """Return the tags of a text: those given with it, then its own, as many as there is room for."""
        return tuple(dict.fromkeys((*given, *(tags_in(text) if self.tags else ()))))[
            : bounds.MAX_TAGS
        ]

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
    found: dict[str, None] = {}
    at = prose.find("#")
    while at >= 0:
        end = at + 1
        while end < len(prose) and in_tag(prose[end]):
            end += 1
        tag = tag_of(prose[at + 1 : end])
        if is_tag(tag) and not (at and _BEFORE_TAG.match(prose[at - 1])):
            found[tag] = None
        at = prose.find("#", end)
    return tuple(found)


def links_in(text: str) -> tuple[str, ...]:
    """Return the titles of ``[[links]]``, in order; equal titles (case and space folded) once; code is not read."""
    if "[[" not in text:
        return ()
    found: dict[str, str] = {}
    for match in _LINK.findall(_CODE.sub(" ", text)):
        title = " ".join(match.split())
        found.setdefault(fold(title), title)
    found.pop("", None)
    return tuple(found.values())


def summary_of(content: str) -> str:
    """Return the first sentence if it has at most 200 characters, else the first 200 and ``…``."""
    text = content.strip()
    sentence = _SPACE.sub(" ", text[: _sentence_end(text)]).strip()
    if len(sentence) <= MAX_SUMMARY:
        return sentence
    return _cut(sentence, MAX_SUMMARY).rstrip() + "…"


def title_of(content: str) -> str:
    """Return what a record without a title is called: its first 80 characters, white space folded, any script."""
    text = _SPACE.sub(" ", content[: MAX_TITLE * 8].strip())
    return _cut(text, MAX_TITLE).strip() if len(text) > MAX_TITLE else text


def _sentence_end(text: str) -> int:
    for match in _END.finditer(text):
        before = (text, max(0, match.start() - 8), match.start() + 1)
        if not (
            _ABBREVIATED.search(*before)
            or _NUMBERED.search(*before)
            or _is_ordinal(text, match.start())
        ):
            return match.end()
    return len(text)


def _is_ordinal(text: str, stop: int) -> bool:
    """Tell whether a full stop makes the number before it a third, as in "am 3. Mai"."""
    rest = text[stop + 1 : stop + 8].lstrip(" ")
    return text[stop - 1 : stop].isdigit() and (
        rest[:1].islower() or rest.startswith(_AFTER_ORDINAL)
    )


def _cut(text: str, size: int) -> str:
    """Return at most ``size`` characters, without tearing an accent or a joined sign from its letter."""
    end = min(size, len(text))
    while 1 < end < len(text) and (
        unicodedata.category(text[end])[0] == "M" or text[end - 1] == "\u200d" == text[end]
    ):
        end -= 1
    return text[:end]


class TextOptions(TypedDict, total=False):
    """What may be told about any text that is kept.

    Attributes:
        actor: Who wrote it inside the entity, at most 200 characters.
        session: The conversation, at most 200 characters.
        source, source_ref: Where it came from and its id there; a ref makes a second call a duplicate.
        kind: What it is; at most 200 characters.
        tags: Tags beside the ``#tags`` of the text.
    """

    actor: str
    session: str
    source: str
    source_ref: str
    kind: str
    tags: Sequence[str]


class RememberOptions(TextOptions, total=False):
    """What ``remember`` may be told about a text; its kind is ``turn`` unless given, such as ``summary``.

    Attributes:
        role: ``user`` (default), ``assistant``, ``system`` or ``tool``.
        occurred_at: When it happened, now when not given: a time without a zone is of the entity's, a ``date`` (or
            ``CoarseTime``) has none.
        nodes, facts: What a calling agent read in it (*given*).
        extraction: ``given``, ``rules``, ``command``, ``model`` or ``none``; the entity's setting when not given.
        chunk: Which part of a document it is.
        importance: 0 to 1, as the caller thinks; .5 when not given. Topics, dreams and what is explored go by it.
    """

    role: str
    occurred_at: datetime | None
    nodes: Sequence[NodeDraft]
    facts: Sequence[FactDraft]
    extraction: Extraction
    chunk: Chunk | None
    importance: float


def unset(mode: Extraction) -> frozenset[str]:
    """Return the ways to read that need a setting and are not set up where ``extractor.mode`` is this."""
    return frozenset(("command", "model")) - {mode}


def check_extraction(wanted: str, mode: Extraction) -> None:
    """Raise InvalidRequest, before anything is kept, for a way to read that is unknown or not set up."""
    bounds.check_choice("extraction", wanted, bounds.EXTRACTIONS)
    if wanted in unset(mode):
        raise InvalidRequest(
            "extraction",
            f'nothing is set for {wanted!r}: set extractor.mode = "{wanted}" (PPS_EXTRACTOR__MODE), or leave it out',
        )


def make_draft(
    content: str,
    options: RememberOptions,
    extraction: Extraction,
    redactor: KeyedRedactor,
    automatic: Automatic,
    zone: tzinfo = UTC,
) -> tuple[TurnDraft, JobPayload]:
    """Return the journal's draft and its job, without secrets.

    Where no way to read is given, it is ``extraction``: the setting ``extractor.mode``. Times without a zone are of
    ``zone``, the entity's.

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
    """Return when an event happened, in UTC, and the offset of its own clock where that is not the entity's."""
    if moment is None:
        return None, None
    moment = zoned(moment, zone, field)
    return utc(moment, field), None if moment.tzinfo is zone else offset_of(moment)


def _zoned_fact(number: int, fact: FactDraft, zone: tzinfo) -> FactDraft:
    """Return a fact whose times are aware: one without a zone is of the entity's."""
    return replace(
        fact,
        valid_at=fact.valid_at and zoned(fact.valid_at, zone, f"facts[{number}].valid_at"),
        invalid_at=fact.invalid_at and zoned(fact.invalid_at, zone, f"facts[{number}].invalid_at"),
    )


def check_words(content: str, options: TextOptions) -> None:
    """Raise InvalidRequest for a text, or a word about it, that is too long."""
    bounds.check_length("content", content, 1, bounds.MAX_CONTENT)
    for name in ("actor", "session", "source", "source_ref", "kind"):
        bounds.check_length(name, str(options.get(name, "")), 0, 200)


def drafted(
    content: str, options: TextOptions, redactor: KeyedRedactor, automatic: Automatic
) -> TurnDraft:
    """Return a text with its tags and with where it comes from, as far as that is given, without secrets."""
    if options.get("source") == TYPED_SOURCE:  # their turns' ids follow from it
        raise InvalidRequest(
            "source", f"{TYPED_SOURCE!r} is that of records of packs' kinds: give another one"
        )
    kept, session, source, source_ref = redactor.known_text(
        normalise(content),
        options.get("session") or "",
        options.get("source") or "",
        options.get("source_ref") or "",
    )
    given = bounds.check_tags(redactor.tags(options.get("tags", ())))
    actor = redactor.text(options.get("actor", ""))
    return TurnDraft(
        kept, "user", actor, session, source, source_ref, tags=automatic.tags_of(given, kept)
    )


def accepted(appended: Appended, redacted: int) -> Receipt:
    state: ReceiptState = "duplicate" if appended.duplicate else "accepted"
    return Receipt(
        appended.turn.uuid, appended.job_id, state, tags=appended.turn.tags, redacted=redacted
    )


def finished(receipt: Receipt, job: Job) -> Receipt:
    """Return the receipt with what became of its job."""
    if job.state == "failed":
        return replace(receipt, state="failed")
    if (made := job.result) is None:
        return receipt
    counts = {"nodes": made.nodes, "facts": made.facts, "edges": made.edges}
    return replace(receipt, state="done", tags=made.tags, skipped=made.skipped, **counts)


class Backlog:
    """Counts what waits in the queues of every open entity; ``most`` is the bound."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting = 0
        self._came_at = -math.inf

    def note_single(self) -> None:
        """Note that a turn came by itself, and somebody waits for its acknowledgement."""
        self._came_at = clock.monotonic()

    def flows(self) -> bool:
        """Tell whether turns keep coming one by one, and so few wait that they may be taken in gently."""
        return clock.monotonic() - self._came_at < _FLOWS_S and self.waiting < _KEEPS_UP


class EntityBacklog:
    """Counts what waits in one entity's queue. A place is taken before the journal is written, so nothing is lost.

    Not for several threads: it lives in one event loop, and no bound is overrun between two calls.
    """

    def __init__(self, total: Backlog, most: int) -> None:
        self._total = total
        self.most = most
        self.waiting = 0

    def reserve(self, count: int) -> None:
        """Take places in the queue.

        Raises:
            Overloaded: There are not so many left; nothing was taken.
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
        """Give places back: jobs came to an end, or were never stored."""
        self._add(-min(count, self.waiting))

    def set(self, waiting: int) -> None:
        """Correct the count by what the journal says; a closed entity has 0."""
        self._add(waiting - self.waiting)

    def _add(self, count: int) -> None:
        self.waiting += count
        self._total.waiting += count


def _overloaded(waiting: int, whose: str, setting: str, most: int) -> Overloaded:
    return Overloaded(
        f"{waiting:,} turns of {whose} wait to be taken in, and {setting} allows {most:,}: nothing was stored; "
        f"try again in {_RETRY_AFTER_S:.0f} s, `pps doctor` says what they wait for",
        _RETRY_AFTER_S,
    )


class JobListener(Protocol):
    """Is told that the journal has a new job: the worker."""

    def notify(self, *, one_by_one: bool = False) -> None:
        """Wake up. After ``one_by_one`` more may be on their way: their acknowledgements go first."""
        ...


class Intake:
    """Appends turns to one entity's journal. What it returns is on disk; what it refuses was never written."""

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
            len(entries), append, lambda done: sum(not one.duplicate for one in done)
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
        """Write with places in the queue for ``most`` jobs, and give those back that were not needed.

        Raises Overloaded, as ``append``, and what ``write`` raises.
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
