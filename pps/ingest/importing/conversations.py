"""Exported conversations of ChatGPT, Claude (with projects) and WhatsApp.

ChatGPT exports a tree of messages for each conversation. WhatsApp exports a text file with a
message a line and further lines of it below. iOS writes ``[12/03/2024, 21:04:05] Ana: …``, Android
``12/03/2024, 21:04 - Ana: …``, each in the phone's own order of day and month, with twelve or
twenty-four hours, in the phone's time zone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath

from pps.core.text import content_hash
from pps.ingest.drafts import RememberOptions
from pps.ingest.hook_events import tool_line
from pps.ingest.importing.items import Passed, Read, Unreadable, joined, pieces, short
from pps.ingest.importing.source_files import Source
from pps.ingest.importing.streams import JSONEntry, objects, string
from pps.ingest.redact import clipped

_LINE = 300
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_CANVAS = "canmore.create_textdoc"
_CITED = re.compile(r"\ue200(?:file)?cite\ue202[^\ue200\ue201]*\ue201|【[\d:]{1,20}†[^【】]*】")
"""The mark of an answer's citation of a page; it has no text of its own."""
WHATSAPP_SUFFIXES = (".txt",)
MAX_BYTES = 256 * 1024**2
_LOOK_LINES = 20
_MARKS = dict.fromkeys(map(ord, "\u200e\u200f\u202a\u202c\u2068\u2069"))
_OWN_MARK = "\u200e"
"""First character of the program's own messages in exports of iOS."""
_EDITED = re.compile(r"\s*\u200e?<[^<>\n]{1,60}>\Z")
"""The mark at the end of an edited message."""
_HEAD = re.compile(
    r"\u200e?\[?(?P<first>\d{1,4})[./-](?P<second>\d{1,2})[./-](?P<third>\d{2,4}),?[ \u202f\u00a0]+"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second_of_minute>\d{2}))?"
    r"(?:[ \u202f\u00a0]?(?P<half>[AaPp]\.?[ \u202f\u00a0]?[Mm]\.?))?(?:\]|[ ]-)[ ]"
)
_SPEAKER = re.compile(r"([^:\n]{1,100}?): ?")
_NO_WORDS = re.compile(
    r"<[^<>\n]{1,40}>|(?:image|video|audio|sticker|GIF|document|Contact card) omitted"
    r"|(?:This message was deleted|You deleted this message)\.?|Missed (?:voice|video) call",
    re.IGNORECASE,
)
"""A message without words: a file that was left out, or a message that was deleted."""


def is_of_chatgpt(entry: JSONEntry) -> bool:
    return isinstance(entry.get("mapping"), dict)


def read_chatgpt(source: Source) -> Iterator[Read]:
    """Yield the messages of each conversation in order, its title first.

    Only the branch that the user saw last is taken, from the root to ``current_node``; the messages
    of other branches are counted.
    """
    instructions: set[str] = set()
    for conversation in objects(source):
        if isinstance(conversation, Unreadable):
            yield conversation
            continue
        entry = conversation.entry
        where = conversation.where
        if not is_of_chatgpt(entry):
            yield Unreadable(where, "is no conversation of ChatGPT: it has no mapping")
        elif entry.get("is_do_not_remember") is True:
            yield Passed("conversations marked not to be remembered")
        else:
            yield from _new_instructions(entry, instructions, where)
            yield from _chatgpt_conversation(entry, where)


def _new_instructions(conversation: JSONEntry, known: set[str], where: str) -> Iterator[Read]:
    """Yield custom instructions of a conversation that are not in ``known``, and add them to it."""
    for node in conversation.entry("mapping").fields.values():
        message = JSONEntry.of(node).entry("message")
        text = _custom_instructions(message)
        if text and text not in known:
            known.add(text)
            options = RememberOptions(
                source="chatgpt",
                session="custom-instructions",
                kind="memory",
                source_ref=f"instructions:{content_hash(text)[:32]}",
                occurred_at=message.moment("create_time") or conversation.moment("create_time"),
            )
            yield from pieces(text, options, where)


def _chatgpt_conversation(conversation: JSONEntry, where: str) -> Iterator[Read]:
    mapping = conversation.entry("mapping").fields
    nodes = {name: JSONEntry.of(node) for name, node in mapping.items()}
    at = conversation.moment("create_time")
    session = short(conversation.text("conversation_id", "id") or where)
    common = RememberOptions(source="chatgpt", session=session)
    title = conversation.text("title")
    if title:
        options = common | RememberOptions(
            role="system", kind="title", source_ref="title", occurred_at=at
        )
        yield from pieces(title, options, where)
    path = _path_from_root(nodes, conversation.text("current_node"))
    message_count = sum(bool(node.get("message")) for node in nodes.values())
    path_count = sum(bool(nodes[name].get("message")) for name in path)
    for _ in range(message_count - path_count):
        yield Passed("messages of branches that were left")
    for name in path:
        message = nodes[name].entry("message")
        at = message.moment("create_time") or at
        if message:
            reference = short(message.text("id") or name)
            options = common | RememberOptions(occurred_at=at, source_ref=reference)
            yield from _chatgpt_message(message, options, f"{where} {name}")


