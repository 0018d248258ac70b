"""Conversations as other chat programs keep or export them.

Open WebUI and LibreChat export trees of messages; Codex CLI and Gemini CLI keep a file for each
session; many programs write plain lists of role and content. Of a tree the branch that was read
last is taken, the others are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath

from pps.core.text import content_hash
from pps.core.values import JSON
from pps.ingest.drafts import RememberOptions
from pps.ingest.hook_events import tool_line
from pps.ingest.importing.items import Passed, Read, Unreadable, joined, pieces, short, tags
from pps.ingest.importing.source_files import Source
from pps.ingest.importing.streams import JSONEntry, StreamObject, moment, objects, string
from pps.ingest.redact import whole

_LEFT_BRANCH = "messages of branches that were left"
_THOUGHTS = "thoughts of the model"
_TOOL_RESULTS = "results of tools"
_SYSTEM = "messages of the system"
_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "gemini": "assistant",
    "ai": "assistant",
    "bot": "assistant",
}
_DETAILS = re.compile(r"<details\b([^>]*)>(.*?)</details>\s*", re.DOTALL)
_TEXT_PARTS = ("text", "input_text", "output_text")


def _with_title(common: RememberOptions, title: str, where: str) -> Iterator[Read]:
    if title.strip():
        options = common | RememberOptions(role="system", kind="title", source_ref="title")
        yield from pieces(title, options, where)


def _content_text(content: JSON) -> str:
    """Return the words of a message whose content is a text, a part, or a list of parts."""
    if isinstance(content, str):
        return string(content)
    parts: Sequence[JSON] = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        entry = JSONEntry.of(part)
        kind = entry.text("type")
        if isinstance(part, str):
            texts.append(string(part))
        elif kind in ("", *_TEXT_PARTS):
            texts.append(entry.text("text") or entry.entry("text").text("value"))
    return joined(texts)


# Open WebUI


def is_open_webui(entry: JSONEntry) -> bool:
    chat = entry.entry("chat")
    return isinstance(chat.entry("history").get("messages"), dict) or (
        isinstance(chat.get("messages"), list) and chat.has("models")
    )


def read_open_webui(source: Source) -> Iterator[Read]:
    """Yield the title and the messages of each chat, along the branch of the current message."""
    for chat in objects(source):
        if isinstance(chat, Unreadable):
            yield chat
        elif not is_open_webui(chat.entry):
            yield Unreadable(chat.where, "is no chat of Open WebUI: it has no chat.history")
        else:
            yield from _open_webui_chat(chat.entry, chat.where)


def _open_webui_chat(entry: JSONEntry, where: str) -> Iterator[Read]:
    chat = entry.entry("chat")
    common = RememberOptions(
        source="open-webui",
        session=short(entry.text("id") or where),
        occurred_at=_epoch(entry.get("created_at")),
    )
    yield from _with_title(common, entry.text("title") or chat.text("title"), where)
    history = chat.entry("history")
    messages = {
        name: JSONEntry.of(value) for name, value in history.entry("messages").fields.items()
    }
    if messages:
        path = _path_to(messages, history.text("currentId"), "parentId", "timestamp")
        for _ in range(len(messages) - len(path)):
            yield Passed(_LEFT_BRANCH)
    else:
        listed = chat.entries("messages")
        messages = {message.text("id") or str(at): message for at, message in enumerate(listed)}
        path = list(messages)
    at = common.get("occurred_at")
    for name in path:
        message = messages[name]
        at = _epoch(message.get("timestamp")) or at
        options = common | RememberOptions(occurred_at=at, source_ref=short(name, 180))
        yield from _open_webui_message(message, options, f"{where} {name}")


def _open_webui_message(message: JSONEntry, options: RememberOptions, where: str) -> Iterator[Read]:
    role = _ROLES.get(message.text("role"))
    if role is None:
        yield Passed(_SYSTEM)
        return
    text = _content_text(message.get("content"))
    for details in _DETAILS.finditer(text):
        is_thought = 'type="reasoning"' in details[1]
        yield Passed(_THOUGHTS if is_thought else _TOOL_RESULTS)
    files = [file.text("name") for file in message.entries("files")]
    text = joined([_DETAILS.sub("", text), *(f"[file {name}]" for name in files if name)])
    yield from pieces(text, {**options, "role": role}, where)
    for number, output in enumerate(message.entries("output")):
        if output.get("type") == "function_call":
            arguments = JSONEntry.loaded(output.text("arguments")).texts()
            line = tool_line(output.text("name") or "tool", arguments)
            reference = f"{options.get('source_ref', '')}:{number}"
            yield from pieces(line, {**options, "role": "tool", "source_ref": reference}, where)


def _epoch(value: JSON) -> datetime | None:
    """Return the time of a number of seconds, or of milliseconds if it is above 10 ** 10."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 10_000_000_000:
        return moment(value / 1000)
    return moment(value)


