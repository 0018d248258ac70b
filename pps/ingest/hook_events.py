"""What a coding agent's session tells through hooks, and the turns that are kept of it."""

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
"""The ``source`` of every turn that Claude Code's hooks brought, and of its transcripts."""

_Short = Annotated[str, StringConstraints(max_length=200)]
_Path = Annotated[str, StringConstraints(max_length=4_096)]
Item = tuple[str, RememberOptions]

# What the client itself puts in a person's place: results of commands, notices of finished tasks, other agents' words.
_MACHINE = re.compile(
    r"\s*(Another Claude session sent a message:\s*)?<\\?"
    r"(task-notification|system-reminder|command-name|command-message|local-command-\w+|bash-\w+"
    r"|agent-message|teammate-message|cross-session-message)\b"
)
# … and before or behind a person's words.
_CONTEXT = (
    "system-reminder",
    "ide_opened_file",
    "ide_opened_files",
    "ide_closed_file",
    "ide_selection",
)
_OPENING = re.compile(rf"\s*<({'|'.join(_CONTEXT)})>")
# A paste of some length stands between marks of one id, each on a line of its own.
_PASTED = re.compile(r'<pasted_content id="([0-9A-Za-z_-]{1,64})">\n')
_OWN_TOOL = re.compile(r"(mcp__?(plugin_)?)?pps([_-]|$)")
_WHAT = ("description", "file_path", "notebook_path", "url", "query", "pattern", "path", "prompt")
_LINE = 300


def _moment(value: object) -> object:
    try:
        return from_micros(round(value * 1_000_000)) if isinstance(value, int | float) else value
    except OverflowError:
        raise ValueError("is no time") from None


@dataclass(frozen=True, slots=True)
class AssistantAnswer:
    """What the assistant said, and the id that it is known by."""

    ref: str
    text: str
    at: datetime


class SessionEvent(BaseModel):
    """One event as a hook tells it.

    Attributes:
        client: Which client runs the hook.
        id: Minted by the hook: the same event told twice has the same one.
        at: When it happened; seconds since 1970 on the wire.
        entity: Whose memory, where the hook was installed for one; else the project's folder says.
        project, cwd: The folder that the session began in, and where it works now.
        repository: The main folder of the Git repository that the project's folder is a linked worktree of.
        transcript, size: The session's file, and its bytes when the event happened.
        agent: Id of a subagent; empty for the session's own agent.
        source: How a session began: ``startup``, ``resume``, ``clear``, ``compact``, or another word.
        text: The prompt, or the last answer.
        within_s: How long the hook waits for an answer.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    at: Annotated[datetime, BeforeValidator(_moment)]
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
    """Return a hook's message checked; InvalidRequest names the field that is wrong."""
    try:
        return SessionEvent.model_validate(dict(message))
    except ValidationError as error:
        first = problems(error, SessionEvent)[0]
        raise InvalidRequest(first.path or "event", first.problem) from None


def said_in(event: SessionEvent) -> list[Item]:
    """Return what is kept of an event itself: the prompt, or what a tool did; nothing of other events."""
    bare = without_context(event.text) if event.event == "UserPromptSubmit" else ""
    if (text := without_marks(bare)).strip() and not is_machine(bare):
        # The client gives one id to all that follows a prompt, so the text belongs to the reference too.
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
    """Return what a person typed or pasted, without the client's reminders, its editor's context and its marks."""
    return without_marks(without_context(prompt))


def without_context(prompt: str) -> str:
    """Return a prompt without the reminders and the editor's context that the client put around what a person gave."""
    start = 0
    end = len(prompt)
    while found := _OPENING.match(prompt, start, end):
        close = prompt.find(f"</{found[1]}>", found.end(), end)
        if close < 0:
            break
        start = close + len(found[1]) + 3
    while (at := _behind(prompt, start, end)) >= 0:
        end = at
    before = start > 0
    after = end < len(prompt)
    said = prompt[start:end]
    said = said.lstrip() if before else said
    return said.rstrip() if after else said


def without_marks(said: str) -> str:
    """Return a prompt without the marks around its pastes; one that is not closed is what somebody typed."""
    parts: list[str] = []
    at = 0
    while opened := _PASTED.search(said, at):
        close = f'\n</pasted_content id="{opened[1]}">'
        end = said.find(close, opened.end() - 1)
        if end < 0:
            break
        parts += [said[at : opened.start()], said[opened.end() : end]]
        at = end + len(close)
    return ("".join(parts) + said[at:]).strip("\n") if parts else said


def _behind(prompt: str, start: int, end: int) -> int:
    """Return where the client's context at the end of a prompt begins, on a line of its own; -1 when there is none."""
    while end > start and prompt[end - 1].isspace():
        end -= 1
    for tag in _CONTEXT:
        if prompt.endswith(f"</{tag}>", start, end):
            return prompt.rfind(f"\n<{tag}>", start, end)
    return -1


def digest(text: str) -> str:
    """Return what an answer is known by, whatever its white space."""
    return hashlib.sha256(folded(text).encode()).hexdigest()[:32]


def folded(text: str) -> str:
    return "".join(text.split())


def is_machine(prompt: str) -> bool:
    """Tell whether a prompt is the client's own: a command's result, a notice, what another agent sent.

    It is asked with the marks of pastes in place: a person may paste a notice.
    """
    return _MACHINE.match(prompt) is not None


def is_own_tool(tool: str) -> bool:
    return _OWN_TOOL.match(tool) is not None


def tool_line(tool: str, given: Mapping[str, str]) -> str:
    """Return in one line what a tool did: ``Bash: Run the tests (npm test)``."""
    what = next((given[name] for name in _WHAT if given.get(name)), "")
    command = " ".join(given.get("command", "").split())
    if command:
        what = f"{what} ({command})" if what else command
    line = " ".join(f"{tool}: {what}".split()) if what else tool
    return clipped(line, _LINE)


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
    # As an import cuts them: what a hook brought is known when its transcript is read.
    return [
        one.arguments
        for one in pieces(text.replace("\0", ""), options, reference)
        if not isinstance(one, Passed)
    ]
