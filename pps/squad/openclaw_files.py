"""OpenClaw's files into a member's memory: beliefs, days, the checklist, who it is; static ones as anchors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pps.core.errors import InvalidRequest
from pps.core.text import content_hash
from pps.core.user_files import read_text
from pps.ingest.anchors import STATIC
from pps.records.saving import MAX_RECORDS, RecordGiven
from pps.squad.agents import own_state
from pps.squad.desk import Desk

_IDENTITY = "IDENTITY.md"
_STATIC_FILES = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md")
_MOST_BYTES = 1_000_000
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})\.md")
_HEADING, _BULLET = (
    re.compile(r"#+\s+(.*)"),
    re.compile(r"\s*(?:[-*+]|\d+\.)\s+(?:\[[ xX]\]\s+)?(.*)"),
)


@dataclass(frozen=True, slots=True)
class Taken:
    """What an import read: records by kind, those that are new, and the anchors that were written."""

    records: dict[str, int]
    new: int
    anchors: tuple[str, ...]
    skipped: tuple[str, ...]


async def take_in(desk: Desk, folder: Path) -> Taken:
    """Take in a folder of OpenClaw's; a second time adds nothing. None of it is shared.

    Raises:
        InvalidRequest: It is no folder, or none of the files is in it.
    """
    given, static, skipped = await asyncio.to_thread(_read, folder)
    if not given and not static and not skipped:
        raise InvalidRequest(
            "path",
            "has no MEMORY.md, memory/*.md, HEARTBEAT.md, IDENTITY.md or static file of OpenClaw's",
        )
    if identity := static.pop(_IDENTITY, "").strip():
        given.append(await own_state(desk, identity[:2_000]))
    new = 0
    for at in range(0, len(given), MAX_RECORDS):
        saved = await desk.memory.records.save(given[at : at + MAX_RECORDS])
        new += sum(one.change == "created" for one in saved.records)
    for name, text in static.items():
        title = name.removesuffix(".md")
        await desk.memory.anchor_save(title, text, slug=title.lower(), tags=(STATIC,))
    kinds = [one.kind for one in given]
    return Taken(
        {kind: kinds.count(kind) for kind in sorted(set(kinds))}, new, tuple(static), tuple(skipped)
    )


def _read(folder: Path) -> tuple[list[RecordGiven], dict[str, str], list[str]]:
    """Return the records of a folder's files, its static files, and what could not be read."""
    if not folder.is_dir():
        raise InvalidRequest("path", f"there is no folder {folder}")
    given, skipped = list[RecordGiven](), list[str]()
    for place, kind in _files(folder):
        text = _text(place)
        if text is None:
            skipped.append(place.name)
        else:
            given += _records(place, kind, text)
    static = {
        name: _text(folder / name)
        for name in (_IDENTITY, *_STATIC_FILES)
        if (folder / name).is_file()
    }
    skipped += [name for name, text in static.items() if text is None]
    return given, {name: text for name, text in static.items() if text}, skipped


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    named = {"MEMORY.md": "Belief", "HEARTBEAT.md": "Documentation"}
    yield from ((folder / name, kind) for name, kind in named.items() if (folder / name).is_file())
    yield from ((one, "Experience") for one in sorted((folder / "memory").glob("*.md")))


def _text(place: Path) -> str | None:
    """Return a file's text; None when it is too large, or no text."""
    try:
        return read_text(place, _MOST_BYTES)
    except (OSError, UnicodeDecodeError):
        return None


def _records(place: Path, kind: str, text: str) -> Iterator[RecordGiven]:
    day = _DAY.fullmatch(place.name)
    happened = datetime.fromisoformat(day[1]).replace(tzinfo=UTC) if day else None
    seen: set[str] = set()
    for heading, said in _items(text):
        ref = f"openclaw:{content_hash(f'{place.name}:{said}')[:32]}"
        if ref in seen:
            continue
        seen.add(ref)
        domain = {"domain": heading[:100]} if heading else {}
        fields = {
            "Belief": {"confidence": 0.6, "source_type": "user", **domain},
            "Experience": {"type": "note", **domain},
            "Documentation": {"type": "process", **domain},
        }[kind]
        title = " ".join(said.split())[:120]
        yield RecordGiven(kind, title, said[:2_000], fields=fields, created_at=happened, ref=ref)


def _items(text: str) -> Iterator[tuple[str, str]]:
    """Yield the bullets and paragraphs of a Markdown text, each with its heading."""
    heading, open_ = "", list[str]()
    for line in (*text.splitlines(), ""):
        title, bullet = _HEADING.match(line), _BULLET.match(line)
        if (title or bullet or not line.strip()) and open_:
            yield heading, " ".join(open_)
            open_ = []
        if title:
            heading = title[1].strip()
        elif bullet and bullet[1].strip():
            open_ = [bullet[1].strip()]
        elif line.strip() and not bullet:
            open_.append(line.strip())