def _path_to(
    messages: Mapping[str, JSONEntry], current: str, parent_field: str, time_field: str
) -> list[str]:
    """Return the names of the messages from the root to the current one, by default the latest."""
    if current not in messages:
        earliest = datetime.min.replace(tzinfo=UTC)
        current = max(
            messages,
            key=lambda name: _epoch(messages[name].get(time_field)) or earliest,
            default="",
        )
    path: dict[str, None] = {}
    while current in messages and current not in path:
        path[current] = None
        current = messages[current].text(parent_field)
    return list(path)[::-1]


# LibreChat


def is_librechat(entry: JSONEntry) -> bool:
    return entry.has("conversationId") and any(
        isinstance(entry.get(name), list) for name in ("messages", "messagesTree")
    )


def read_librechat(source: Source) -> Iterator[Read]:
    """Yield the title and the messages of each conversation, along the branch of the latest."""
    for conversation in objects(source):
        if isinstance(conversation, Unreadable):
            yield conversation
        elif not is_librechat(conversation.entry):
            yield Unreadable(
                conversation.where, "is no conversation of LibreChat: it has no messages"
            )
        else:
            yield from _librechat_conversation(conversation.entry, conversation.where)


def _librechat_conversation(entry: JSONEntry, where: str) -> Iterator[Read]:
    messages = _flattened(entry.entries("messagesTree", "messages"))
    times = (message.moment("createdAt") for message in messages.values())
    first = next((at for at in times if at), None)
    common = RememberOptions(
        source="librechat",
        session=short(entry.text("conversationId") or where),
        occurred_at=first,
    )
    yield from _with_title(common, entry.text("title"), where)
    # Messages without times follow those they answer: the last that is listed is the latest.
    last = list(messages)[-1] if messages else ""
    is_timed = all(message.moment("createdAt") for message in messages.values())
    path = _path_to(messages, "" if is_timed else last, "parentMessageId", "createdAt")
    for _ in range(len(messages) - len(path)):
        yield Passed(_LEFT_BRANCH)
    at = first
    for name in path:
        message = messages[name]
        at = message.moment("createdAt") or at
        if message.get("error") is True:
            yield Passed("messages of errors")
            continue
        role = "user" if message.get("isCreatedByUser") is True else "assistant"
        content = message.get("content")
        text = message.text("text") or _content_text(content if content is not None else "")
        options = common | RememberOptions(role=role, occurred_at=at, source_ref=short(name, 180))
        yield from pieces(text, options, f"{where} {name}")
        for number, part in enumerate(message.entries("content")):
            if part.get("type") == "tool_call":
                call = part.entry("tool_call")
                arguments = JSONEntry.loaded(call.text("args")).texts()
                line = tool_line(call.text("name") or "tool", arguments)
                reference = f"{short(name, 180)}:{number}"
                tool = options | RememberOptions(role="tool", source_ref=reference)
                yield from pieces(line, tool, f"{where} {name}")
            elif part.get("type") == "think":
                yield Passed(_THOUGHTS)


