"""What people and agents changed by hand, the latest first, and undoing it.

Nothing is noted for this: a correction is a turn, a forgetting a row of the recycle bin, a change
of a text and an edit of an anchor a version. Each is undone by what there is for it, and undoing
can be undone in turn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from pps.core.bounds import check_range
from pps.core.errors import Changed, InvalidRequest, NotFound
from pps.core.ids import is_uuid
from pps.core.text import one_line
from pps.core.time import from_micros, micros
from pps.core.values import JSON
from pps.ingest.anchors import Anchors
from pps.ingest.correcting import CORRECTION
from pps.ingest.forget import Forgetting
from pps.ingest.revising import TextChanges
from pps.journal.journal import Journal
from pps.journal.versions import Version
from pps.records.records import Records

EditKind: TypeAlias = Literal["correction", "forgetting", "text", "anchor"]
MOST = 200
_LINE = 200
_ALL = 100_000
_VERSION = re.compile(r"(?P<of>[0-9a-z][0-9a-z-]{0,79})@(?P<number>[1-9][0-9]{0,8})")
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that somebody made.

    Attributes:
        id: What ``undo`` takes.
        text: What it says, in words, at most 200 characters.
        item: The id of what was changed, or an anchor's slug; empty where that is gone.
        actor: Who did it; empty for the person.
        until: Until when it can be undone; None for always.
        why_not: Why it cannot be undone; empty where it can.
    """

    id: str
    kind: EditKind
    text: str
    at: datetime
    item: str = ""
    actor: str = ""
    until: datetime | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Edits:
    """A page of changes, the latest first; ``next_cursor`` is absent on the last."""

    edits: tuple[Edit, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """What was undone; ``undo`` with ``redo`` as the id does it again.

    Attributes:
        item: The id of what is as it was, or an anchor's slug; empty where that is gone.
        text: What was undone, in words.
    """

    id: str
    kind: EditKind
    text: str
    redo: str = ""
    item: str = ""


class Undoing:
    """Changes of one entity, undone by one actor."""

    def __init__(
        self,
        journal: Journal,
        anchors: Anchors,
        forgetting: Forgetting,
        records: Records,
        actor: str,
    ) -> None:
        self._journal = journal
        self._anchors = anchors
        self._forgetting = forgetting
        self._records = records
        self._actor = actor

    async def list(self, *, limit: int = 50, cursor: str = "") -> Edits:
        """Return changes, the latest first.

        Args:
            limit: Most changes, 1 to 200.
            cursor: ``next_cursor`` of the page before.
        """
        check_range("limit", limit, 1, MOST)
        before = _read_cursor(cursor)
        edits = [
            *await self._corrections(before),
            *await self._forgettings(before),
            *await self._text_changes(before, limit + 1),
            *await self._anchor_edits(before, limit + 1),
        ]
        edits.sort(key=lambda edit: edit.at, reverse=True)
        page = edits[:limit]
        more = len(edits) > limit
        return Edits(tuple(page), str(micros(page[-1].at)) if more else None)

    async def undo(self, id: str) -> Undone:
        """Undo a change; raises where that is not possible, and changes nothing then.

        Args:
            id: As ``list`` and the change itself give it; of a correction or a forgetting its first
                8 characters do.

        Raises:
            NotFound: Nothing of this entity has that id, or its time is over.
            InvalidRequest: It is no change that can be undone.
            Changed: It was changed again since: undo that first.
        """
        version = _VERSION.fullmatch(id)
        if version is None:
            return await self._undo_turn_or_forgetting(id)
        number = int(version["number"])
        if is_uuid(version["of"]):
            return await self._undo_text(id, version["of"], number)
        return await self._undo_anchor(id, version["of"], number)

    async def _corrections(self, before: datetime) -> list[Edit]:
        turns = await self._journal.of_kind(CORRECTION, _ALL)
        return [
            Edit(
                turn.uuid,
                "correction",
                one_line(turn.content, _LINE),
                turn.recorded_at,
                turn.uuid,
                turn.actor,
            )
            for turn in turns
            if turn.recorded_at < before and turn.source == CORRECTION
        ]

    async def _forgettings(self, before: datetime) -> list[Edit]:
        return [
            Edit(
                entry.id,
                "forgetting",
                one_line("; ".join(entry.what), _LINE),
                entry.at,
                actor=entry.by,
                until=entry.until,
            )
            for entry in await self._forgetting.list()
            if entry.at < before
        ]

    async def _text_changes(self, before: datetime, limit: int) -> list[Edit]:
        return [
            Edit(
                f"{change.turn}@{change.number}",
                "text",
                one_line(change.content, _LINE),
                change.at,
                change.turn,
                change.actor,
                why_not="" if change.is_latest else "it was changed again since",
            )
            for change in await self._journal.versions.latest(before, limit)
        ]

    async def _anchor_edits(self, before: datetime, limit: int) -> list[Edit]:
        edits: list[Edit] = []
        present: dict[str, int] = {}
        titles = {anchor.slug: anchor.title for anchor in await self._anchors.list()}
        for old in await self._journal.anchor_versions.latest(before, limit):
            if old.slug not in titles:
                continue
            if old.slug not in present:
                present[old.slug] = (await self._anchors.versions(old.slug))[-1].number
            made = old.number + 1
            if made > present[old.slug]:
                continue  # a crash came before the file was replaced
            edits.append(
                Edit(
                    f"{old.slug}@{made}",
                    "anchor",
                    one_line(titles[old.slug], _LINE),
                    old.replaced_at,
                    old.slug,
                    old.actor,
                    why_not="" if made == present[old.slug] else "it was changed again since",
                )
            )
        return edits

    async def _undo_turn_or_forgetting(self, id: str) -> Undone:
        try:
            entry = await self._forgetting.get(id, with_mentions=False)
        except NotFound:
            return await self._undo_correction(id)
        restored = await self._forgetting.restore(entry.id)
        back = [*restored.nodes, *restored.facts, *restored.turns, *restored.anchors]
        # Putting a correction back is what undoing its undoing is: it can be undone again.
        redo = restored.turns[0] if await self._is_correction(restored.turns) else ""
        return Undone(entry.id, "forgetting", "; ".join(entry.what), redo, back[0] if back else "")

    async def _is_correction(self, turns: tuple[str, ...]) -> bool:
        turns_of_fact = await self._journal.turns(list(turns))
        return len(turns_of_fact) == 1 and turns_of_fact[0].kind == CORRECTION

    async def _undo_correction(self, id: str) -> Undone:
        [whole] = await self._journal.begun([id])
        turn = await self._journal.turn(whole) if is_uuid(whole) else None
        if turn is None:
            raise NotFound()
        if turn.kind != CORRECTION or turn.source != CORRECTION:
            raise InvalidRequest(
                "id",
                "is a turn that corrects no fact; 'forget' takes it out, 'history' has its "
                "versions",
            )
        job = await self._journal.queue.of_turn(turn.uuid)
        done = await self._forgetting.forget([turn.uuid], dry_run=False, soft=True, why="undone")
        corrected = job.payload.retractions if job else ()
        item = corrected[0].fact if corrected else ""
        return Undone(
            turn.uuid, "correction", one_line(turn.content, _LINE), done.restorable_as, item
        )

    async def _undo_text(self, id: str, turn: str, number: int) -> Undone:
        versions = {version.number: version for version in await self._journal.versions.of(turn)}
        if number not in versions or number - 1 not in versions:
            raise NotFound()
        if number != max(versions):
            raise Changed("the text was changed again since: undo the later change first")
        undone = versions[number]
        before = versions[number - 1]
        receipt = await self._records.update(turn, **_changes_back(undone, before, self._actor))
        text = one_line(undone.content, _LINE)
        return Undone(id, "text", text, f"{turn}@{receipt.version}", turn)

    async def _undo_anchor(self, id: str, slug: str, number: int) -> Undone:
        versions = await self._anchors.versions(slug)
        if not 2 <= number <= versions[-1].number:
            raise NotFound()
        if number != versions[-1].number:
            raise Changed("the anchor was changed again since: undo the later change first")
        info = await self._anchors.revert(slug, number - 1, actor=self._actor, expected=number)
        return Undone(id, "anchor", info.title, f"{slug}@{number + 1}", slug)


def _changes_back(undone: Version, before: Version, actor: str) -> TextChanges:
    """Return the changes that make a text what it was in the version before."""
    changes: TextChanges = {"content": before.content, "tags": before.tags, "actor": actor}
    if undone.title != before.title:
        changes["title"] = before.title
    if undone.kind != before.kind:
        changes["kind"] = before.kind
    if undone.fields != before.fields:
        gone: dict[str, JSON] = {name: None for name in undone.fields if name not in before.fields}
        changes["metadata"] = {**gone, **before.fields}
    return changes


def _read_cursor(cursor: str) -> datetime:
    if not cursor:
        return _END_OF_TIME
    if not re.fullmatch(r"[0-9]{1,17}", cursor):
        raise InvalidRequest("cursor", "must be 'next_cursor' of the page before")
    return from_micros(int(cursor))
