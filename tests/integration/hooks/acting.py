"""A Claude Code session as its hooks see it: payloads as they were recorded, a transcript, the real program."""

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

from pps.interfaces.cli.client_settings import hook_clients, program
from tests.waiting import PATIENCE_S

EVENTS = hook_clients()["claude"].events

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
RECORDED = Path(__file__).parent / "recorded"
"""What Claude Code really sent; see the README there."""
PATIENT = Path(__file__).with_name("patient_hook.py")
VERSION = (RECORDED / "typed" / "version").read_text().strip()


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
    """One session in a project's folder, with its transcript, and hooks that really run.

    Attributes:
        keeps_deadlines: Whether its hooks give up in the time that Claude Code leaves them. Others have a minute more:
            a machine that stands still is no reason to give up where a test asks what they say and keep.
    """

    home: Path
    project: Path
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    cwd: Path | None = None
    options: tuple[str, ...] = ()
    project_dir: str | None = None
    keeps_deadlines: bool = False

    def __post_init__(self) -> None:
        self.transcript = self.home.parent / "transcripts" / f"{self.id}.jsonl"
        self.transcript.parent.mkdir(exist_ok=True)

    def payload(self, event: str, **fields: Any) -> dict[str, Any]:
        """What Claude Code sends at an event."""
        common = {
            "session_id": self.id,
            "transcript_path": str(self.transcript),
            "cwd": str(self.cwd or self.project),
            "hook_event_name": event,
        }
        return {**common, **_FIELDS[event], **fields}

    def run(self, event: str, **fields: Any) -> Ended:
        return self.raw(event, json.dumps(self.payload(event, **fields)).encode())

    def start(self, event: str, *, keeps: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Start a hook without any input yet; it keeps these descriptors open until its last process ends."""
        project = str(self.project) if self.project_dir is None else self.project_dir
        env = {
            name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ
        }
        env |= {"CLAUDE_PROJECT_DIR": project} if project else {}
        command = [
            sys.executable,
            "-I",
            "-S",
            *([] if self.keeps_deadlines else [str(PATIENT)]),
            str(program()),
            event,
            "--home",
            str(self.home),
            *self.options,
        ]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", pass_fds=keeps
        )

    def raw(self, event: str, given: bytes) -> Ended:
        process = self.start(event)
        out, err = process.communicate(given, timeout=PATIENCE_S)
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
            "version": VERSION,
            "uuid": str(uuid.uuid4()),
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            **entry,
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return str(line["uuid"])


def _said(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": content,
    }


def _recorded(name: str, **ours: Any) -> dict[str, Any]:
    """Return the fields that Claude Code really sent at an event, with values of the tests' own in some of them."""
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_bytes())
    assert set(ours) <= set(found), f"{name} has no {set(ours) - set(found)}"
    return {name: value for name, value in {**found, **ours}.items() if name not in _COMMON}


_COMMON = ("session_id", "transcript_path", "cwd", "hook_event_name")
_NOTES = {"file_path": "/work/notes.txt", "content": "one\n"}
_FIELDS = {
    "SessionStart": _recorded("typed/01-SessionStart"),
    "UserPromptSubmit": _recorded("typed/02-UserPromptSubmit", prompt="What about the kitchen?"),
    "PreToolUse": _recorded(
        "printed/03-PreToolUse",
        tool_input={"command": "npm test", "description": "Run the tests", "timeout": 120000},
        tool_use_id="toolu_01ABC123",
    ),
    "PostToolUse": _recorded(
        "printed/08-PostToolUse", tool_input=_NOTES, tool_use_id="toolu_01ABC124"
    ),
    "Stop": _recorded("typed/03-Stop", last_assistant_message="All done."),
    "PreCompact": _recorded("filled/05-PreCompact"),
    "SessionEnd": _recorded("typed/26-SessionEnd"),
}
assert set(_FIELDS) == set(EVENTS)
