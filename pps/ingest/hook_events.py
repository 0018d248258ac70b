"""Events that the hooks of a coding agent send, and the turns that are stored from them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from pps.config import problems
from pps.core.errors import InvalidRequest
from pps.core.time import from_micros
from pps.core.trust import HOOK_SOURCES
from pps.core.values import JSON
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.items import Passed, pieces
from pps.ingest.redact import clipped

SOURCE = HOOK_SOURCES["claude"]
"""The ``source`` of all turns from Claude Code's hooks and transcripts."""

_Short = Annotated[str, StringConstraints(max_length=200)]
_Path = Annotated[str, StringConstraints(max_length=4_096)]
Item = tuple[str, RememberOptions]

# Prompts that the client itself writes: results of commands, notices of finished tasks, messages of
# other agents.
_MACHINE = re.compile(
    r"\s*(Another Claude session sent a message:\s*)?<\\?"
    r"(task-notification|system-reminder|command-name|command-message|local-command-\w+|bash-\w+"
    r"|agent-message|teammate-message|cross-session-message)\b"
)
# Text that the client puts before or behind a person's prompt.
_CONTEXT = (
    "system-reminder",
    "ide_opened_file",
    "ide_opened_files",
    "ide_closed_file",
    "ide_selection",
)
_OPENING = re.compile(rf"\s*<({'|'.join(_CONTEXT)})>")
# A long paste stands between two marks with the same id, each on a line of its own.
_PASTED = re.compile(r'<pasted_content id="([0-9A-Za-z_-]{1,64})">\n')
_OWN_TOOL = re.compile(r"(mcp__?(plugin_)?)?pps([_-]|$)")
_DESCRIBING_FIELDS = (
    "description",
    "file_path",
    "notebook_path",
    "url",
    "query",
    "pattern",
    "path",
    "prompt",
)
"""Fields of a tool's input that may describe the call, the best first."""
_MAX_LINE = 300


def _parse_unix_time(value: object) -> object:
    if not isinstance(value, int | float):
        return value
    try:
        return from_micros(round(value * 1_000_000))
    except OverflowError:
        raise ValueError("is no time") from None


@dataclass(frozen=True, slots=True)
class AssistantAnswer:
    """An answer of the assistant; ``ref`` identifies it within its source."""

    ref: str
    text: str
    at: datetime


class SessionEvent(BaseModel):
    """One event as a hook sends it.

    Attributes:
        client: The client that runs the hook.
        id: Created by the hook; an event that is sent twice has the same id.
        at: When it happened; seconds since 1970 on the wire.
        entity: The entity that the hook was installed for; when empty, the project's folder tells.
        project, cwd: The folder that the session began in, and its present working folder.
        repository: The main folder of the Git repository, if the project's folder is a linked
            worktree of it.
        transcript, size: The session's file, and its size in bytes when the event happened.
        agent: Id of a subagent; empty for the session's own agent.
        source: How a session began: ``startup``, ``resume``, ``clear``, ``compact``, or another
            word.
        text: The prompt, or the last answer.
        within_s: How long the hook waits for an answer.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    at: Annotated[datetime, BeforeValidator(_parse_unix_time)]
    event: Literal[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "PreCompact",
        "SessionEnd",
    ]
    session: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    client: Literal["claude", "codex", "cursor", "gemini", "opencode", "openclaw"] = "claude"
    entity: _Short = ""
    project: _Path = ""
    cwd: _Path = ""
    repository: _Path = ""
    transcript: _Path = ""
    size: int = Field(default=0, ge=0)
    agent: _Short = ""
    agent_type: _Short = ""
    source: _Short = ""
    text: str = ""
    prompt: _Short = ""
    tool: _Short = ""
    ref: _Short = ""
    input: Mapping[str, str] = {}
    within_s: float = 0.0


def read_event(message: Mapping[str, JSON]) -> SessionEvent:
    """Return a hook's message as an event; InvalidRequest names the first invalid field."""
    try:
        return SessionEvent.model_validate(dict(message))
    except ValidationError as error:
        first = problems(error, SessionEvent)[0]
        raise InvalidRequest(first.path or "event", first.problem) from None


