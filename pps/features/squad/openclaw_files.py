"""Import of OpenClaw's files into a member's memory: beliefs, days, checklist and identity.

Static files become anchors.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from pathlib import Path

from pps.core.errors import InvalidRequest
from pps.core.text import content_hash
from pps.core.time import coarse
from pps.core.user_files import read_text
from pps.core.values import JSON
from pps.features.squad.desk import Desk
from pps.features.squad.squad_members import own_state
from pps.ingest.anchors import STATIC
from pps.records.saving import MAX_RECORDS, RecordGiven

_IDENTITY = "IDENTITY.md"
_STATIC_FILES = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md")
_MOST_BYTES = 1_000_000
CHECKLIST = "heartbeat"
"""Tag of the checks of HEARTBEAT.md; those that are not ticked come back in ``heartbeat``."""
_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-[^/]*)?\.md")
_HEADING = re.compile(r"#+\s+(.*)")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[(?P<tick>[ xX])\]\s+)?(?P<text>.*)")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_ROW = re.compile(r"\s*\|(.+)\|\s*")
_RULE = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*")
_UPDATED = re.compile(r"\s*[_*]*(?:last )?updated\b.*", re.IGNORECASE)
_TIME = re.compile(
    r"[\[(]?(\d{1,2}):(\d{2})(?::\d{2})?\s*(am|pm)?[\])]?\b[\s:,\u2013\u2014-]*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class OpenClawNote:
    """A bullet, paragraph, table row or code block of a Markdown file.

    Attributes:
        headings: The headings above it, outermost first, without times.
        time: The time of day that it, or its heading, begins with.
        is_done: It is ticked in a checklist.
        code: Code blocks that follow it.
    """

    headings: tuple[str, ...]
    text: str
    time: time_of_day | None = None
    is_done: bool = False
    code: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of an import.

    Attributes:
        records: Kind → number of records that were read.
        new: Number of records that did not exist before.
        anchors: Names of the files that were written as anchors.
        skipped: Names of the files that could not be read.
    """

    records: dict[str, int]
    new: int
    anchors: tuple[str, ...]
    skipped: tuple[str, ...]


async def take_in(desk: Desk, folder: Path) -> Taken:
    """Import a folder of OpenClaw's files into the member's own memory; nothing is shared.

    Importing the same folder again adds nothing.

    Raises:
        InvalidRequest: The path is no folder, or none of the files is in it.
    """
    drafts, static, skipped = await asyncio.to_thread(_read, folder)
    if not drafts and not static and not skipped:
        raise InvalidRequest(
            "path",
            "has no MEMORY.md, memory/*.md, HEARTBEAT.md, IDENTITY.md or static file of OpenClaw's",
        )
    identity = static.pop(_IDENTITY, "").strip()
    if identity:
        drafts.append(await own_state(desk, identity[:2_000]))
    new = 0
    for start in range(0, len(drafts), MAX_RECORDS):
        saved = await desk.memory.records.save(drafts[start : start + MAX_RECORDS])
        new += sum(record.change == "created" for record in saved.records)
    for name, text in static.items():
        title = name.removesuffix(".md")
        await desk.memory.anchor_save(title, text, slug=title.lower(), tags=(STATIC,))
    kinds = [draft.kind for draft in drafts]
    return Taken(
        records={kind: kinds.count(kind) for kind in sorted(set(kinds))},
        new=new,
        anchors=tuple(static),
        skipped=tuple(skipped),
    )


def _read(folder: Path) -> tuple[list[RecordGiven], dict[str, str], list[str]]:
    """Return the records of a folder's files, its static files, and names of unreadable files."""
    if not folder.is_dir():
        raise InvalidRequest("path", f"there is no folder {folder}")
    drafts = list[RecordGiven]()
    skipped = list[str]()
    for place, kind in _files(folder):
        text = _text(place)
        if text is None:
            skipped.append(place.name)
        else:
            drafts += _records(place, kind, text)
    static = {
        name: _text(folder / name)
        for name in (_IDENTITY, *_STATIC_FILES)
        if os.path.lexists(folder / name)
    }
    skipped += [name for name, text in static.items() if text is None]
    return drafts, {name: text for name, text in static.items() if text}, skipped


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files that become records, each with the kind of its records."""
    for name, kind in (("MEMORY.md", "Belief"), ("HEARTBEAT.md", "Documentation")):
        if os.path.lexists(folder / name):
            yield folder / name, kind
    for place in sorted((folder / "memory").glob("*.md")):
        yield place, "Experience"
    for place in sorted((folder / "memory" / "projects").glob("*.md")):
        yield place, "Documentation"


def _text(place: Path) -> str | None:
    """Return a file's text; None when it is too large, or no text."""
    try:
        return read_text(place, _MOST_BYTES)
    except (OSError, UnicodeDecodeError):
        return None


