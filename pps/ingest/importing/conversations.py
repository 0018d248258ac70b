"""Conversations as their makers export them: ChatGPT's, each a tree of messages, and Claude's, with its projects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pps.core.text import content_hash
from pps.ingest.drafts import RememberOptions
from pps.ingest.hook_events import tool_line
from pps.ingest.importing.items import Passed, Read, Unreadable, joined, pieces, short
from pps.ingest.importing.source_files import Source
from pps.ingest.importing.streams import objects
from pps.ingest.lenient_json import Entry, string
from pps.ingest.redact import clipped

_LINE = 300
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_CANVAS = "canmore.create_textdoc"
_CITED = re.compile(r"\ue200(?:file)?cite\ue202[^\ue200\ue201]*\ue201|【[\d:]{1,20}†[^【】]*】")
"""Where an answer pointed at a page that it had found: a mark without words."""


def is_of_chatgpt(entry: Entry) -> bool:
    return isinstance(entry.get("mapping"), dict)


def read_chatgpt(source: Source) -> Iterator[Read]:
    """Yield the messages of each conversation in order, its title first.

    The branch that the user saw last is taken, from the root to ``current_node``; the others are counted.
    """
    for one in objects(source):
        if isinstance(one, Unreadable):
            yield one
        elif not is_of_chatgpt(one.entry):
            yield Unreadable(one.where, "is no conversation of ChatGPT: it has no mapping")
        else:
            yield from _tree(one.entry, one.where)


def _tree(found: Entry, where: str) -> Iterator[Read]:
    nodes = {name: Entry.of(node) for name, node in found.entry("mapping").fields.items()}
    at = found.moment("create_time")
    common: RememberOptions = {
        "source": "chatgpt",
        "session": short(found.text("conversation_id", "id") or where),
    }
    if title := found.text("title"):
        told: RememberOptions = {
            **common,
            "role": "system",
            "kind": "title",
            "source_ref": "title",
            "occurred_at": at,
        }
        yield from pieces(title, told, where)
    path = _path(nodes, found.text("current_node"))
    spoken = sum(bool(node.get("message")) for node in nodes.values())
    for _ in range(spoken - sum(bool(nodes[name].get("message")) for name in path)):
        yield Passed("messages of branches that were left")
    for name in path:
        message = nodes[name].entry("message")
        at = message.moment("create_time") or at
        if message:
            ref = short(message.text("id") or name)
            yield from _said(
                {**common, "occurred_at": at, "source_ref": ref}, message, f"{where} {name}"
            )


def _path(nodes: Mapping[str, Entry], current: str) -> list[str]:
    """Return the names of the nodes from the root to the current one; without one, to the end behind the latest."""
    if current not in nodes:
        current = _end(nodes)
    path: dict[str, None] = {}
    while current in nodes and current not in path:
        path[current] = None
        current = nodes[current].text("parent")
    return list(path)[::-1]


def _end(nodes: Mapping[str, Entry]) -> str:
    """Return the last node that follows the latest message; of messages without times the last listed is the latest."""

    def time(name: str) -> float:
        at = nodes[name].entry("message").moment("create_time")
        return at.timestamp() if at else 0.0

    current = max(list(nodes)[::-1], key=time, default="")
    seen: set[str] = set()
    while current in nodes and current not in seen:
        seen.add(current)
        children = [
            name for one in nodes[current].values("children") if (name := string(one)) in nodes
        ]
        current = children[-1] if children else current
    return current


def _said(common: RememberOptions, message: Entry, where: str) -> Iterator[Read]:
    role = message.entry("author").text("role")
    content, metadata = message.entry("content"), message.entry("metadata")
    recipient = message.text("recipient") or "all"
    if metadata.get("is_visually_hidden_from_conversation"):
        yield Passed("messages that ChatGPT hides")
    elif content.text("content_type") in ("thoughts", "reasoning_recap"):
        yield Passed("thoughts of the model")
    elif role == "tool":
        yield Passed("results of tools")
    elif role not in ("user", "assistant"):
        yield Passed("messages of the system")
    elif role == "assistant" and recipient == _CANVAS and (document := _canvas(content)):
        yield from pieces(document, {**common, "role": role}, where)
    elif role == "assistant" and recipient != "all":
        said = clipped(" ".join(f"{recipient}: {_words(content)}".split()), _LINE)
        yield from pieces(said, {**common, "role": "tool"}, where)
    else:
        files = [one.text("name") for one in metadata.entries("attachments")]
        said = joined(
            [_CITED.sub("", _words(content)), *(f"[file {name}]" for name in files if name)]
        )
        yield from pieces(said, {**common, "role": role}, where)


def _canvas(content: Entry) -> str:
    """Return title and text of a document that was written on the canvas; nothing when it cannot be read."""
    found = Entry.loaded(_words(content))
    return _titled(found.text("name") or "canvas", found.text("content"))


def _words(content: Entry) -> str:
    """Return the words of a message; what is no text is named where it stands."""
    parts: list[str] = []
    for part in content.values("parts"):
        found = Entry.of(part)
        if text := string(part) or found.text("text"):
            parts.append(text)
        elif kind := found.text("content_type"):
            parts.append(f"[{kind.removesuffix('_asset_pointer').replace('_', ' ')}]")
    return joined(parts or [content.text("text", "result")])


def is_of_claude(entry: Entry) -> bool:
    return (
        isinstance(entry.get("chat_messages"), list)
        or (
            isinstance(entry.get("docs"), list)
            and (entry.has("prompt_template") or entry.has("is_private"))
        )
        or isinstance(entry.get("conversations_memory"), str)
        or isinstance(entry.get("project_memories"), dict)
    )


def read_claude(source: Source) -> Iterator[Read]:
    """Yield the messages of each conversation in order, its name and its summary first; or projects, or memories."""
    for one in objects(source):
        if isinstance(one, Unreadable):
            yield one
        elif not is_of_claude(one.entry):
            yield Unreadable(one.where, "is no conversation of Claude: it has no chat_messages")
        elif isinstance(one.entry.get("chat_messages"), list):
            yield from _conversation(one.entry, one.where)
        elif isinstance(one.entry.get("docs"), list):
            yield from _project(one.entry, one.where)
        else:
            yield from _memories(one.entry, one.where)


def _project(found: Entry, where: str) -> Iterator[Read]:
    at, session = found.moment("created_at"), short(found.text("uuid") or where)
    common = RememberOptions(
        source="claude", session=session, role="system", kind="note", occurred_at=at
    )
    text = joined(found.text(name) for name in ("name", "description", "prompt_template"))
    yield from pieces(text, {**common, "source_ref": f"project:{content_hash(text)[:32]}"}, where)
    for number, document in enumerate(found.entries("docs")):
        ref = f"document:{short(document.text('uuid') or str(number), 100)}"
        text = _titled(document.text("filename") or "document", document.text("content"))
        given = common | RememberOptions(
            source_ref=ref, occurred_at=document.moment("created_at") or at
        )
        yield from pieces(text, given, f"{where} document {number}")


def _memories(found: Entry, where: str) -> Iterator[Read]:
    projects = found.entry("project_memories").fields
    for session, value in (("memories", found.get("conversations_memory")), *projects.items()):
        text = string(value)
        ref = f"memory:{content_hash(text)[:32]}"  # it is written anew now and then: other words are another turn
        options = RememberOptions(
            source="claude", role="system", kind="memory", source_ref=ref, session=short(session)
        )
        yield from pieces(text, options, where)


def _conversation(found: Entry, where: str) -> Iterator[Read]:
    at = found.moment("created_at")
    common: RememberOptions = {
        "source": "claude",
        "session": short(found.text("uuid") or where),
        "occurred_at": at,
    }
    for name, kind in (("name", "title"), ("summary", "summary")):
        if text := found.text(name):
            yield from pieces(
                text, {**common, "role": "system", "kind": kind, "source_ref": kind}, where
            )
    for number, entry in enumerate(found.entries("chat_messages")):
        here = f"{where} message {number}"
        role = _ROLES.get(entry.text("sender"))
        if role is None:
            yield Unreadable(here, "has no sender of 'human' or 'assistant'")
            continue
        at = entry.moment("created_at") or at
        ref = short(entry.text("uuid") or str(number), 180)
        yield from _message(
            entry, {**common, "role": role, "source_ref": ref, "occurred_at": at}, here
        )


def _message(entry: Entry, options: RememberOptions, where: str) -> Iterator[Read]:
    blocks = entry.entries("content")
    texts = [one.text("text") for one in blocks if one.get("type") == "text"]
    if not any(text.strip() for text in texts):
        texts = [entry.text("text")]
    for one in entry.entries("attachments"):
        name, text = one.text("file_name"), one.text("extracted_content")
        texts.append(f"[attached{name and f' {name}'}]\n{text}".strip() if text or name else "")
    texts += [f"[file {name}]" for one in entry.entries("files") if (name := one.text("file_name"))]
    yield from pieces(joined(texts), options, where)
    for number, block in enumerate(blocks):
        if block.get("type") == "tool_use":
            used: RememberOptions = {
                **options,
                "source_ref": f"{options.get('source_ref', '')}:{number}",
            }
            given = block.entry("input")
            if block.get("name") == "artifacts" and given.text("content").strip():
                yield from pieces(
                    _titled(given.text("title") or "artifact", given.text("content")), used, where
                )
            else:
                line = tool_line(block.text("name") or "tool", given.texts())
                yield from pieces(line, {**used, "role": "tool"}, where)
        elif block.get("type") == "tool_result":
            yield Passed("results of tools")
        elif block.get("type") == "thinking":
            yield Passed("thoughts of the model")


def _titled(name: str, text: str) -> str:
    return f"[{name}]\n{text}" if text.strip() else ""
