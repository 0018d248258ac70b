"""Folders of Markdown, basic-memory's among them: a passage of 200 words is a turn."""

from __future__ import annotations

from collections.abc import Iterator

from pps.ingest.importing.items import Passed, Read, Unreadable, pieces
from pps.ingest.importing.notes import MAX_BYTES, Note, note_turns
from pps.ingest.importing.sources import Source

SUFFIXES = (".md", ".markdown")


def read(source: Source) -> Iterator[Read]:
    """Yield the passages of a Markdown file."""
    yield from _read(source, with_graph=False)


def read_basic_memory(source: Source) -> Iterator[Read]:
    """Yield the passages of a note of basic-memory; its node and relations go with the first."""
    yield from _read(source, with_graph=True)


def text_of(source: Source) -> str | Unreadable:
    """Return the text of a small UTF-8 file."""
    with source.opened() as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        return Unreadable(source.name, f"is over {MAX_BYTES // 1_000_000} MB, which is no note")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Unreadable(source.name, "is not UTF-8: save it in that encoding")
    return Unreadable(source.name, "is binary") if "\0" in text else text


def _read(source: Source, *, with_graph: bool) -> Iterator[Read]:
    text = text_of(source)
    if isinstance(text, Unreadable):
        yield text
        return
    note = Note(source.root, source.name, text, source.modified_at())
    count = 0
    for count, (content, options) in enumerate(note_turns(note, with_graph=with_graph), 1):
        yield from pieces(content, options, f"{source.name} part {count}")
    if not count:
        yield Passed("Markdown files without words")
