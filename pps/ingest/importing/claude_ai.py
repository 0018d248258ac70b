"""Claude's data export: conversations with their messages in order, projects, and what Claude noted of the person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pps.core.text import content_hash
from pps.core.values import JSON
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.items import (
    Passed,
    Read,
    Unreadable,
    joined,
    mapping,
    moment,
    pieces,
    sequence,
    short,
    string,
)
from pps.ingest.importing.sources import Source
from pps.ingest.importing.streams import conversations
from pps.ingest.sessions import tool_line

SOURCE = "claude"
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def is_conversation(value: Mapping[str, JSON]) -> bool:
    """Tell whether a JSON object is a conversation of this format."""
    return isinstance(value.get("chat_messages"), list)


def is_project(value: Mapping[str, JSON]) -> bool:
    """Tell whether a JSON object is a project of this format."""
    return isinstance(value.get("docs"), list) and bool({"prompt_template", "is_private"} & value.keys())


def is_memories(value: Mapping[str, JSON]) -> bool:
    """Tell whether a JSON object holds what Claude noted of a person and of their projects."""
    return isinstance(value.get("conversations_memory"), str) or isinstance(value.get("project_memories"), dict)


def read(source: Source) -> Iterator[Read]:
    """Yield the messages of each conversation in order, its name and its summary first; or projects, or memories."""
    for one in conversations(source):
        if isinstance(one, Unreadable):
            yield one
        elif is_conversation(found := mapping(one.value)):
            yield from _conversation(found, one.where)
        elif is_project(found):
            yield from _project(found, one.where)
        elif is_memories(found):
            yield from _memories(found, one.where)
        else:
            yield Unreadable(one.where, "is no conversation of Claude: it has no chat_messages")


def _project(found: Mapping[str, JSON], where: str) -> Iterator[Read]:
    common: RememberOptions = {
        "source": SOURCE,
        "session": short(string(found.get("uuid")) or where, 200),
        "role": "system",
        "kind": "note",
        "occurred_at": moment(found.get("created_at")),
    }
    text = joined(string(found.get(name)) for name in ("name", "description", "prompt_template"))
    yield from pieces(text, {**common, "source_ref": f"project:{content_hash(text)[:32]}"}, where)
    for number, one in enumerate(sequence(found.get("docs"))):
        document = mapping(one)
        at = moment(document.get("created_at")) or common.get("occurred_at")
        ref = f"document:{short(string(document.get('uuid')) or str(number), 100)}"
        name, text = string(document.get("filename")), string(document.get("content"))
        options: RememberOptions = {**common, "source_ref": ref, "occurred_at": at}
        yield from pieces(
            f"[{name or 'document'}]\n{text}" if text.strip() else "", options, f"{where} document {number}"
        )


def _memories(found: Mapping[str, JSON], where: str) -> Iterator[Read]:
    projects = mapping(found.get("project_memories"))
    for session, value in (("memories", found.get("conversations_memory")), *projects.items()):
        text = string(value)
        # Claude writes it anew now and then: other words are a turn of their own.
        options: RememberOptions = {
            "source": SOURCE,
            "session": short(session, 200),
            "source_ref": f"memory:{content_hash(text)[:32]}",
            "role": "system",
            "kind": "memory",
        }
        yield from pieces(text, options, where)


def _conversation(found: Mapping[str, JSON], where: str) -> Iterator[Read]:
    session = short(string(found.get("uuid")) or where, 200)
    at = moment(found.get("created_at"))
    common: RememberOptions = {"source": SOURCE, "session": session, "occurred_at": at}
    for name, kind in (("name", "title"), ("summary", "summary")):
        if text := string(found.get(name)):
            told: RememberOptions = {**common, "role": "system", "kind": kind, "source_ref": kind}
            yield from pieces(text, told, where)
    for number, message in enumerate(sequence(found.get("chat_messages"))):
        here = f"{where} message {number}"
        entry = mapping(message)
        role = _ROLES.get(string(entry.get("sender")))
        if role is None:
            yield Unreadable(here, "has no sender of 'human' or 'assistant'")
            continue
        at = moment(entry.get("created_at")) or at
        ref = short(string(entry.get("uuid")) or str(number), 180)
        yield from _message(entry, {**common, "role": role, "source_ref": ref, "occurred_at": at}, here)


def _message(entry: Mapping[str, JSON], options: RememberOptions, where: str) -> Iterator[Read]:
    blocks = [mapping(one) for one in sequence(entry.get("content"))]
    texts = [string(one.get("text")) for one in blocks if one.get("type") == "text"]
    if not any(text.strip() for text in texts):
        texts = [string(entry.get("text"))]
    texts += [text for one in sequence(entry.get("attachments")) if (text := _attached(mapping(one)))]
    texts += [
        f"[file {name}]" for one in sequence(entry.get("files")) if (name := string(mapping(one).get("file_name")))
    ]
    yield from pieces(joined(texts), options, where)
    for number, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "tool_use":
            given = {key: value for key, value in mapping(block.get("input")).items() if isinstance(value, str)}
            ref = f"{options.get('source_ref', '')}:{number}"
            if block.get("name") == "artifacts" and given.get("content", "").strip():
                text = f"[{string(given.get('title')) or 'artifact'}]\n{string(given['content'])}"
                yield from pieces(text, {**options, "source_ref": ref}, where)
                continue
            line = tool_line(string(block.get("name")) or "tool", given)
            yield from pieces(line, {**options, "role": "tool", "source_ref": ref}, where)
        elif kind == "tool_result":
            yield Passed("results of tools")
        elif kind == "thinking":
            yield Passed("thoughts of the model")


def _attached(attachment: Mapping[str, JSON]) -> str:
    name, text = string(attachment.get("file_name")), string(attachment.get("extracted_content"))
    return f"[attached{name and f' {name}'}]\n{text}".strip() if text or name else ""