def _records(place: Path, kind: str, text: str) -> Iterator[RecordGiven]:
    """Yield the records of one file, those that say the same once."""
    dated = _DATED.fullmatch(place.name)
    day = coarse(date.fromisoformat(dated[1])) if dated else None
    is_project = place.parent.name == "projects"
    is_checklist = place.name == "HEARTBEAT.md"
    name = f"projects/{place.name}" if is_project else place.name
    seen: set[str] = set()
    for note in notes(text):
        ref = f"openclaw:{content_hash(f'{name}:{note.text}')[:32]}"
        if ref in seen:
            continue
        seen.add(ref)
        at: datetime | None = day
        if day and note.time:
            at = datetime.combine(day.date(), note.time, tzinfo=UTC)
        yield RecordGiven(
            kind,
            " ".join(note.text.split())[:120],
            note.text[:2_000],
            fields=_fields(kind, place.stem if is_project else "", note),
            status="archived" if is_checklist and note.is_done else None,
            tags=(CHECKLIST,) if is_checklist else None,
            created_at=at,
            ref=ref,
        )


def _fields(kind: str, project: str, note: OpenClawNote) -> dict[str, JSON]:
    fields: dict[str, JSON] = {}
    if kind == "Belief":
        fields = {"confidence": 0.6, "source_type": "user"}
    elif kind == "Experience":
        fields = {"type": "note"}
    else:
        fields = {"type": "reference" if project else "process"}
    domain = project or (note.headings[-1] if note.headings else "")
    if domain:
        fields["domain"] = domain[:100]
    if len(note.headings) > 1 or (project and note.headings):
        fields["metadata"] = {"headings": " > ".join(note.headings)[:500]}
    if note.code:
        fields["description"] = note.code[:4_000]
    return fields


def notes(text: str) -> list[OpenClawNote]:
    """Return the notes of a Markdown text in their order.

    A bullet, a paragraph and each row of a table is a note of its own; code blocks belong to the
    note before them; headings are kept with what stands below them; "Last updated" lines and the
    heads of tables are left out.
    """
    return _Notes(text.splitlines()).read()


class _Notes:
    """A reader of one Markdown text, line by line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._headings: list[tuple[int, str]] = []
        self._heading_time: time_of_day | None = None
        self._open: list[str] = []
        self._open_is_done = False
        self._columns: list[str] | None = None
        self._notes: list[OpenClawNote] = []

    def read(self) -> list[OpenClawNote]:
        at = 0
        while at < len(self._lines):
            line = self._lines[at]
            fence = _FENCE.match(line)
            if fence:
                at = self._take_code(at, fence[1])
            else:
                self._take_line(line, self._lines[at + 1] if at + 1 < len(self._lines) else "")
                at += 1
        self._close()
        return self._notes

    def _take_line(self, line: str, following: str) -> None:
        heading = _HEADING.match(line)
        row = _ROW.fullmatch(line)
        bullet = _BULLET.match(line)
        if heading:
            self._close()
            self._columns = None
            level = len(line) - len(line.lstrip("#"))
            self._headings = [outer for outer in self._headings if outer[0] < level]
            self._heading_time, title = _time_in(heading[1].strip())
            if title:
                self._headings.append((level, title))
        elif row:
            self._close()
            self._take_row(row[1], following)
        elif not line.strip() or _UPDATED.fullmatch(line):
            self._close()
            self._columns = None
        elif bullet:
            self._close()
            self._open = [bullet["text"].strip()] if bullet["text"].strip() else []
            self._open_is_done = (bullet["tick"] or "").strip() != ""
        else:
            self._open.append(line.strip())

    def _take_row(self, row: str, following: str) -> None:
        cells = [cell.strip() for cell in row.split("|")]
        if _RULE.fullmatch(f"|{row}|"):
            return
        if self._columns is None:
            if _ROW.fullmatch(following) and _RULE.fullmatch(following):
                self._columns = cells
                return
            self._columns = []
        texts: list[str] = []
        for column, cell in enumerate(cells):
            if cell:
                title = self._columns[column] if column < len(self._columns) else ""
                texts.append(f"{title}: {cell}" if title else cell)
        if texts:
            self._add("; ".join(texts), is_done=False)

    def _take_code(self, at: int, fence: str) -> int:
        """Add a code block to the note before it; return the number of the line after it."""
        self._close()
        end = at + 1
        while end < len(self._lines) and not self._lines[end].strip().startswith(fence):
            end += 1
        code = "\n".join(self._lines[at : end + 1])
        if self._notes:
            last = self._notes[-1]
            self._notes[-1] = replace(last, code=f"{last.code}\n{code}".strip())
        return end + 1

    def _close(self) -> None:
        if self._open:
            self._add(" ".join(self._open), is_done=self._open_is_done)
        self._open = []
        self._open_is_done = False

    def _add(self, text: str, *, is_done: bool) -> None:
        own_time, _ = _time_in(text)
        headings = tuple(title for _, title in self._headings)
        self._notes.append(OpenClawNote(headings, text, own_time or self._heading_time, is_done))


def _time_in(text: str) -> tuple[time_of_day | None, str]:
    """Return the time of day that a text begins with, and the text without it."""
    match = _TIME.match(text)
    if match is None:
        return None, text
    hour = int(match[1])
    minute = int(match[2])
    if match[3]:
        hour = hour % 12 + (12 if match[3].lower() == "pm" else 0)
    if hour > 23 or minute > 59:
        return None, text
    return time_of_day(hour, minute), text[match.end() :].strip()
