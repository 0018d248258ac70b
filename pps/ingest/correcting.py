"""Correct a fact by its id: it was never true or is no longer true; another fact may replace it.

A correction is a turn of the kind ``correction`` that closes the fact. Forgetting the turn undoes
it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Literal, TypeAlias

from pps.core.bounds import MAX_TEXT
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import check_uuid
from pps.core.reports import Mentions
from pps.core.text import fold
from pps.core.time import CoarseTime, Time, interval, now, zoned
from pps.core.values import Fact, FactDraft, Node, ReceiptState, RetractionDraft, Skipped
from pps.ingest.drafts import RememberOptions
from pps.ingest.mentions import MentionFinder, NameMentions, NamePattern
from pps.ingest.supersession import BEFORE_EVERYTHING
from pps.ingest.support import content_words
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import Job
from pps.journal.journal import Journal

CORRECTION = "correction"
"""The kind, source and session of a turn that corrects a fact."""
Verdict: TypeAlias = Literal["never_true", "no_longer_true"]
_LEAST_SHARE = 0.5
"""A sentence names a node if it has more than this share of a name's words."""


@dataclass(frozen=True, slots=True)
class RightFact:
    """The fields of the fact that replaces another; empty fields stay as they are."""

    subject: str = ""
    relation: str = ""
    object: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.subject or self.relation or self.object or self.text)


@dataclass(frozen=True, slots=True)
class FactCorrection:
    """A correction that is on disk.

    Attributes:
        turn_id: The turn of the correction; ``undo`` takes it.
        fact: Id of the corrected fact.
        right: Id of the fact that replaces it; empty if none does, or if it is not written yet.
        state: As of ``Receipt``.
        skipped: Parts that were left out, and why.
        mentions: Texts that still state the old fact: the turns that support it, and those that
            name the ends that its sentence names.
    """

    turn_id: str
    fact: str
    state: ReceiptState
    right: str = ""
    skipped: tuple[Skipped, ...] = ()
    mentions: Mentions = field(default_factory=Mentions)


Keep: TypeAlias = Callable[
    [str, RememberOptions, tuple[RetractionDraft, ...]], Awaitable[tuple[str, Job | None]]
]
"""Stores the turn of a correction; returns its id, and its job if that has ended."""


class FactCorrector:
    """Corrects facts of one entity."""

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        mentions: MentionFinder,
        keep: Keep,
    ) -> None:
        self._client = client
        self._journal = journal
        self._mentions = mentions
        self._keep = keep

    async def correct(
        self,
        id: str,
        verdict: Verdict,
        right: RightFact | None = None,
        *,
        since: Time | None = None,
    ) -> FactCorrection:
        """Close a fact, and add the fact that replaces it if one is given.

        Args:
            id: Id of the fact, whole or its first 8 or more characters.
            verdict: ``never_true``: it held at no time; ``no_longer_true``: it ends.
            right: The replacing fact. Without a text it gets the old sentence with the new names.
            since: After ``no_longer_true``: when the fact ends and the replacing one begins, by
                default now. After ``never_true``: when the replacing fact begins, by default as the
                old one.

        Raises:
            NotFound: The id is no fact of this entity.
            InvalidRequest: Fields contradict each other, or the fact has ended already; nothing was
                changed.
        """
        fact = await self._fact(id)
        nodes = {node.uuid: node for node in await self._client.nodes([fact.subject, fact.object])}
        subject = nodes[fact.subject]
        object_ = nodes[fact.object]
        if since is not None:
            since = zoned(since, self._journal.zone, "since")
        _check_open(fact, verdict)
        draft = right_draft(fact, subject, object_, right) if right else None
        if verdict == "never_true":
            if since is not None and draft is None:
                raise InvalidRequest("since", "is for what is right instead; give 'object' too")
            ended_at = None
            begins = since or fact.valid_at
        else:
            ended_at = begins = end_of(fact, since, self._journal.zone)
        if draft is not None:
            draft = replace(draft, valid_at=begins)
        begins_with = "Never true" if verdict == "never_true" else "No longer true"
        words = draft.text if draft else f"{begins_with}: {fact.text}"
        options: RememberOptions = {
            "kind": CORRECTION,
            "source": CORRECTION,
            "source_ref": str(
                uuid.uuid4()
            ),  # the same correction again, after it was undone, is another
            "session": CORRECTION,
            "extraction": "none",
            "facts": [draft] if draft else [],
        }
        turn, job = await self._keep(words, options, (RetractionDraft(fact.uuid, ended_at),))
        mentions = await self._still_said(fact, subject, object_)
        right_id = ""
        if job and draft:
            stated = await self._client.facts_of_episodes([turn])
            right_id = next((other.uuid for other in stated if other.uuid != fact.uuid), "")
        state: ReceiptState = "accepted"
        if job is not None:
            state = "failed" if job.state == "failed" else "done"
        return FactCorrection(
            turn,
            fact.uuid,
            state,
            right_id,
            job.result.skipped if job and job.result else (),
            mentions.without({turn, fact.uuid, right_id, subject.uuid, object_.uuid}).report(),
        )

    async def _still_said(self, fact: Fact, subject: Node, object_: Node) -> NameMentions:
        """Return the texts that state the corrected fact: its turns, and texts that name its ends.

        An end that the fact's own sentence does not name is left out: people call themselves "I".
        """
        names_of_ends = [[node.name, *node.aliases] for node in (subject, object_)]
        named = [names for names in names_of_ends if _names_one(fact.text, names)]
        first, *others = named or names_of_ends
        return await self._mentions.find(
            first, turns=fact.episodes, beside=[name for names in others for name in names]
        )

    async def _fact(self, id: str) -> Fact:
        [whole] = await self._journal.whole([id], path="id")
        facts = await self._client.facts([check_uuid(whole)])
        if not facts:
            raise NotFound()
        if facts[0].kind != "fact":
            raise InvalidRequest("id", "is a relation of records: record_unrelate ends it")
        return facts[0]


