"""Anchors: Markdown files of an entity that stay findable as they are ("word photos").

The file is the truth. What the indexes hold of it is known by the file's digest, kept in the
journal, so that a start looks at every file and indexes only what is new.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

import numpy as np

from pps.core.bounds import MAX_ANCHOR, MAX_ANCHOR_TITLE
from pps.core.errors import Changed, InvalidRequest, NotFound
from pps.core.text import chunks, normalise
from pps.core.time import micros, now
from pps.core.values import AnchorPassage, Skipped
from pps.index.indexes import EntityIndexes, IndexDoc
from pps.ingest import anchor_files
from pps.ingest.anchor_files import AnchorFile, AnchorFolder, AnchorText, Unread, parse
from pps.ingest.redact import Redactor, clipped
from pps.journal.journal import Journal
from pps.models.protocols import Embedder, Matrix, Vector

STATIC = "static"
"""The tag of anchors that every session starts with."""
_COLLECTION = "anchors"
_STATE = "anchors"
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class AnchorInfo:
    """What an anchor is, without its text; ``redacted`` counts secrets that were taken out when it was saved."""

    slug: str
    title: str
    characters: int
    modified_at: datetime
    tags: tuple[str, ...] = ()
    redacted: int = 0


@dataclass(frozen=True, slots=True)
class Anchor:
    """An anchor whole; ``digest`` tells whether it was changed since."""

    slug: str
    title: str
    text: str
    tags: tuple[str, ...]
    modified_at: datetime
    digest: str


@dataclass(frozen=True, slots=True)
class AnchorVersion:
    """What an anchor is or was, from ``at`` on.

    Attributes:
        number: Counts from 1; the highest is the present one.
        actor: Who wrote it, where the memory saw that; empty for the person.
    """

    slug: str
    number: int
    title: str
    text: str
    tags: tuple[str, ...]
    at: datetime
    actor: str = ""


@dataclass(frozen=True, slots=True)
class ResyncReport:
    """How many anchors were indexed anew, dropped from the indexes, or left as they were."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The anchors that a folder became, and the files that were left out."""

    saved: tuple[AnchorInfo, ...]
    unchanged: int
    skipped: tuple[Skipped, ...]