def _path_from_root(nodes: Mapping[str, JSONEntry], current: str) -> list[str]:
    """Return the names of the nodes from the root to the current one.

    Without a current one, to the end of the branch of the latest message.
    """
    if current not in nodes:
        current = _end_of_latest(nodes)
    path: dict[str, None] = {}
    while current in nodes and current not in path:
        path[current] = None
        current = nodes[current].text("parent")
    return list(path)[::-1]


def _end_of_latest(nodes: Mapping[str, JSONEntry]) -> str:
    """Return the leaf below the latest message, or below the last one if none has a time."""

    def time_of(name: str) -> float:
        at = nodes[name].entry("message").moment("create_time")
        return at.timestamp() if at else 0.0

    current = max(list(nodes)[::-1], key=time_of, default="")
    visited: set[str] = set()
    while current in nodes and current not in visited:
        visited.add(current)
        children = [string(child) for child in nodes[current].values("children")]
        children = [child for child in children if child in nodes]
        current = children[-1] if children else current
    return current


def _chatgpt_message(message: JSONEntry, common: RememberOptions, where: str) -> Iterator[Read]:
    if _custom_instructions(message):
        return  # they stand in every conversation, and are kept once
    role = message.entry("author").text("role")
    content = message.entry("content")
    metadata = message.entry("metadata")
    recipient = message.text("recipient") or "all"
    if metadata.get("is_visually_hidden_from_conversation"):
        yield Passed("messages that ChatGPT hides")
    elif content.text("content_type") in ("thoughts", "reasoning_recap"):
        yield Passed("thoughts of the model")
    elif role == "tool":
        yield Passed("results of tools")
    elif role not in ("user", "assistant"):
        yield Passed("messages of the system")
    elif role == "user" or recipient == "all":
        names = [attachment.text("name") for attachment in metadata.entries("attachments")]
        words = _CITED.sub("", _words(content))
        text = joined([words, *(f"[file {name}]" for name in names if name)])
        yield from pieces(text, {**common, "role": role}, where)
    else:
        document = _canvas(content) if recipient == _CANVAS else ""
        if document:
            yield from pieces(document, {**common, "role": role}, where)
            return
        line = clipped(" ".join(f"{recipient}: {_words(content)}".split()), _LINE)
        yield from pieces(line, {**common, "role": "tool"}, where)


def _custom_instructions(message: JSONEntry) -> str:
    """Return a person's instructions to ChatGPT for all conversations."""
    content = message.entry("content")
    context = message.entry("metadata").entry("user_context_message_data")
    about_person = content.text("user_profile") or context.text("about_user_message")
    how_to_answer = content.text("user_instructions") or context.text("about_model_message")
    return joined(
        f"[{title}]\n{text.strip()}"
        for title, text in (("about me", about_person), ("how to answer", how_to_answer))
        if text.strip()
    )


def _canvas(content: JSONEntry) -> str:
    """Return the text of a canvas document under its title; empty if it cannot be read."""
    document = JSONEntry.loaded(_words(content))
    return _with_heading(document.text("name") or "canvas", document.text("content"))


def _words(content: JSONEntry) -> str:
    """Return the text of a message; other parts are named in their place, such as "[image]"."""
    texts: list[str] = []
    for part in content.values("parts"):
        entry = JSONEntry.of(part)
        text = string(part) or entry.text("text")
        kind = entry.text("content_type")
        if text:
            texts.append(text)
        elif kind:
            texts.append(f"[{kind.removesuffix('_asset_pointer').replace('_', ' ')}]")
    return joined(texts or [content.text("text", "result")])


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
    """Yield a conversation's name, summary and messages in order, or projects, or memories."""
    for item in objects(source):
        if isinstance(item, Unreadable):
            yield item
        elif not is_of_claude(item.entry):
            yield Unreadable(item.where, "is no conversation of Claude: it has no chat_messages")
        elif isinstance(item.entry.get("chat_messages"), list):
            yield from _claude_conversation(item.entry, item.where)
        elif isinstance(item.entry.get("docs"), list):
            yield from _claude_project(item.entry, item.where)
        else:
            yield from _claude_memories(item.entry, item.where)


