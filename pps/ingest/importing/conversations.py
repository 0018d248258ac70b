"""Conversations as their makers export them: ChatGPT's, each a tree of messages, and Claude's, with its projects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pps.core.text import content_hash
from pps.ingest.drafts import RememberOptions
from pps.ingest.hook_events import tool_line
from pps.ingest.importing.items import Passed, Read, Unreadable, joined, pieces, short
from pps.ingest.importing.source_files import Source
from pps.ingest.importing.streams import objects
from pps.ingest.lenient_json import JSONEntry, string
from pps.ingest.redact import clipped

_LINE = 300
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_CANVAS = "canmore.create_textdoc"
_CITED = re.compile(r"\ue200(?:file)?cite\ue202[^\ue200\ue201]*\ue201|【[\d:]{1,20}†[^【】]*】")
"""Where an answer pointed at a page that it had found: a mark without words."""


def is_of_chatgpt(entry: JSONEntry) -> bool:
    return isinstance(entry.get("mapping"), dict)


def read_chatgpt(source: Source) -> Iterator[Read]:
    """Yield the messages of each conversation in order, its title first.

    The branch that the user saw last is taken, from the root to ``current_node``; the others are counted.
    """
    instructions: set[str] = set()
    for one in objects(source):
        if isinstance(one, Unreadable):
            yield one
        elif not is_of_chatgpt(one.entry):
            yield Unreadable(one.where, "is no conversation of ChatGPT: it has no mapping")
        elif one.entry.get("is_do_not_remember") is True:
            yield Passed("conversations marked not to be remembered")
        else:
            yield from _instructions_of(one.entry, instructions, one.where)
            yield from _tree(one.entry, one.where)


def _instructions_of(found: JSONEntry, known: set[str], where: str) -> Iterator[Read]:
    """Yield the custom instructions of a conversation that are not known yet, and add them to the known ones."""
    for node in found.entry("mapping").fields.values():
        message = JSONEntry.of(node).entry("message")
        text = _custom_instructions(message)
        if text and text not in known:
            known.add(text)
            options = RememberOptions(
                source="chatgpt",
                session="custom-instructions",
                kind="memory",
                source_ref=f"instructions:{content_hash(text)[:32]}",
                occurred_at=message.moment("create_time") or found.moment("create_time"),
            )
            yield from pieces(text, options, where)


def _tree(found: JSONEntry, where: str) -> Iterator[Read]:
    nodes = {name: JSONEntry.of(node) for name, node in found.entry("mapping").fields.items()}
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


def _path(nodes: Mapping[str, JSONEntry], current: str) -> list[str]:
    """Return the names of the nodes from the root to the current one; without one, to the end behind the latest."""
    if current not in nodes:
        current = _end(nodes)
    path: dict[str, None] = {}
    while current in nodes and current not in path:
        path[current] = None
        current = nodes[current].text("parent")
    return list(path)[::-1]


def _end(nodes: Mapping[str, JSONEntry]) -> str:
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


def _said(common: RememberOptions, message: JSONEntry, where: str) -> Iterator[Read]:
    role = message.entry("author").text("role")
    content, metadata = message.entry("content"), message.entry("metadata")
    recipient = message.text("recipient") or "all"
    if _custom_instructions(message):
        return  # they stand in every conversation, and are kept once
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


def _custom_instructions(message: JSONEntry) -> str:
    """Return what a person told ChatGPT about themselves and how to answer, for all conversations."""
    content = message.entry("content")
    told = message.entry("metadata").entry("user_context_message_data")
    about_person = content.text("user_profile") or told.text("about_user_message")
    how_to_answer = content.text("user_instructions") or told.text("about_model_message")
    return joined(
        f"[{title}]\n{text.strip()}"
        for title, text in (("about me", about_person), ("how to answer", how_to_answer))
        if text.strip()
    )


def _canvas(content: JSONEntry) -> str:
    """Return title and text of a document that was written on the canvas; nothing when it cannot be read."""
    found = JSONEntry.loaded(_words(content))
    return _titled(found.text("name") or "canvas", found.text("content"))


def _words(content: JSONEntry) -> str:
    """Return the words of a message; what is no text is named where it stands."""
    parts: list[str] = []
    for part in content.values("parts"):
        found = JSONEntry.of(part)
        if text := string(part) or found.text("text"):
            parts.append(text)
        elif kind := found.text("content_type"):
            parts.append(f"[{kind.removesuffix('_asset_pointer').replace('_', ' ')}]")
    return joined(parts or [content.text("text", "result")])


def is_of_claude(entry: JSONEntry) -> bool:
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


def _project(found: JSONEntry, where: str) -> Iterator[Read]:
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


def _memories(found: JSONEntry, where: str) -> Iterator[Read]:
    projects = found.entry("project_memories").fields
    for session, value in (("memories", found.get("conversations_memory")), *projects.items()):
        text = string(value)
        ref = f"memory:{content_hash(text)[:32]}"  # it is written anew now and then: other words are another turn
        options = RememberOptions(
            source="claude", role="system", kind="memory", source_ref=ref, session=short(session)
        )
        yield from pieces(text, options, where)


def _conversation(found: JSONEntry, where: str) -> Iterator[Read]:
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
    messages = found.entries("chat_messages")
    taken = _branch(messages, found.text("current_leaf_message_uuid"))
    for number, entry in enumerate(messages):
        here = f"{where} message {number}"
        if number not in taken:
            yield Passed("messages of branches that were left")
            continue
        role = _ROLES.get(entry.text("sender"))
        if role is None:
            yield Unreadable(here, "has no sender of 'human' or 'assistant'")
            continue
        at = entry.moment("created_at") or at
        ref = short(entry.text("uuid") or str(number), 180)
        yield from _message(
            entry, {**common, "role": role, "source_ref": ref, "occurred_at": at}, here
        )


def _branch(messages: Sequence[JSONEntry], leaf: str) -> set[int]:
    """Return the places of the messages from the root to the leaf; without one, to the last that is listed.

    Exports without parents have no branches. A message whose parent is not in the export begins the branch.
    """
    numbers = {message.text("uuid"): number for number, message in enumerate(messages)}
    parents = [message.text("parent_message_uuid") for message in messages]
    if not any(parent in numbers for parent in parents):
        return set(range(len(messages)))
    at: int | None = numbers.get(leaf, len(messages) - 1)
    taken: set[int] = set()
    while at is not None and at not in taken:
        taken.add(at)
        at = numbers.get(parents[at])
    return taken


def _message(entry: JSONEntry, options: RememberOptions, where: str) -> Iterator[Read]:
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