class Anchors:
    """The anchors of one entity; calls that change something run one after another.

    Secrets are taken out of what is saved or imported before it is written, and of a file that somebody else wrote
    before it is indexed or shown. The journal keeps which digests the indexes hold.
    """

    def __init__(
        self,
        folder: Path,
        indexes: EntityIndexes,
        embedder: Embedder | None,
        journal: Journal,
        *,
        redaction: bool = True,
    ) -> None:
        self._folder = AnchorFolder(folder)
        self._indexes = indexes
        self._embedder = embedder
        self._journal = journal
        self._redaction = redaction
        self._lock = asyncio.Lock()

    async def save(
        self,
        title: str,
        text: str,
        *,
        slug: str | None = None,
        tags: Sequence[str] = (),
        expected: str = "",
        actor: str = "",
    ) -> AnchorInfo:
        """Write an anchor to disk and index it; after a ModelError it is on disk, and the next ``resync`` indexes it.

        A slug that exists is replaced; with ``expected``, only while it has that digest (else Changed), and what else
        its front matter says stays. None makes one of the title, with a number when another anchor has it; the same
        title (1 to 200 characters) and text (1 to 1,000,000) again change nothing. What is replaced stays as a version.
        """
        anchor, redacted = await asyncio.to_thread(self._redacted, _checked(title, text, tags))
        if slug is not None:
            anchor_files.check_slug(slug)
        async with self._lock:
            name = slug or await asyncio.to_thread(self._name_for, anchor)
            if expected:
                before = self._parsed(await asyncio.to_thread(self._file, name))
                if _digest(before) != expected:
                    raise Changed("the anchor was changed since it was read: read it again")
                anchor = replace(anchor, source=before.source, others=before.others)
            return replace(await self._put(name, anchor, actor), redacted=redacted)

    async def versions(self, slug: str) -> list[AnchorVersion]:
        """Return what an anchor was and is, oldest first; NotFound when there is none of that slug."""
        file = await asyncio.to_thread(self._file, anchor_files.check_slug(slug))
        present = await asyncio.to_thread(self._parsed, file)
        before = await self._journal.anchor_versions.of(slug)
        if before and before[-1].text == anchor_files.compose(present):
            before = before[:-1]  # a crash came before the file was replaced
        versions: list[AnchorVersion] = []
        actor = ""
        for old in before:
            text = parse(old.text, slug)
            versions.append(
                AnchorVersion(
                    slug, old.number, text.title, text.body, text.tags, old.modified_at, actor
                )
            )
            actor = old.actor
        number = before[-1].number + 1 if before else 1
        versions.append(
            AnchorVersion(
                slug, number, present.title, present.body, present.tags, file.modified_at, actor
            )
        )
        return versions

    async def revert(
        self, slug: str, number: int, *, actor: str = "", expected: int | None = None
    ) -> AnchorInfo:
        """Let an anchor be what it was in one of its versions; that is a new version.

        Raises:
            NotFound: There is no such anchor.
            InvalidRequest: It has no such version.
            Changed: The present version is not ``expected``, where that is given.
        """
        async with self._lock:
            versions = await self.versions(slug)
            if expected is not None and versions[-1].number != expected:
                raise Changed(f"the anchor was changed since: version {versions[-1].number} stands")
            if all(version.number != number for version in versions):
                raise InvalidRequest(
                    "version", f"must be one of 1 to {versions[-1].number}, as anchor_history shows"
                )
            replaced = await self._journal.anchor_versions.of(slug)
            texts = {old.number: old.text for old in replaced}
            if number not in texts:  # the present one
                file = await asyncio.to_thread(self._file, slug)
                return _info(file, parse(file.text, slug))
            return await self._put(slug, parse(texts[number], slug), actor)

    async def list(self) -> list[AnchorInfo]:
        files, _ = await asyncio.to_thread(self._folder.scan)
        return [_info(file, parse(file.text, file.slug)) for file in files]

    async def texts(self) -> list[Anchor]:
        """Return all anchors whole."""
        files, _ = await asyncio.to_thread(self._folder.scan)
        return await asyncio.to_thread(lambda: [self._whole(file) for file in files])

    async def static(self) -> list[AnchorPassage]:
        """Return the beginnings of the anchors that every session starts with: those tagged ``static``."""
        files, _ = await asyncio.to_thread(self._folder.scan)
        anchors = [
            (file, await asyncio.to_thread(self._parsed, file))
            for file in files
            if STATIC in file.text
        ]
        return [
            AnchorPassage(file.slug, 0, one.title, one.body, file.modified_at)
            for file, one in anchors
            if STATIC in one.tags
        ]

    async def passages(self, slug: str) -> list[AnchorPassage]:
        file = await asyncio.to_thread(self._file, slug)
        anchor = await asyncio.to_thread(self._parsed, file)
        parts = await asyncio.to_thread(self._split, anchor.body)
        return [
            AnchorPassage(slug, at, anchor.title, part, file.modified_at)
            for at, part in enumerate(parts)
        ]

    async def read(self, slug: str) -> Anchor:
        file = await asyncio.to_thread(self._file, anchor_files.check_slug(slug))
        return await asyncio.to_thread(self._whole, file)

    async def delete(self, slug: str, *, missing_ok: bool = False) -> None:
        anchor_files.check_slug(slug)
        async with self._lock:
            await self._journal.anchor_versions.forget([slug])
            removed = await asyncio.to_thread(self._folder.remove, slug)
            if not removed and not missing_ok:
                raise NotFound("anchor")
            await self._indexes.apply([], [(_COLLECTION, slug)])
            await self._indexes.purge()  # deleted means that its text is on no disk
            state = await self._state()
            state.pop(slug, None)
            await self._keep(state)

    async def kept(self, slug: str) -> tuple[AnchorFile, Matrix]:
        """Return an anchor's file as it is and its vectors, none when they are not there."""
        file = await asyncio.to_thread(self._file, slug)
        return file, (await self._indexes.parts(_COLLECTION, [slug])).get(
            slug, np.zeros((0, 0), np.float32)
        )

    async def restore(self, kept: AnchorFile, vectors: Sequence[Vector]) -> None:
        """Write a file that ``kept`` returned, unless there is one of that slug."""
        async with self._lock:
            if await asyncio.to_thread(self._folder.read, kept.slug) is None:
                file = await asyncio.to_thread(
                    self._folder.write, kept.slug, kept.text, kept.modified_at
                )
                doc = await asyncio.to_thread(self._doc, file, vectors)
                await self._indexes.apply([doc])
                await self._keep({**await self._state(), file.slug: file.digest})

    async def resync(self, *, force: bool = False) -> ResyncReport:
        """Index files that are new or changed (``force``: every file) and drop those that are gone."""
        async with self._lock:
            await asyncio.to_thread(self._folder.sweep)
            files, unread = await asyncio.to_thread(self._folder.scan)
            known = await self._state()
            held = await self._held()
            stale = [
                file
                for file in files
                if force or known.get(file.slug) != file.digest or file.slug not in held[0]
            ]
            gone = sorted((known.keys() | held[1]) - {file.slug for file in files})
            for at in range(0, len(stale), _AT_ONCE):
                await self._index(stale[at : at + _AT_ONCE])
            await self._indexes.apply([], [(_COLLECTION, slug) for slug in gone])
            if gone:
                await self._journal.anchor_versions.forget(gone)
            await self._keep({file.slug: file.digest for file in files})
        added = sum(file.slug not in known for file in stale)
        skipped = tuple(Skipped(one.name, one.why) for one in unread)
        return ResyncReport(added, len(stale) - added, len(gone), len(files) - len(stale), skipped)

    async def import_folder(self, path: Path) -> ImportReport:
        """Copy the Markdown files of a folder, and of those below it, into the anchors.

        Hidden names and links are left alone. A file that was imported before is updated in place.
        """
        found, skipped = await asyncio.to_thread(_outside, path)
        saved: list[AnchorInfo] = []
        unchanged = 0
        async with self._lock:
            before = await asyncio.to_thread(self._sources)
            for one in found:
                anchor, redacted = await asyncio.to_thread(self._redacted, one)
                slug = before.get(anchor.source) or await asyncio.to_thread(self._name_for, anchor)
                if await asyncio.to_thread(self._is_kept, slug, anchor):
                    unchanged += 1
                else:
                    saved.append(replace(await self._put(slug, anchor), redacted=redacted))
        return ImportReport(tuple(saved), unchanged, tuple(skipped))

    async def _put(self, slug: str, anchor: AnchorText, actor: str = "") -> AnchorInfo:
        """Write an anchor; what it replaces is kept first."""
        before = await asyncio.to_thread(self._folder.read, slug)
        if before is not None:
            text = anchor_files.compose(await asyncio.to_thread(self._parsed, before))
            if text != anchor_files.compose(anchor):
                await self._journal.anchor_versions.keep(
                    slug, text, before.modified_at, now(), actor
                )
        file = await asyncio.to_thread(self._folder.write, slug, anchor_files.compose(anchor))
        await self._index([file])
        state = await self._state()
        await self._keep({**state, slug: file.digest})
        return _info(file, parse(file.text, slug))

    async def _index(self, files: Sequence[AnchorFile]) -> None:
        docs = await asyncio.to_thread(lambda: [self._doc(file) for file in files])
        await self._indexes.apply(docs, [])

    def _doc(self, file: AnchorFile, known: Sequence[Vector] = ()) -> IndexDoc:
        anchor = self._parsed(file)
        passages = tuple(self._split(anchor.body))
        vectors = np.stack(known) if len(known) == len(passages) else None
        if self._embedder is not None and vectors is None:
            # A passage of a long anchor says little without the title that it stands under.
            vectors = self._embedder.embed_passages(
                [f"{anchor.title}\n{passage}" for passage in passages]
            )
        title = " ".join((anchor.title, *anchor.tags))
        at = micros(file.modified_at)
        return IndexDoc(
            "anchor",
            file.slug,
            _COLLECTION,
            anchor.body,
            title,
            at,
            passages=passages,
            vectors=vectors,
        )

    def _file(self, slug: str) -> AnchorFile:
        if (file := self._folder.read(slug)) is None:
            raise NotFound("anchor")
        return file

    def _whole(self, file: AnchorFile) -> Anchor:
        text = self._parsed(file)
        return Anchor(file.slug, text.title, text.body, text.tags, file.modified_at, _digest(text))

    def _parsed(self, file: AnchorFile) -> AnchorText:
        return self._redacted(parse(file.text, file.slug))[0]

    def _redacted(self, anchor: AnchorText) -> tuple[AnchorText, int]:
        """Return an anchor without secrets, and how many there were. Runs in a thread: anchors may be long."""
        redactor = Redactor(on=self._redaction)
        clean = replace(
            anchor,
            title=clipped(redactor.text(anchor.title), MAX_ANCHOR_TITLE, ""),
            body=redactor.text(anchor.body),
            tags=redactor.tags(anchor.tags),
            others=redactor.texts(anchor.others),
        )
        return clean, redactor.count

    def _split(self, body: str) -> list[str]:
        parts = self._embedder.split(body) if self._embedder else list(chunks(body))
        return parts or [""]

    def _name_for(self, anchor: AnchorText) -> str:
        """Return the title's slug if it is free or already holds this very anchor, else a numbered one."""
        origin = PurePosixPath(anchor.source).with_suffix("") if anchor.source else anchor.title
        wanted = anchor_files.slug_of(str(origin))
        return (
            wanted
            if self._is_kept(wanted, anchor)
            else anchor_files.free_slug(wanted, self._folder.slugs())
        )

    def _is_kept(self, slug: str, anchor: AnchorText) -> bool:
        file = self._folder.read(slug)
        return file is not None and parse(file.text, slug) == anchor

    def _sources(self) -> dict[str, str]:
        files, _ = self._folder.scan()
        named = ((parse(file.text, file.slug).source, file.slug) for file in files)
        return {source: slug for source, slug in named if source}

    async def _held(self) -> tuple[set[str], set[str]]:
        """Return the slugs that every index holds, and those that any of them holds."""
        vectors, text = await self._indexes.owners(_COLLECTION)
        return (text, text) if vectors is None else (text & vectors, text | vectors)

    async def _state(self) -> dict[str, str]:
        return json.loads(await self._journal.get_meta(_STATE) or "{}")

    async def _keep(self, state: dict[str, str]) -> None:
        await self._journal.set_meta(_STATE, json.dumps(state, sort_keys=True))