def was_never_true(fact: Fact) -> bool:
    """Tell whether a fact held at no time."""
    if fact.invalid_at is None:
        return False
    return fact.invalid_at <= (fact.valid_at or BEFORE_EVERYTHING)


def _check_open(fact: Fact, verdict: Verdict) -> None:
    if was_never_true(fact):
        raise InvalidRequest("id", "names a fact that is known never to have been true")
    if verdict == "no_longer_true" and fact.invalid_at is not None and fact.invalid_at <= now():
        raise InvalidRequest(
            "verdict", "the fact has ended already; if it held at no time, say 'never_true'"
        )


def end_of(fact: Fact, since: Time | None, zone: tzinfo) -> Time:
    """Return when a fact ends that is no longer true, always after its beginning.

    The day of its beginning stands for the end of that day, or for now if that is earlier.

    Raises:
        InvalidRequest: ``since`` lies before the fact's beginning.
    """
    moment = now()
    if since is None:
        return moment
    if fact.valid_at is None or since > fact.valid_at:
        return since
    stretch_end = min(interval(since, zone)[1], moment)
    if isinstance(since, CoarseTime) and stretch_end > fact.valid_at:
        return stretch_end
    raise InvalidRequest(
        "since",
        f"lies before the fact began ({fact.valid_at:%Y-%m-%d}); "
        "if it held at no time, say 'never_true'",
    )


def right_draft(fact: Fact, subject: Node, object_: Node, right: RightFact) -> FactDraft:
    """Return the draft of the fact that replaces another.

    Raises:
        InvalidRequest: The sentence does not name an end of the fact, or cannot be derived from
            the old one.
    """
    new_subject = right.subject.strip() or subject.name
    new_object = right.object.strip() or object_.name
    relation = right.relation.strip() or fact.relation
    text = right.text.strip()
    ends = (("subject", subject, new_subject), ("object", object_, new_object))
    if not text:
        if relation != fact.relation:
            raise InvalidRequest(
                "text", f"must be given with another relation: it says {fact.relation} so far"
            )
        text = fact.text
        triple = f"{subject.name} {fact.relation} {object_.name}"
        for end, node, name in ends:
            text = _renamed(text, end, node, name, triple)
    for end, node, name in ends:
        _check_named(fact, text, end, node, name)
    if fold(text) == fold(fact.text) and (new_subject, relation, new_object) == (
        subject.name,
        fact.relation,
        object_.name,
    ):
        raise InvalidRequest("text", "says what the fact says already; change a field of it")
    if len(text) > MAX_TEXT:
        raise InvalidRequest("text", f"must be 1 to {MAX_TEXT:,} characters")
    return FactDraft(new_subject, relation, new_object, text)


def _renamed(text: str, end: str, node: Node, name: str, triple: str) -> str:
    """Return a sentence with the new name of a node in place of the old one."""
    if name == node.name:
        return text
    for known in (node.name, *node.aliases):
        renamed, count = re.subn(
            rf"(?<!\w){re.escape(known)}(?!\w)", lambda _: name, text, flags=re.IGNORECASE
        )
        if count:
            return renamed
    raise InvalidRequest(
        "text",
        f"must be given with another {end}: {text!r} does not name {node.name!r} (the fact is "
        f"{triple}; its other end may be meant)",
    )


def _check_named(fact: Fact, text: str, end: str, node: Node, name: str) -> None:
    """Raise InvalidRequest if a sentence does not name an end that the old sentence named."""
    is_same = fold(name) in {fold(known) for known in (node.name, *node.aliases)}
    names = [node.name, *node.aliases] if is_same else [name]
    if _names_one(text, names):
        return
    if is_same and not _names_one(fact.text, names):
        return  # the words never named it: "I live there"
    raise InvalidRequest(
        "text",
        f"does not name the {end} {name!r}: change '{end}' with it, or name it in the sentence",
    )


def _names_one(text: str, names: Sequence[str]) -> bool:
    if NamePattern(names).is_in(text):
        return True
    text_words = content_words(text)
    for name in names:
        words = content_words(name)
        if words and len(words & text_words) > _LEAST_SHARE * len(words):
            return True
    return False