def _flattened(listed: Sequence[JSONEntry]) -> dict[str, JSONEntry]:
    """Return id → message of a list, or of a tree by ``children``, parents first."""
    messages: dict[str, JSONEntry] = {}
    waiting: list[tuple[JSONEntry, str]] = [(message, "") for message in reversed(listed)]
    while waiting:
        message, parent = waiting.pop()
        name = message.text("messageId") or f"message {len(messages)}"
        if name in messages:
            continue
        if parent:
            message = JSONEntry({**message.fields, "parentMessageId": parent})
        messages[name] = message
        children = message.entries("children")
        waiting.extend((child, name) for child in reversed(children))
    return messages


# Codex CLI

_CODEX_LINES = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
)
_CODEX_CONTEXT = re.compile(
    r"\s*(?:<([a-z_]+)>.*</\1>\s*\Z|# AGENTS\.md instructions\b)", re.DOTALL
)
"""Text that Codex adds in front of a person's prompt: instructions, context, skills."""


def is_codex(entry: JSONEntry) -> bool:
    return (entry.text("type") in _CODEX_LINES and isinstance(entry.get("payload"), dict)) or (
        entry.has("id", "timestamp", "instructions")
    )


def read_codex(source: Source) -> Iterator[Read]:
    """Yield the messages and tool calls of one rollout of Codex, one JSON line an event."""
    session = _CodexSession(PurePath(source.name).stem)
    for line in objects(source):
        if isinstance(line, Unreadable):
            yield line
        else:
            yield from session.line(line.entry, line.where)


class _CodexSession:
    """Reads the lines of one rollout; knows its id and folder, and which prompts it has read."""

    def __init__(self, name: str) -> None:
        self._common = RememberOptions(source="codex", session=short(name))
        self._latest: datetime | None = None
        self._prompts: set[str] = set()

    def line(self, line: JSONEntry, where: str) -> Iterator[Read]:
        self._latest = line.moment("timestamp") or self._latest
        kind = line.text("type")
        payload = line.entry("payload")
        if kind == "session_meta" or line.has("id", "timestamp", "instructions"):
            self._begin(payload or line)
            yield Passed("Codex's own lines (session)")
        elif kind == "response_item":
            yield from self._item(payload, where)
        elif kind == "event_msg" and payload.get("type") == "user_message":
            # The same prompt is mostly a response item too, before or after this line.
            yield from self._prompt(payload.text("message"), payload, where)
        elif kind in _CODEX_LINES:
            yield Passed(f"Codex's own lines ({kind})")
        else:
            yield from self._item(line, where)  # older rollouts have the items themselves

    def _begin(self, meta: JSONEntry) -> None:
        named = meta.text("id", "session_id")
        if named:
            self._common["session"] = short(named)
        folders = tags([PurePath(meta.text("cwd")).name])
        marks = [f"project-{folder}" for folder in folders]
        self._common["tags"] = [mark[: whole(mark, 64)] for mark in marks]

    def _item(self, item: JSONEntry, where: str) -> Iterator[Read]:
        kind = item.text("type")
        role = item.text("role")
        if kind == "message" and role == "user":
            for part in item.values("content"):
                yield from self._prompt(_content_text(part), item, where)
        elif kind == "message" and role == "assistant":
            text = _content_text(item.get("content"))
            yield from pieces(text, self._options("assistant", text, item), where)
        elif kind == "message":
            yield Passed(_SYSTEM)
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            line = _codex_tool(item)
            yield from pieces(line, self._options("tool", line, item), where)
        elif kind.endswith("_output"):
            yield Passed(_TOOL_RESULTS)
        elif kind == "reasoning":
            yield Passed(_THOUGHTS)
        else:
            yield Passed(f"Codex's own lines ({kind or 'without a type'})")

    def _prompt(self, text: str, item: JSONEntry, where: str) -> Iterator[Read]:
        text = text.strip()
        if not text or _CODEX_CONTEXT.match(text):
            yield Passed("what Codex puts before a prompt")
            return
        key = f"{content_hash(text)}:{self._latest:%Y-%m-%dT%H:%M}" if self._latest else text
        if key in self._prompts:
            yield Passed("prompts that are written twice")
            return
        self._prompts.add(key)
        yield from pieces(text, self._options("user", text, item), where)

    def _options(self, role: str, text: str, item: JSONEntry) -> RememberOptions:
        moment_text = self._latest.isoformat() if self._latest else ""
        named = "" if role == "user" else item.text("id", "call_id")
        reference = named or f"{role}:{moment_text}:{content_hash(text)[:16]}"
        options = self._common | RememberOptions(role=role, source_ref=short(reference, 180))
        if self._latest:
            options["occurred_at"] = self._latest
        return options


