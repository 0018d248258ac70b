"""Claude Code's transcripts: ``~/.claude/projects/*/*.jsonl``, a session a file, an entry a line.

Messages become turns, each use of a tool one short line, a summary a turn of that kind. Sources and
references equal those of the hooks for the same session, so that nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath

from pps.ingest.drafts import RememberOptions
from pps.ingest.hook_events import (
    SOURCE,
    digest,
    is_machine,
    is_own_tool,
    tool_line,
    without_context,
    without_marks,
)
from pps.ingest.importing.items import Passed, Read, Unreadable, joined, label, pieces, short, tags
from pps.ingest.importing.source_files import Source
from pps.ingest.importing.streams import JSONEntry, objects, string
from pps.ingest.redact import whole

_OWN = frozenset({"file-history-snapshot", "queue-operation", "attachment"})
"""Types that lines of a transcript have and nothing else has; enough to know one by."""
_SPOKEN = ("user", "assistant")
_INTERRUPTED = "[Request interrupted by user"


def is_entry(entry: JSONEntry) -> bool:
    kind = entry.text("type")
    if kind == "summary":
        return entry.has("leafUuid")
    return bool(kind) and (entry.has("sessionId") or kind in _OWN)


def read(source: Source) -> Iterator[Read]:
    session = ClaudeSession(PurePath(source.name).stem)
    for line in objects(source):
        if isinstance(line, Unreadable):
            yield line
        else:
            yield from session.entry(line.entry, line.where)
    yield from session.end()


@dataclass(slots=True)
class _SplitAnswer:
    """An answer whose parts may lie on several lines, with the tools that were used in it."""

    message: str
    options: RememberOptions
    where: str
    texts: list[str] = field(default_factory=list[str])
    tools: list[Read] = field(default_factory=list[Read])

    def read(self) -> Iterator[Read]:
        if self.texts:
            yield from pieces("\n\n".join(self.texts), self.options, self.where)
        yield from self.tools


class ClaudeSession:
    """Reads the entries of one transcript; holds the latest time and an unfinished answer.

    ``name`` is the session of entries that name none.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._latest: datetime | None = None
        self._answer: _SplitAnswer | None = None
        self._prompted = ""
        self._summaries: list[tuple[JSONEntry, str]] = []

    def entry(self, entry: JSONEntry, where: str) -> Iterator[Read]:
        self._latest = entry.moment("timestamp") or self._latest
        kind = entry.text("type")
        message = entry.entry("message")
        queued = entry.entry("attachment")
        self._prompted = entry.text("promptId") or self._prompted
        if kind == "summary":
            # Summaries stand at the head, before any time is known.
            self._summaries.append((entry, where))
        elif _is_typed(queued):  # while the model was at work: no other line has it
            # The hooks refer to it by the prompt that it answers; its own line does not name that.
            prompted = JSONEntry({"promptId": self._prompted, **entry.fields})
            yield from self._prompt(prompted, JSONEntry({"content": queued.get("prompt")}), where)
        elif kind not in _SPOKEN:
            yield Passed(f"Claude Code's own lines ({label(kind, 'without a type')})")
        elif (
            entry.get("isMeta")
            or entry.get("isApiErrorMessage")
            or message.get("model") == "<synthetic>"
        ):
            yield Passed("Claude Code's own lines (notes and errors of the client)")
        elif entry.get("isCompactSummary"):
            yield Passed("Claude Code's own lines (the conversation retold when it was compacted)")
        elif not message:
            yield Unreadable(where, "has no message")
        elif kind == "user":
            yield from self._prompt(entry, message, where)
        else:
            yield from self._answered(entry, message, where)

    def end(self) -> Iterator[Read]:
        yield from self._end_answer()
        for entry, where in self._summaries:
            leaf = entry.text("leafUuid")
            reference = f"summary:{leaf}:{digest(string(entry.get('summary')))[:16]}"
            options = self._options(entry, "system", reference)
            yield from pieces(entry.text("summary"), {**options, "kind": "summary"}, where)

    def _prompt(self, entry: JSONEntry, message: JSONEntry, where: str) -> Iterator[Read]:
        blocks = message.entries("content")
        texts = [block.text("text") for block in blocks if block.get("type") == "text"]
        written = joined([message.text("content"), *texts])
        if any(block.get("type") == "tool_result" for block in blocks):
            yield Passed("results of tools")
        if not written:
            return
        words = _own_words(written)
        if not words.strip() or words.startswith(_INTERRUPTED):
            yield Passed("Claude Code's own lines (commands and notices)")
            return
        yield from self._end_answer()
        prompt = entry.text("promptId")
        reference = f"prompt:{prompt}:{digest(words)}" if prompt else _uuid(entry)
        reference = reference or f"prompt:{digest(words)}"
        yield from pieces(words, self._options(entry, "user", reference), where)

    def _answered(self, entry: JSONEntry, message: JSONEntry, where: str) -> Iterator[Read]:
        content = message.get("content")
        blocks = message.entries("content") or [
            JSONEntry({"type": "text", "text": message.text("content")})
        ]
        message_id = message.text("id")
        reference = _uuid(entry) or f"answer:{digest(str(content))}"
        if self._answer is None or not message_id or self._answer.message != message_id:
            yield from self._end_answer()
            options = self._options(entry, "assistant", reference)
            self._answer = _SplitAnswer(message_id, options, where)
        for block in blocks:
            kind = block.get("type")
            if kind == "text" and block.text("text").strip():
                # The reference is that of the first line that says something.
                if not self._answer.texts:
                    self._answer.options = self._options(entry, "assistant", reference)
                self._answer.texts.append(block.text("text").replace("\0", "").strip())
            elif kind == "tool_use" and is_own_tool(block.text("name")):
                yield Passed("uses of this memory's own tools")
            elif kind == "tool_use":
                self._answer.tools.extend(self._tool(entry, block, where))
            elif kind in ("thinking", "redacted_thinking"):
                yield Passed("thoughts of the model")

    def _tool(self, entry: JSONEntry, block: JSONEntry, where: str) -> Iterator[Read]:
        line = tool_line(block.text("name") or "tool", block.entry("input").texts())
        use = block.text("id") or digest(line + str(entry.get("uuid")))
        options = self._options(entry, "tool", f"tool:{use}")
        # The hooks know a subagent's tools by the session that started it.
        yield from pieces(line, {**options, "session": _session_of(entry, self._name)}, where)

    def _options(self, entry: JSONEntry, role: str, reference: str) -> RememberOptions:
        options = _common_options(entry, self._name, self._latest)
        return {**options, "role": role, "source_ref": short(reference)}

    def _end_answer(self) -> Iterator[Read]:
        """Yield the answer that is under way, which is at its end."""
        answer = self._answer
        self._answer = None
        if answer is not None:
            yield from answer.read()


