"""A Claude Code session as its hooks see it: payloads of the current contract, a transcript, the real program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pps.surfaces.cli.claude_settings import EVENTS, program

DEADLINE_S = {
    "SessionStart": 5.0,
    "UserPromptSubmit": 2.0,
    "PreToolUse": 0.5,
    "PostToolUse": 3.0,
    "Stop": 3.0,
    "PreCompact": 3.0,
    "SessionEnd": 1.5,  # the hook itself; its work goes on without it
}
assert set(DEADLINE_S) == set(EVENTS)


@dataclass(frozen=True)
class Ended:
    """What a hook's process left: its exit code and what it wrote."""

    code: int
    out: bytes
    err: bytes

    @property
    def context(self) -> str:
        """What the agent is given."""
        return json.loads(self.out)["hookSpecificOutput"]["additionalContext"] if self.out else ""

    def is_silent(self) -> bool:
        return (self.code, self.out, self.err) == (0, b"", b"")


@dataclass
class Session:
    """One session in a project's folder, with its transcript, and hooks that really run."""

    home: Path
    project: Path
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    cwd: Path | None = None
    options: tuple[str, ...] = ()
    project_dir: str | None = None

    def __post_init__(self) -> None:
        self.transcript = self.home.parent / "transcripts" / f"{self.id}.jsonl"
        self.transcript.parent.mkdir(exist_ok=True)

    def payload(self, event: str, **fields: Any) -> dict[str, Any]:
        """What Claude Code sends at an event."""
        common = {
            "session_id": self.id,
            "transcript_path": str(self.transcript),
            "cwd": str(self.cwd or self.project),
            "scratchpad_dir": f"/tmp/claude-1000/{self.id}/scratchpad",  # noqa: S108 - a name that nobody opens
            "hook_event_name": event,
        }
        return {**common, **_FIELDS[event], **fields}

    def run(self, event: str, **fields: Any) -> Ended:
        return self.raw(event, json.dumps(self.payload(event, **fields)).encode())

    def start(self, event: str, *, keeps: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Start a hook without any input yet; it keeps these descriptors open until its last process ends."""
        project = str(self.project) if self.project_dir is None else self.project_dir
        env = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
        env |= {"CLAUDE_PROJECT_DIR": project} if project else {}
        command = [sys.executable, "-I", "-S", str(program()), event, "--home", str(self.home), *self.options]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", pass_fds=keeps)

    def raw(self, event: str, given: bytes) -> Ended:
        process = self.start(event)
        out, err = process.communicate(given, timeout=40)
        return Ended(process.returncode, out, err)

    def says(self, text: str, **fields: Any) -> str:
        """Write an answer to the transcript as the client does; return its id."""
        return self.write({"type": "assistant", "message": _said(text), **fields})

    def write(self, entry: dict[str, Any]) -> str:
        """Append one line to the transcript."""
        line = {
            "parentUuid": None,
            "isSidechain": False,
            "userType": "external",
            "cwd": str(self.cwd or self.project),
            "sessionId": self.id,
            "version": "2.1.236",
            "uuid": str(uuid.uuid4()),
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            **entry,
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return str(line["uuid"])


def _said(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "model": "claude-sonnet-5", "content": content}


_PROMPT = {"prompt_id": "550e8400-e29b-41d4-a716-446655440000"}
_WORKING = {**_PROMPT, "permission_mode": "default", "effort": {"level": "high"}}
_FIELDS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup", "model": "claude-sonnet-5", "session_title": "kitchen"},
    "UserPromptSubmit": {**_PROMPT, "permission_mode": "default", "prompt": "What about the kitchen?"},
    "PreToolUse": {
        **_WORKING,
        "tool_name": "Bash",
        "tool_input": {"command": "npm test", "description": "Run the tests", "timeout": 120000},
        "tool_use_id": "toolu_01ABC123",
    },
    "PostToolUse": {
        **_WORKING,
        "tool_name": "Write",
        "tool_input": {"file_path": "/work/notes.txt", "content": "one\n"},
        "tool_response": {"type": "create", "filePath": "/work/notes.txt", "content": "one\n"},
        "tool_use_id": "toolu_01ABC124",
        "duration_ms": 12,
    },
    "Stop": {
        **_WORKING,
        "stop_hook_active": False,
        "last_assistant_message": "All done.",
        "background_tasks": [],
        "session_crons": [],
    },
    "PreCompact": {**_PROMPT, "trigger": "auto", "custom_instructions": None},
    "SessionEnd": {**_PROMPT, "reason": "prompt_input_exit"},
}