def _claude_project(project: JSONEntry, where: str) -> Iterator[Read]:
    at = project.moment("created_at")
    common = RememberOptions(
        source="claude",
        session=short(project.text("uuid") or where),
        role="system",
        kind="note",
        occurred_at=at,
    )
    text = joined(project.text(name) for name in ("name", "description", "prompt_template"))
    yield from pieces(text, {**common, "source_ref": f"project:{content_hash(text)[:32]}"}, where)
    for number, document in enumerate(project.entries("docs")):
        name = document.text("filename") or "document"
        options = common | RememberOptions(
            source_ref=f"document:{short(document.text('uuid') or str(number), 100)}",
            occurred_at=document.moment("created_at") or at,
        )
        text = _with_heading(name, document.text("content"))
        yield from pieces(text, options, f"{where} document {number}")


def _claude_memories(memories: JSONEntry, where: str) -> Iterator[Read]:
    projects = memories.entry("project_memories").fields
    values = (("memories", memories.get("conversations_memory")), *projects.items())
    for session, value in values:
        text = string(value)
        options = RememberOptions(
            source="claude",
            role="system",
            kind="memory",
            # Claude writes it anew now and then: other words are another turn.
            source_ref=f"memory:{content_hash(text)[:32]}",
            session=short(session),
        )
        yield from pieces(text, options, where)


def _claude_conversation(conversation: JSONEntry, where: str) -> Iterator[Read]:
    at = conversation.moment("created_at")
    common = RememberOptions(
        source="claude", session=short(conversation.text("uuid") or where), occurred_at=at
    )
    for key, kind in (("name", "title"), ("summary", "summary")):
        text = conversation.text(key)
        if text:
            options = common | RememberOptions(role="system", kind=kind, source_ref=kind)
            yield from pieces(text, options, where)
    messages = conversation.entries("chat_messages")
    branch = _branch(messages, conversation.text("current_leaf_message_uuid"))
    for number, message in enumerate(messages):
        place = f"{where} message {number}"
        if number not in branch:
            yield Passed("messages of branches that were left")
            continue
        role = _ROLES.get(message.text("sender"))
        if role is None:
            yield Unreadable(place, "has no sender of 'human' or 'assistant'")
            continue
        at = message.moment("created_at") or at
        reference = short(message.text("uuid") or str(number), 180)
        options = common | RememberOptions(role=role, source_ref=reference, occurred_at=at)
        yield from _claude_message(message, options, place)


def _branch(messages: Sequence[JSONEntry], leaf: str) -> set[int]:
    """Return the indexes of the messages from the root to the leaf, by default the last one listed.

    Exports without parents have no branches. A message whose parent is not in the export begins the
    branch.
    """
    places = {message.text("uuid"): place for place, message in enumerate(messages)}
    parents = [message.text("parent_message_uuid") for message in messages]
    if not any(parent in places for parent in parents):
        return set(range(len(messages)))
    place: int | None = places.get(leaf, len(messages) - 1)
    branch: set[int] = set()
    while place is not None and place not in branch:
        branch.add(place)
        place = places.get(parents[place])
    return branch


def _claude_message(message: JSONEntry, options: RememberOptions, where: str) -> Iterator[Read]:
    blocks = message.entries("content")
    texts = [block.text("text") for block in blocks if block.get("type") == "text"]
    if not any(text.strip() for text in texts):
        texts = [message.text("text")]
    for attachment in message.entries("attachments"):
        name = attachment.text("file_name")
        text = attachment.text("extracted_content")
        heading = f"[attached {name}]" if name else "[attached]"
        texts.append(f"{heading}\n{text}".strip() if text or name else "")
    names = [file.text("file_name") for file in message.entries("files")]
    texts += [f"[file {name}]" for name in names if name]
    yield from pieces(joined(texts), options, where)
    for number, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "tool_use":
            reference = f"{options.get('source_ref', '')}:{number}"
            yield from _claude_tool(block, {**options, "source_ref": reference}, where)
        elif kind == "tool_result":
            yield Passed("results of tools")
        elif kind == "thinking":
            yield Passed("thoughts of the model")


def _claude_tool(block: JSONEntry, options: RememberOptions, where: str) -> Iterator[Read]:
    """Yield an artifact as the text that it is, any other use of a tool as a line."""
    arguments = block.entry("input")
    content = arguments.text("content")
    if block.get("name") == "artifacts" and content.strip():
        text = _with_heading(arguments.text("title") or "artifact", content)
        yield from pieces(text, options, where)
        return
    line = tool_line(block.text("name") or "tool", arguments.texts())
    yield from pieces(line, {**options, "role": "tool"}, where)