def _checked(title: str, text: str, tags: Sequence[str]) -> AnchorText:
    title = " ".join(normalise(title).split())
    if not 1 <= len(title) <= MAX_ANCHOR_TITLE:
        raise InvalidRequest("title", f"must be 1 to {MAX_ANCHOR_TITLE} characters")
    body = anchor_files.tidy(text)
    if not body or len(body) > MAX_ANCHOR:
        raise InvalidRequest("text", f"must be 1 to {MAX_ANCHOR:,} characters")
    return AnchorText(
        title, body, tuple(dict.fromkeys(tag.removeprefix("#").lower() for tag in tags))
    )


def _digest(anchor: AnchorText) -> str:
    """Return a digest of what is shown: of a secret that was taken out it tells nothing."""
    return hashlib.sha256(anchor_files.compose(anchor).encode()).hexdigest()[:16]


def _info(file: AnchorFile, anchor: AnchorText) -> AnchorInfo:
    return AnchorInfo(file.slug, anchor.title, len(anchor.body), file.modified_at, anchor.tags)


def _outside(folder: Path) -> tuple[list[AnchorText], list[Skipped]]:
    if not folder.is_dir():
        raise InvalidRequest("path", "must be a folder")
    found: list[AnchorText] = []
    skipped: list[Skipped] = []
    for one in anchor_files.read_below(folder):
        if isinstance(one.read, Unread):
            skipped.append(Skipped(one.path, one.read.why))
        elif one.read and (anchor := parse(one.read.text, PurePosixPath(one.path).stem)).body:
            found.append(replace(anchor, source=one.path))
        else:
            skipped.append(Skipped(one.path, "empty"))
    return found, skipped