def _codex_tool(item: JSONEntry) -> str:
    name = item.text("name") or "shell"
    arguments = JSONEntry.loaded(item.text("arguments")) or item.entry("action")
    command = arguments.get("command") or arguments.get("cmd")
    if isinstance(command, list):
        words = [string(word) for word in command]
        is_shell = len(words) == 3 and words[1] in ("-lc", "-c")
        return tool_line(name, {"command": words[2] if is_shell else " ".join(words)})
    return tool_line(name, arguments.texts() or {"command": item.text("input")})


# Gemini CLI


def is_gemini(entry: JSONEntry) -> bool:
    if entry.has("sessionId", "projectHash"):
        return True
    return entry.has("sessionId", "messageId", "message") and entry.get("type") == "user"


def read_gemini(source: Source) -> Iterator[Read]:
    """Yield a session of Gemini CLI: a JSON object, JSON lines of changes, or a log of prompts."""
    session = JSONEntry({})
    messages: dict[str, tuple[JSONEntry, str]] = {}
    for number, line in enumerate(objects(source)):
        if isinstance(line, Unreadable):
            yield line
            continue
        entry = line.entry
        if entry.has("sessionId", "projectHash"):
            session = JSONEntry({**session.fields, **entry.fields})
            for at, message in enumerate(entry.entries("messages")):
                messages[message.text("id") or str(at)] = (message, f"{line.where} message {at}")
        elif entry.has("$set"):
            session = JSONEntry({**session.fields, **entry.entry("$set").fields})
        elif entry.has("$rewindTo"):
            yield from _rewound(messages, entry.text("$rewindTo"))
        elif entry.has("sessionId", "messageId", "message"):
            yield from _gemini_log(entry, line.where)
        else:
            messages[entry.text("id") or str(number)] = (entry, line.where)
    folders = [PurePath(string(folder)).name for folder in session.values("directories")]
    common = RememberOptions(
        source="gemini-cli",
        session=short(session.text("sessionId") or PurePath(source.name).stem),
        tags=[f"project-{folder}"[:64] for folder in tags(folders)],
    )
    at = session.moment("startTime")
    for name, (message, where) in messages.items():
        at = message.moment("timestamp") or at
        options = common | RememberOptions(source_ref=short(name, 180))
        if at:
            options["occurred_at"] = at
        yield from _gemini_message(message, options, where)
    summary = session.text("summary")
    if summary:
        reference = f"summary:{content_hash(summary)[:16]}"
        options = common | RememberOptions(role="system", kind="summary", source_ref=reference)
        if at:
            options["occurred_at"] = at
        yield from pieces(summary, options, source.name)


def _rewound(messages: dict[str, tuple[JSONEntry, str]], to: str) -> Iterator[Read]:
    """Take away the message that a session was rewound to, and what followed it."""
    if to not in messages:
        return
    names = list(messages)
    for name in names[names.index(to) :]:
        del messages[name]
        yield Passed(_LEFT_BRANCH)