def _with_heading(name: str, text: str) -> str:
    return f"[{name}]\n{text}" if text.strip() else ""


@dataclass(slots=True)
class _Message:
    head: re.Match[str]
    number: int
    lines: list[str] = field(default_factory=list[str])


def is_whatsapp(source: Source) -> bool:
    """Tell whether the first lines of a text file are those of an exported chat."""
    lines = _lines(source, _LOOK_LINES)
    if isinstance(lines, Unreadable):
        return False
    first = next((line for line in lines if line.strip()), "")
    return _HEAD.match(first) is not None


def read_whatsapp(source: Source) -> Iterator[Read]:
    """Yield each message with its speaker as actor; times are the phone's, without a zone."""
    lines = _lines(source, None)
    if isinstance(lines, Unreadable):
        yield lines
        return
    messages: list[_Message] = []
    for number, line in enumerate(lines, 1):
        head = _HEAD.match(line)
        if head:
            messages.append(_Message(head, number, [line[head.end() :]]))
        elif messages:
            messages[-1].lines.append(line)
        elif line.strip():
            yield Unreadable(f"{source.name}:{number}", "stands before the first message")
    order = _order([message.head for message in messages])
    session = short(PurePath(source.name.rpartition("!")[0] or source.name).stem)
    if session == "_chat":
        session = short(PurePath(source.path).parent.name or session)
    met: dict[str, int] = {}
    for message in messages:
        where = f"{source.name}:{message.number}"
        at = _moment(message.head, order)
        if at is None:
            yield Unreadable(where, "has a date that does not exist")
            continue
        text = "\n".join(message.lines).strip()
        speaker = _SPEAKER.match(text)
        if speaker is None:
            yield Passed("WhatsApp's own lines and messages without words")
            continue
        written = text[speaker.end() :].strip()
        words = _EDITED.sub("", written).translate(_MARKS).strip() or written.translate(_MARKS)
        if written.startswith(_OWN_MARK) or _NO_WORDS.fullmatch(words):
            yield Passed("WhatsApp's own lines and messages without words")
            continue
        key = f"{at.isoformat()}:{content_hash(f'{speaker[1]}: {words}')[:16]}"
        met[key] = met.get(key, 0) + 1
        options = RememberOptions(
            source="whatsapp",
            session=session,
            actor=short(speaker[1].translate(_MARKS).strip(), 100),
            source_ref=key if met[key] == 1 else f"{key}-{met[key]}",
            occurred_at=at,
        )
        yield from pieces(words, options, where)


def _lines(source: Source, most: int | None) -> list[str] | Unreadable:
    with source.opened() as file:
        data = file.read(MAX_BYTES + 1 if most is None else 64 * 1024)
    if len(data) > MAX_BYTES:
        return Unreadable(source.name, f"is over {MAX_BYTES // 1024**2} MiB; divide it")
    try:
        text = data.decode("utf-8-sig", "strict" if most is None else "ignore")
    except UnicodeDecodeError:
        return Unreadable(source.name, "is not UTF-8")
    lines = (line.rstrip("\r") for line in text.split("\n"))
    return list(itertools.islice(lines, most))


def _order(heads: Sequence[re.Match[str]]) -> str:
    """Return ``dmy``, ``mdy`` or ``ymd``: the order that gives dates that exist and do not go back.

    Where both orders do, a clock of twelve hours tells of the American one.
    """
    if any(len(head["first"]) == 4 for head in heads):
        return "ymd"
    if any(int(head["first"]) > 12 for head in heads):
        return "dmy"
    if any(int(head["second"]) > 12 for head in heads):
        return "mdy"
    steps_back: dict[str, int] = {}
    for order in ("dmy", "mdy"):
        moments = filter(None, (_moment(head, order) for head in heads))
        steps_back[order] = sum(later < earlier for earlier, later in itertools.pairwise(moments))
    if steps_back["dmy"] != steps_back["mdy"]:
        return min(steps_back, key=lambda order: steps_back[order])
    return "mdy" if any(head["half"] for head in heads) else "dmy"


def _moment(head: re.Match[str], order: str) -> datetime | None:
    parts = dict(zip(order, (head["first"], head["second"], head["third"]), strict=True))
    year = int(parts["y"])
    hour = int(head["hour"])
    if head["half"]:
        hour = hour % 12 + (12 if head["half"][0] in "Pp" else 0)
    try:
        return datetime(  # noqa: DTZ001 - the phone's wall clock; `remember` adds the entity's zone
            year + 2000 if year < 100 else year,
            int(parts["m"]),
            int(parts["d"]),
            hour,
            int(head["minute"]),
            int(head["second_of_minute"] or 0),
        )
    except ValueError:
        return None
