"""The formats that an import knows, and telling them apart by what a file holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pps.core.errors import StoreError
from pps.core.values import JSON
from pps.ingest.importing import chat, chatgpt, claude_ai, claude_code, graphiti, markdown, mem0
from pps.ingest.importing.items import Reader, Unreadable, mapping
from pps.ingest.importing.notes import is_basic_memory
from pps.ingest.importing.sources import Source
from pps.ingest.importing.streams import document, elements, lines

_LOOK_LINES = 50
_LINES = (".jsonl", ".ndjson")
_JSON = (".json", *_LINES)


@dataclass(frozen=True, slots=True)
class Format:
    """A format: what it is called, how it is read, and the endings of its files."""

    name: str
    title: str
    read: Reader
    suffixes: tuple[str, ...]


FORMATS: Mapping[str, Format] = {
    one.name: one
    for one in (
        Format("jsonl", "JSON lines, one message a line", chat.read, _LINES),
        Format("claude-code", "Claude Code transcripts", claude_code.read, _LINES),
        Format("chatgpt", "ChatGPT's data export", chatgpt.read, (".json",)),
        Format("claude", "Claude's data export", claude_ai.read, (".json",)),
        Format("mem0", "mem0's memories", mem0.read, _JSON),
        Format("graphiti", "a Graphiti graph as JSON", graphiti.read, (".json",)),
        Format("basic-memory", "basic-memory's notes", markdown.read_basic_memory, markdown.SUFFIXES),
        Format("markdown", "Markdown files", markdown.read, markdown.SUFFIXES),
    )
}
"""Every format by its name."""


def format_of(source: Source) -> Format | None:
    """Return the format of a file by its content; None when it is none that is known.

    Raises:
        StoreError: The file cannot be read, or was named as JSON and is none.
    """
    if source.suffix in markdown.SUFFIXES:
        text = markdown.text_of(source)
        return FORMATS["basic-memory" if isinstance(text, str) and is_basic_memory(text) else "markdown"]
    if source.suffix in _LINES:
        return _of_lines(source)
    return _of_json(source) if source.suffix in (".json", "") else None


_OF_LINE: tuple[tuple[Callable[[Mapping[str, JSON]], bool], str], ...] = (
    (claude_code.is_entry, "claude-code"),
    (mem0.is_memory, "mem0"),
    (lambda value: isinstance(value.get("content"), str), "jsonl"),
)
_OF_OBJECT: tuple[tuple[Callable[[Mapping[str, JSON]], bool], str], ...] = (
    (chatgpt.is_conversation, "chatgpt"),
    (claude_ai.is_conversation, "claude"),
    (claude_ai.is_project, "claude"),
    (claude_ai.is_memories, "claude"),
    (mem0.is_memory, "mem0"),
)
_OF_DOCUMENT = (*_OF_OBJECT, (mem0.is_export, "mem0"), (graphiti.is_export, "graphiti"))


def _of_lines(source: Source) -> Format | None:
    for line in itertools.islice(lines(source), _LOOK_LINES):
        if not isinstance(line, Unreadable):
            value = mapping(line.value)
            for is_one, name in _OF_LINE:
                if is_one(value):
                    return FORMATS[name]
    return None


def _of_json(source: Source) -> Format | None:
    with source.opened() as file:
        head = file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"["):
        first = next(elements(source), None)
        tests = _OF_OBJECT
    elif head.startswith(b"{"):
        first = document(source)
        tests = _OF_DOCUMENT
    else:
        return None
    if isinstance(first, Unreadable) and source.given:
        raise StoreError(f"{source.name}: {first.why}")
    if first is None or isinstance(first, Unreadable):
        return None
    value = mapping(first.value)
    return next((FORMATS[name] for is_one, name in tests if is_one(value)), None)
