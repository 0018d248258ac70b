"""Anchors: Markdown files of an entity that stay findable as they are ("word photos").

The file is the truth. The journal keeps the digest of each file that is in the indexes, so a start
looks at every file and indexes only those that are new or changed.
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
    """An anchor without its text; ``redacted`` counts the secrets that its saving replaced."""

    slug: str
    title: str
    characters: int
    modified_at: datetime
    tags: tuple[str, ...] = ()
    redacted: int = 0


@dataclass(frozen=True, slots=True)
class Anchor:
    """A whole anchor; a save with its ``digest`` as ``expected`` fails after a change."""

    slug: str
    title: str
    text: str
    tags: tuple[str, ...]
    modified_at: datetime
    digest: str


@dataclass(frozen=True, slots=True)
class AnchorVersion:
    """A version of an anchor, valid from ``at`` on.

    Attributes:
        number: Counts from 1; the highest is the present one.
        actor: Who wrote it, if the memory knows; empty for the person.
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

    Secrets in an anchor that is saved or imported are replaced before it is written; those in a
    file that another program wrote, before it is indexed or shown. The journal keeps the digests of
    the indexed files.
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
        """Write an anchor to disk and index it.

        The replaced text stays as a version. The same title and text again change nothing. After a
        ModelError the anchor is on disk, and the next ``resync`` indexes it.

        Args:
            title: 1 to 200 characters.
            text: Markdown, 1 to 1,000,000 characters.
            slug: The anchor to write or replace. None makes a slug of the title, with a number if
                another anchor has it.
            tags: Tags, with or without ``#``.
            expected: Digest of the anchor to replace; the other fields of its front matter stay.
            actor: Who writes it; empty for the person.

        Raises:
            InvalidRequest: A bound is broken; nothing was changed.
            Changed: The present anchor has another digest than ``expected``.
        """
        anchor, redacted = await asyncio.to_thread(self._redacted, _make_anchor(title, text, tags))
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
        """Return the versions of an anchor, oldest first; NotFound if no anchor has the slug."""
        file = await asyncio.to_thread(self._file, anchor_files.check_slug(slug))
        present = await asyncio.to_thread(self._parsed, file)
        before = await self._journal.anchor_versions.of(slug)
        if before and before[-1].text == anchor_files.compose(present):
            before = before[:-1]  # after a crash before the file was replaced
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
        """Restore a version of an anchor as a new version.

        Raises:
            NotFound: There is no such anchor.
            InvalidRequest: It has no such version.
            Changed: ``expected`` is given, and the present version has another number.
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
        """Return the anchors tagged ``static``, which every session starts with."""
        files, _ = await asyncio.to_thread(self._folder.scan)
        anchors = [
            (file, await asyncio.to_thread(self._parsed, file))
            for file in files
            if STATIC in file.text
        ]
        return [
            AnchorPassage(file.slug, 0, anchor.title, anchor.body, file.modified_at)
            for file, anchor in anchors
            if STATIC in anchor.tags
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
        """Return an anchor's file and its vectors, shape (passages, dimension); (0, 0) if none."""
        file = await asyncio.to_thread(self._file, slug)
        return file, (await self._indexes.parts(_COLLECTION, [slug])).get(
            slug, np.zeros((0, 0), np.float32)
        )

    async def restore(self, saved: AnchorFile, vectors: Sequence[Vector]) -> None:
        """Write a file that ``kept`` returned, unless an anchor has its slug."""
        async with self._lock:
            if await asyncio.to_thread(self._folder.read, saved.slug) is None:
                file = await asyncio.to_thread(
                    self._folder.write, saved.slug, saved.text, saved.modified_at
                )
                doc = await asyncio.to_thread(self._doc, file, vectors)
                await self._indexes.apply([doc])
                await self._keep({**await self._state(), file.slug: file.digest})

    async def resync(self, *, force: bool = False) -> ResyncReport:
        """Index new and changed files (``force``: every file) and drop removed ones."""
        async with self._lock:
            await asyncio.to_thread(self._folder.sweep)
            files, unread = await asyncio.to_thread(self._folder.scan)
            known = await self._state()
            of_vectors, of_text = await self._indexes.owners(_COLLECTION)
            in_every_index = of_text if of_vectors is None else of_text & of_vectors
            in_any_index = of_text if of_vectors is None else of_text | of_vectors
            stale = [
                file
                for file in files
                if force or known.get(file.slug) != file.digest or file.slug not in in_every_index
            ]
            gone = sorted((known.keys() | in_any_index) - {file.slug for file in files})
            for at in range(0, len(stale), _AT_ONCE):
                await self._index(stale[at : at + _AT_ONCE])
            await self._indexes.apply([], [(_COLLECTION, slug) for slug in gone])
            if gone:
                await self._journal.anchor_versions.forget(gone)
            await self._keep({file.slug: file.digest for file in files})
        added = sum(file.slug not in known for file in stale)
        skipped = tuple(Skipped(file.name, file.why) for file in unread)
        return ResyncReport(added, len(stale) - added, len(gone), len(files) - len(stale), skipped)

    async def import_folder(self, path: Path) -> ImportReport:
        """Copy the Markdown files of a folder, and of those below it, into the anchors.

        Hidden names and links are left alone. A file that was imported before is updated in place.
        """
        imported, skipped = await asyncio.to_thread(_read_folder, path)
        saved: list[AnchorInfo] = []
        unchanged = 0
        async with self._lock:
            before = await asyncio.to_thread(self._sources)
            for text in imported:
                anchor, redacted = await asyncio.to_thread(self._redacted, text)
                slug = before.get(anchor.source) or await asyncio.to_thread(self._name_for, anchor)
                if await asyncio.to_thread(self._is_kept, slug, anchor):
                    unchanged += 1
                else:
                    saved.append(replace(await self._put(slug, anchor), redacted=redacted))
        return ImportReport(tuple(saved), unchanged, tuple(skipped))

    async def _put(self, slug: str, anchor: AnchorText, actor: str = "") -> AnchorInfo:
        """Store the text that an anchor replaces as a version, then write the anchor."""
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
            # A passage of a long anchor means little without the anchor's title.
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
        file = self._folder.read(slug)
        if file is None:
            raise NotFound("anchor")
        return file

    def _whole(self, file: AnchorFile) -> Anchor:
        text = self._parsed(file)
        return Anchor(file.slug, text.title, text.body, text.tags, file.modified_at, _digest(text))

    def _parsed(self, file: AnchorFile) -> AnchorText:
        return self._redacted(parse(file.text, file.slug))[0]

    def _redacted(self, anchor: AnchorText) -> tuple[AnchorText, int]:
        """Return an anchor without secrets, and their number. Slow for long texts; blocks."""
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
        """Return the title's slug if it is free or holds an equal anchor, else a numbered one."""
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

    async def _state(self) -> dict[str, str]:
        return json.loads(await self._journal.get_meta(_STATE) or "{}")

    async def _keep(self, state: dict[str, str]) -> None:
        await self._journal.set_meta(_STATE, json.dumps(state, sort_keys=True))


def _make_anchor(title: str, text: str, tags: Sequence[str]) -> AnchorText:
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
    """Return a digest of the redacted text: it reveals nothing of a replaced secret."""
    return hashlib.sha256(anchor_files.compose(anchor).encode()).hexdigest()[:16]


def _info(file: AnchorFile, anchor: AnchorText) -> AnchorInfo:
    return AnchorInfo(file.slug, anchor.title, len(anchor.body), file.modified_at, anchor.tags)


def _read_folder(folder: Path) -> tuple[list[AnchorText], list[Skipped]]:
    if not folder.is_dir():
        raise InvalidRequest("path", "must be a folder")
    anchors: list[AnchorText] = []
    skipped: list[Skipped] = []
    for file in anchor_files.read_below(folder):
        if isinstance(file.read, Unread):
            skipped.append(Skipped(file.path, file.read.why))
        elif file.read and (anchor := parse(file.read.text, PurePosixPath(file.path).stem)).body:
            anchors.append(replace(anchor, source=file.path))
        else:
            skipped.append(Skipped(file.path, "empty"))
    return anchors, skipped