def _gemini_message(message: JSONEntry, options: RememberOptions, where: str) -> Iterator[Read]:
    role = _ROLES.get(message.text("type"))
    if role is None:
        yield Passed("Gemini CLI's own messages")
        return
    for _ in message.values("thoughts"):
        yield Passed(_THOUGHTS)
    content = message.get("displayContent") or message.get("content")
    yield from pieces(_content_text(content), {**options, "role": role}, where)
    for number, call in enumerate(message.entries("toolCalls")):
        line = tool_line(call.text("name") or "tool", call.entry("args").texts())
        reference = f"tool:{short(call.text('id') or str(number), 100)}"
        reference = f"{options.get('source_ref', '')}:{reference}"
        tool = options | RememberOptions(role="tool", source_ref=short(reference))
        yield from pieces(line, tool, where)


def _gemini_log(entry: JSONEntry, where: str) -> Iterator[Read]:
    options = RememberOptions(
        source="gemini-cli",
        session=short(entry.text("sessionId")),
        source_ref=f"log:{entry.get('messageId')}",
    )
    at = entry.moment("timestamp")
    if at:
        options["occurred_at"] = at
    yield from pieces(entry.text("message"), options, where)


# Lists of role and content


def is_message(entry: JSONEntry) -> bool:
    return entry.text("role").lower() in (*_ROLES, "system", "tool", "developer") and (
        isinstance(entry.get("content"), (str, list)) or isinstance(entry.get("parts"), list)
    )


def is_message_list(entry: JSONEntry) -> bool:
    """Tell whether an object has a list of messages, as requests to chat models have it."""
    listed = entry.entries("messages", "contents")
    return bool(listed) and is_message(listed[0])


def read_messages(source: Source) -> Iterator[Read]:
    """Yield the messages of a list of role and content, or of each object that has such a list."""
    name = PurePath(source.name).stem
    own: list[StreamObject] = []
    for number, element in enumerate(objects(source)):
        if isinstance(element, Unreadable):
            yield element
        elif is_message_list(element.entry):
            session = element.entry.text("id", "conversation_id", "session_id", "thread_id")
            listed = element.entry.entries("messages", "contents")
            placed = [
                StreamObject(message, f"{element.where} message {at}")
                for at, message in enumerate(listed)
            ]
            yield from _conversation(placed, session or f"{name}:{number}", source)
        elif is_message(element.entry):
            own.append(element)
        else:
            yield Unreadable(element.where, "has no role and content")
    yield from _conversation(own, name, source)


def _conversation(messages: Sequence[StreamObject], session: str, source: Source) -> Iterator[Read]:
    at: datetime | None = None
    for number, element in enumerate(messages):
        message = element.entry
        times = ("timestamp", "created_at", "createdAt", "time", "date")
        at = next(filter(None, (_epoch(message.get(name)) for name in times)), at)
        role = message.text("role").lower()
        text = _content_text(message.get("content") or message.get("parts") or "")
        if role == "tool":
            yield Passed(_TOOL_RESULTS)
            continue
        if role not in _ROLES:
            yield Passed(_SYSTEM)
            continue
        reference = short(message.text("id"), 150) or f"{number}:{content_hash(text)[:16]}"
        options = RememberOptions(
            source="messages",
            session=short(session),
            role=_ROLES[role],
            actor=short(message.text("name"), 100),
            source_ref=reference,
            occurred_at=at or source.modified_at(),
        )
        yield from pieces(text, options, element.where)
        for call_number, call in enumerate(message.entries("tool_calls")):
            function = call.entry("function")
            arguments = JSONEntry.loaded(function.text("arguments")).texts()
            line = tool_line(function.text("name") or "tool", arguments)
            call_reference = f"{reference}:{call_number}"
            tool = options | RememberOptions(role="tool", source_ref=call_reference, actor="")
            yield from pieces(line, tool, element.where)
