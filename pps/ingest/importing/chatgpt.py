"""ChatGPT's data export: ``conversations.json`` (or numbered parts of it), each conversation a tree of messages.

The branch that the user saw last is taken, from the root to ``current_node``; the others are counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime

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
from pps.ingest.redact import clipped

SOURCE = "chatgpt"
_LINE = 300
_THOUGHTS = ("thoughts", "reasoning_recap")
_ROLES = ("user", "assistant")
_CANVAS = "canmore.create_textdoc"
_CITED = re.compile(r"\ue200(?:file)?cite\ue202[^\ue200\ue201]*\ue201|【[\d:]{1,20}†[^【】]*】")
"""Where an answer pointed at a page that it had found: a mark without words."""


def is_conversation(value: Mapping[str, JSON]) -> bool:
    """Tell whether a JSON object is a conversation of this format."""
    return isinstance(value.get("mapping"), dict)


def read(source: Source) -> Iterator[Read]:
    """Yield the messages of each conversation in order, its title first."""
    for one in conversations(source):
        if isinstance(one, Unreadable):
            yield one
        elif not is_conversation(found := mapping(one.value)):
            yield Unreadable(one.where, "is no conversation of ChatGPT: it has no mapping")
        else:
            yield from _conversation(found, one.where)


def _conversation(found: Mapping[str, JSON], where: str) -> Iterator[Read]:
    nodes = {name: mapping(node) for name, node in mapping(found.get("mapping")).items()}
    session = short(string(found.get("conversation_id")) or string(found.get("id")) or where, 200)
    at = moment(found.get("create_time"))
    common: RememberOptions = {"source": SOURCE, "session": session}
    if title := string(found.get("title")):
        told: RememberOptions = {**common, "role": "system", "kind": "title", "source_ref": "title", "occurred_at": at}
        yield from pieces(title, told, where)
    path = _path(nodes, string(found.get("current_node")))
    spoken = sum(bool(node.get("message")) for node in nodes.values())
    for _ in range(spoken - sum(bool(nodes[name].get("message")) for name in path)):
        yield Passed("messages of branches that were left")
    for name in path:
        message = mapping(nodes[name].get("message"))
        at = moment(message.get("create_time")) or at
        if message:
            yield from _message(message, {**common, "occurred_at": at}, name, f"{where} {name}")


def _path(nodes: Mapping[str, Mapping[str, JSON]], current: str) -> list[str]:
    """Return the names of the nodes from the root to the current one; without one, to the end behind the latest."""
    if current not in nodes:
        current = _end(nodes)
    path: list[str] = []
    seen: set[str] = set()
    while current in nodes and current not in seen:
        seen.add(current)
        path.append(current)
        current = string(nodes[current].get("parent"))
    return path[::-1]


def _end(nodes: Mapping[str, Mapping[str, JSON]]) -> str:
    """Return the last node that follows the latest message; of messages without times the last listed is the latest."""
    current = max(list(nodes)[::-1], key=lambda name: _time(nodes[name]), default="")
    seen: set[str] = set()
    while current in nodes and current not in seen:
        seen.add(current)
        children = [name for one in sequence(nodes[current].get("children")) if (name := string(one)) in nodes]
        current = children[-1] if children else current
    return current


def _time(node: Mapping[str, JSON]) -> float:
    found = moment(mapping(node.get("message")).get("create_time"))
    return found.timestamp() if isinstance(found, datetime) else 0.0


def _message(message: Mapping[str, JSON], common: RememberOptions, name: str, where: str) -> Iterator[Read]:
    role = string(mapping(message.get("author")).get("role"))
    content = mapping(message.get("content"))
    kind = string(content.get("content_type"))
    metadata = mapping(message.get("metadata"))
    recipient = string(message.get("recipient")) or "all"
    common = {**common, "source_ref": short(string(message.get("id")) or name, 200)}
    if metadata.get("is_visually_hidden_from_conversation"):
        yield Passed("messages that ChatGPT hides")
    elif kind in _THOUGHTS:
        yield Passed("thoughts of the model")
    elif role == "tool":
        yield Passed("results of tools")
    elif role not in _ROLES:
        yield Passed("messages of the system")
    elif role == "assistant" and recipient == _CANVAS and (document := _document(content)):
        yield from pieces(document, {**common, "role": role}, where)
    elif role == "assistant" and recipient != "all":
        said = clipped(" ".join(f"{recipient}: {_text(content)}".split()), _LINE)
        yield from pieces(said, {**common, "role": "tool"}, where)
    else:
        files = [string(mapping(one).get("name")) for one in sequence(metadata.get("attachments"))]
        said = joined([_CITED.sub("", _text(content)), *(f"[file {name}]" for name in files if name)])
        yield from pieces(said, {**common, "role": role}, where)


def _document(content: Mapping[str, JSON]) -> str:
    """Return title and text of a document that was written on the canvas; nothing when it cannot be read."""
    try:
        found = mapping(json.loads(_text(content)))
    except (ValueError, RecursionError):
        return ""
    text = string(found.get("content"))
    return f"[{string(found.get('name')) or 'canvas'}]\n{text}" if text.strip() else ""


def _text(content: Mapping[str, JSON]) -> str:
    """Return the words of a message; what is no text is named where it stands."""
    parts: list[str] = []
    for part in sequence(content.get("parts")):
        found = mapping(part)
        if isinstance(part, str):
            parts.append(string(part))
        elif text := string(found.get("text")):
            parts.append(text)
        elif kind := string(found.get("content_type")):
            parts.append(f"[{kind.removesuffix('_asset_pointer').replace('_', ' ')}]")
    parts = parts or [string(content.get("text")) or string(content.get("result"))]
    return joined(parts)