def _common_options(entry: JSONEntry, name: str, latest: datetime | None) -> RememberOptions:
    """Return the common options of an entry's turns; a subagent's are a session of their own."""
    session = _session_of(entry, name)
    marks: list[str] = []
    for folder in tags([PurePath(entry.text("cwd")).name]):
        mark = f"project-{folder}"
        marks.append(mark[: whole(mark, 64)])
    if entry.get("isSidechain"):
        agent = entry.text("agentId") or name.removeprefix("agent-")
        session = short(f"{session}/agent-{agent}")
        marks.append("sidechain")
    options = RememberOptions(session=session, source=SOURCE, tags=marks)
    at = entry.moment("timestamp") or latest
    if at:
        options["occurred_at"] = at
    return options


def _session_of(entry: JSONEntry, name: str) -> str:
    """Return the session of an entry; an entry copied into a fork has its original session."""
    forked = entry.entry("forkedFrom").text("sessionId")
    return short(forked or entry.text("sessionId") or name)


def _is_typed(queued: JSONEntry) -> bool:
    """Tell whether an attachment is the person's prompt, not a notice of a task or session."""
    origin = queued.entry("origin").text("kind") or "human"
    mode = queued.text("commandMode") or "prompt"
    return (queued.get("type"), mode, origin) == ("queued_command", "prompt", "human")


def _uuid(entry: JSONEntry) -> str:
    return entry.entry("forkedFrom").text("messageUuid") or entry.text("uuid")


def _own_words(text: str) -> str:
    """Return the person's text without the client's context and marks, or a command's line."""
    bare = without_context(text)
    if not is_machine(bare):
        return without_marks(bare)
    name = _text_inside(bare, "command-name")
    words = _text_inside(bare, "command-args")
    return f"{name} {words}" if words and name else ""


def _text_inside(text: str, tag: str) -> str:
    _, opened, rest = text.partition(f"<{tag}>")
    inner, closed, _ = rest.partition(f"</{tag}>")
    return inner.strip() if opened and closed else ""