def said_in(event: SessionEvent) -> list[Item]:
    """Return the turns of an event: a person's prompt or a tool's line; none of other events."""
    bare = without_context(event.text) if event.event == "UserPromptSubmit" else ""
    text = without_marks(bare)
    if text.strip() and not is_machine(bare):
        # All that follows a prompt has the same id from the client: the reference needs the text.
        reference = (
            f"prompt:{event.prompt}:{digest(text)}" if event.prompt else f"prompt:{event.id}"
        )
        return _items(text, reference, event.at, event.session, "user", client=event.client)
    if event.event == "PostToolUse" and event.tool and not is_own_tool(event.tool):
        line = tool_line(event.tool, event.input)
        reference = f"tool:{event.ref or event.id}"
        actor = event.agent_type
        client = event.client
        return _items(line, reference, event.at, event.session, "tool", actor, client=client)
    return []


def answered(
    answers: Sequence[AssistantAnswer], session: str, client: str = "claude"
) -> list[Item]:
    return [
        item
        for answer in answers
        for item in _items(answer.text, answer.ref, answer.at, session, "assistant", client=client)
    ]


def last_answer(event: SessionEvent) -> AssistantAnswer:
    return AssistantAnswer(f"answer:{event.id}", event.text, event.at)


def typed(prompt: str) -> str:
    """Return a prompt without reminders, editor's context and marks of pastes."""
    return without_marks(without_context(prompt))


def without_context(prompt: str) -> str:
    """Return a prompt without the reminders and editor's context that the client put around it."""
    start = 0
    end = len(prompt)
    while opening := _OPENING.match(prompt, start, end):
        tag = opening[1]
        close = prompt.find(f"</{tag}>", opening.end(), end)
        if close < 0:
            break
        start = close + len(f"</{tag}>")
    while (trailing := _start_of_trailing_context(prompt, start, end)) >= 0:
        end = trailing
    text = prompt[start:end]
    if start > 0:
        text = text.lstrip()
    if end < len(prompt):
        text = text.rstrip()
    return text


def without_marks(prompt: str) -> str:
    """Return a prompt without the marks around its pastes; a mark without its end stays as text."""
    parts: list[str] = []
    at = 0
    while opening := _PASTED.search(prompt, at):
        close = f'\n</pasted_content id="{opening[1]}">'
        end = prompt.find(close, opening.end() - 1)
        if end < 0:
            break
        parts += [prompt[at : opening.start()], prompt[opening.end() : end]]
        at = end + len(close)
    if not parts:
        return prompt
    parts.append(prompt[at:])
    return "".join(parts).strip("\n")


def _start_of_trailing_context(prompt: str, start: int, end: int) -> int:
    """Return where context at the end of a prompt begins, on its own line; -1 for none."""
    while end > start and prompt[end - 1].isspace():
        end -= 1
    for tag in _CONTEXT:
        if prompt.endswith(f"</{tag}>", start, end):
            return prompt.rfind(f"\n<{tag}>", start, end)
    return -1


def digest(text: str) -> str:
    """Return a digest of a text that does not depend on its white space."""
    return hashlib.sha256(folded(text).encode()).hexdigest()[:32]


def folded(text: str) -> str:
    return "".join(text.split())


def is_machine(prompt: str) -> bool:
    """Tell whether the client itself wrote a prompt: a result, a notice, another agent's message.

    Pass the prompt with the marks of its pastes: a person may paste a notice.
    """
    return _MACHINE.match(prompt) is not None


def is_own_tool(tool: str) -> bool:
    return _OWN_TOOL.match(tool) is not None


def tool_line(tool: str, fields: Mapping[str, str]) -> str:
    """Return a call of a tool as one line: ``Bash: Run the tests (npm test)``."""
    description = next((fields[name] for name in _DESCRIBING_FIELDS if fields.get(name)), "")
    command = " ".join(fields.get("command", "").split())
    if command:
        description = f"{description} ({command})" if description else command
    line = " ".join(f"{tool}: {description}".split()) if description else tool
    return clipped(line, _MAX_LINE)


def _items(
    text: str,
    reference: str,
    at: datetime,
    session: str,
    role: str,
    actor: str = "",
    *,
    client: str = "claude",
) -> list[Item]:
    source = HOOK_SOURCES[client]
    options = RememberOptions(
        role=role, actor=actor, session=session, source=source, source_ref=reference, occurred_at=at
    )
    # Cut as an import cuts them, so that reading the transcript later finds duplicates.
    return [
        piece.arguments
        for piece in pieces(text.replace("\0", ""), options, reference)
        if not isinstance(piece, Passed)
    ]
