"""The formats that an import knows, their recognition by content, and PPS's own: JSON lines.

A line: ``{"content": …, "role": …, "actor": …, "session": …, "occurred_at": …, "source_ref": …,
"tags": [], "nodes": [{"name", "kind", "summary", "aliases", "tags", "attributes"}], "facts":
[{"subject", "relation", "object", "text", "valid_at", "invalid_at", "invalidates", "kind"}]}``.
Only ``content`` is needed; unknown names are errors.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pps.core.errors import InvalidRequest
from pps.core.values import Chunk
from pps.ingest.drafts import RememberOptions
from pps.ingest.given_input import EXPORTED, ZONE, FactInput, Moment, NodeInput
from pps.ingest.importing import (
    chat_programs,
    claude_code,
    conversations,
    markdown,
    memory_programs,
)
from pps.ingest.importing.items import Item, Passed, Read, Unreadable
from pps.ingest.importing.source_files import Source, SourceError
from pps.ingest.importing.streams import (
    LINES,
    JSONEntry,
    StreamObject,
    first_sign,
    objects,
    raw_lines,
)

_LOOK_LINES = 50


class TurnLine(BaseModel):
    """A message as it stands in JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    content: str
    role: Literal["user", "assistant", "system", "tool"] = "user"
    actor: str = ""
    session: str = ""
    source: str = "import"
    source_ref: str = ""
    occurred_at: Moment | None = None
    kind: str = "turn"
    tags: tuple[str, ...] = ()
    nodes: tuple[NodeInput, ...] = ()
    facts: tuple[FactInput, ...] = ()
    chunk: tuple[str, int, int] | None = None

    def options(self) -> RememberOptions:
        options = RememberOptions(
            role=self.role,
            actor=self.actor,
            source=self.source,
            kind=self.kind,
            tags=self.tags,
            nodes=[node.draft() for node in self.nodes],
            facts=[fact.draft() for fact in self.facts],
        )
        if self.session:
            options["session"] = self.session
        if self.occurred_at:
            options["occurred_at"] = self.occurred_at
        if self.chunk:
            options["chunk"] = Chunk(*self.chunk)
        return options


def _read_turns(source: Source) -> Iterator[Read]:
    """Yield a file's messages; an invalid line is reported, and the rest goes on.

    A line without ``source_ref`` gets one from the file's name, the line's number and its content.
    So reading the same file twice stores each message once, and another file of that name or a
    changed line is another message.
    """
    for raw_line in raw_lines(source):
        if isinstance(raw_line, Unreadable):
            yield raw_line
            continue
        raw, where = raw_line
        if raw.startswith(b'{"record":'):
            yield Passed(
                "records of packs' kinds: --format records imports them from the same file"
            )
            continue
        if raw.startswith(b'{"feature":'):
            yield Passed("rows of features' tables: the feature that wrote them reads them")
            continue
        try:
            line = TurnLine.model_validate_json(
                raw.removeprefix(b"\xef\xbb\xbf"), context={ZONE: None, EXPORTED: True}
            )
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            yield Unreadable(f"{where}: {field}" if field else where, first["msg"])
            continue
        ref = f"{where.rpartition('/')[2]}:{hashlib.sha256(raw.strip()).hexdigest()[:12]}"
        yield Item(line.content, {**line.options(), "source_ref": line.source_ref or ref}, where)


def read_lines(path: Path) -> Iterator[tuple[str, RememberOptions]]:
    """Yield (content, options) for each message of a file; InvalidRequest names an invalid line."""
    for read in _read_turns(Source(path.name, path, path.parent, 0)):
        if isinstance(read, Unreadable):
            raise InvalidRequest(read.where, read.why)
        if isinstance(read, Item):
            yield read.arguments


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its names, its reader and the suffixes of its files."""

    name: str
    title: str
    read: Callable[[Source], Iterator[Read]]
    suffixes: tuple[str, ...]


FORMATS: Mapping[str, Format] = {
    format_.name: format_
    for format_ in (
        Format("jsonl", "JSON lines, one message a line", _read_turns, LINES),
        Format("claude-code", "Claude Code transcripts", claude_code.read, LINES),
        Format("chatgpt", "ChatGPT's data export", conversations.read_chatgpt, (".json",)),
        Format("claude", "Claude's data export", conversations.read_claude, (".json",)),
        Format("open-webui", "Open WebUI's chats", chat_programs.read_open_webui, (".json",)),
        Format("librechat", "LibreChat's exports", chat_programs.read_librechat, (".json",)),
        Format("codex", "Codex CLI's sessions", chat_programs.read_codex, LINES),
        Format("gemini-cli", "Gemini CLI's sessions", chat_programs.read_gemini, (".json", *LINES)),
        Format(
            "whatsapp",
            "a chat exported by WhatsApp",
            conversations.read_whatsapp,
            conversations.WHATSAPP_SUFFIXES,
        ),
        Format(
            "messages",
            "lists of role and content",
            chat_programs.read_messages,
            (".json", *LINES),
        ),
        Format("mem0", "mem0's memories", memory_programs.read_mem0, (".json", *LINES)),
        Format(
            "mcp-memory",
            "the file of MCP's memory server",
            memory_programs.read_mcp_memory,
            (".json", *LINES),
        ),
        Format("claude-mem", "claude-mem's export", memory_programs.read_claude_mem, (".json",)),
        Format(
            "mcp-memory-service",
            "mcp-memory-service's export",
            memory_programs.read_memory_service,
            (".json",),
        ),
        Format("letta", "Letta's agent files", memory_programs.read_letta, (".af", ".json")),
        Format("graphiti", "a Graphiti graph as JSON", memory_programs.read_graphiti, (".json",)),
        Format("basic-memory", "basic-memory's notes", markdown.read, markdown.SUFFIXES),
        Format("markdown", "Markdown files", markdown.read, markdown.SUFFIXES),
    )
}
"""Every format by its name."""


def _is_turn_line(entry: JSONEntry) -> bool:
    return (
        isinstance(entry.get("content"), str)
        and entry.fields.keys() <= TurnLine.model_fields.keys()
    )


def _is_record_line(entry: JSONEntry) -> bool:
    """Tell whether a line of ``pps export`` is a record or a row of a feature: it needs no turn."""
    return any(isinstance(entry.get(name), dict) for name in ("record", "feature"))


_Tests = tuple[tuple[Callable[[JSONEntry], bool], str], ...]
_OF_LINE: _Tests = (
    (chat_programs.is_codex, "codex"),
    (chat_programs.is_gemini, "gemini-cli"),
    (memory_programs.is_mcp_memory_line, "mcp-memory"),
    (claude_code.is_entry, "claude-code"),
    (memory_programs.is_memory, "mem0"),
    (_is_turn_line, "jsonl"),
    (_is_record_line, "jsonl"),
    (chat_programs.is_message, "messages"),
    (chat_programs.is_message_list, "messages"),
    (lambda entry: isinstance(entry.get("content"), str), "jsonl"),
)
_OF_OBJECT: _Tests = (
    (conversations.is_of_chatgpt, "chatgpt"),
    (conversations.is_of_claude, "claude"),
    (chat_programs.is_open_webui, "open-webui"),
    (chat_programs.is_librechat, "librechat"),
    (chat_programs.is_gemini, "gemini-cli"),
    (memory_programs.is_memory, "mem0"),
    (chat_programs.is_message, "messages"),
    (chat_programs.is_message_list, "messages"),
)
_OF_DOCUMENT: _Tests = (
    (memory_programs.is_letta, "letta"),
    (memory_programs.is_claude_mem, "claude-mem"),
    (memory_programs.is_mcp_memory, "mcp-memory"),
    (memory_programs.is_memory_service, "mcp-memory-service"),
    (memory_programs.is_mem0, "mem0"),
    (memory_programs.is_graphiti, "graphiti"),
    *_OF_OBJECT,
)
"""Tests of a line, of a list's element and of a document; the first that holds names the format."""


def format_of(source: Source) -> Format | None:
    """Return the format of a file by its content; StoreError if it is named as JSON and is none."""
    if source.suffix in markdown.SUFFIXES:
        text = markdown.text_of(source)
        is_basic_memory = isinstance(text, str) and markdown.is_basic_memory(text)
        return FORMATS["basic-memory" if is_basic_memory else "markdown"]
    if source.suffix in LINES:
        for line in itertools.islice(objects(source), _LOOK_LINES):
            if isinstance(line, StreamObject):
                format_ = _first_format(line.entry, _OF_LINE)
                if format_ is not None:
                    return format_
        return None
    if source.suffix in conversations.WHATSAPP_SUFFIXES:
        return FORMATS["whatsapp"] if conversations.is_whatsapp(source) else None
    head = first_sign(source) if source.suffix in (".json", ".af", "") else ""
    if head not in ("[", "{"):
        return None
    first = next(objects(source), None)
    if isinstance(first, Unreadable) and source.given:
        raise SourceError(source.name, first.why)
    if not isinstance(first, StreamObject):
        return None
    return _first_format(first.entry, _OF_OBJECT if head == "[" else _OF_DOCUMENT)


def _first_format(entry: JSONEntry, tests: _Tests) -> Format | None:
    return next((FORMATS[name] for is_of_format, name in tests if is_of_format(entry)), None)
